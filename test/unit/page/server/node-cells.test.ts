import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  goneCells,
  nodeCells,
  nodeColumns,
  rangesText,
  workerCells,
  workerColumns,
} from '../../../../src/page/server/node-cells.ts'
import type { Cell } from '../../../../src/page/server/node-cells.ts'
import type { NodeShape, WorkerShape } from '../../../../src/page/frame/shapes.ts'

function worker(nth: number, state: WorkerShape['state'] = 'serving'): WorkerShape {
  return {
    worker: nth,
    state,
    pid: state === 'down' ? null : 100 + nth,
    generation: 0,
    restarts: state === 'down' ? 2 : 0,
    uptime: state === 'serving' ? 59 : null,
    event_loop_delay_p99_ms: 1,
    event_loop_delay_max_ms: nth * 10,
  }
}

const node: NodeShape = {
  name: 'a',
  state: 'serving',
  version: '1.0.0',
  uptime: 7_300,
  heartbeat_age_ms: 230,
  workers: [worker(0), worker(1, 'down')],
  shards: (['serving', 'serving', 'starting', 'broken'] as const).map((state, shard) => ({
    shard,
    worker: shard < 2 ? 0 : 1,
    state,
  })),
}

/** A cell as its text, with its style if it has one. */
function shown(cells: readonly Cell[]): readonly string[] {
  return cells.map(({ text, style }) => (style === '' ? text : `${text} (${style})`))
}

test('a node shows how many of its workers and shards are in trouble', () => {
  const cells = nodeCells(node)
  assert.equal(cells.length, nodeColumns.length)
  assert.deepEqual(shown(cells), [
    'a',
    'serving (healthy)',
    '4, 1 starting, 1 broken (failing)',
    '0.2 s ago',
    '2, 1 down (failing)',
    '10 ms',
    '2 h',
    '1.0.0',
  ])
  for (const [clock_skew_ms, shownClock] of [
    [2_000, '0.2 s ago'],
    [600_000, '0.2 s ago, clock 10 min ahead (degraded)'],
    [-3_000, '0.2 s ago, clock 3 s behind (degraded)'],
  ] as const) {
    assert.equal(shown(nodeCells({ ...node, clock_skew_ms }))[3], shownClock)
  }
})

test('of a node that does not answer, its state and shards are shown, and of one that is gone, since when', () => {
  const shards = node.shards.map(({ shard }) => ({
    shard,
    worker: null,
    state: 'unknown' as const,
  }))
  const silent = { version: null, uptime: null, heartbeat_age_ms: null, workers: [], shards }
  assert.deepEqual(shown(nodeCells({ ...silent, name: 'b', state: 'unreachable' })), [
    'b',
    'unreachable (failing)',
    '4, 4 unknown (failing)',
    '–',
    '–',
    '–',
    '–',
    '–',
  ])
  const [name, state, ...rest] = goneCells({ name: 'c', goneS: 130 })
  assert.equal(rest.length, nodeColumns.length - 2)
  assert.deepEqual(shown([name, state, rest[1]].filter((cell) => cell !== undefined)), [
    'c',
    'gone (failing)',
    '2 min ago',
  ])
})

test('a worker shows its own shards and how often it was restarted', () => {
  assert.equal(workerColumns.length, 7)
  assert.deepEqual(shown(workerCells(worker(0), node.shards)), [
    '0',
    'serving (healthy)',
    '0–1',
    '0',
    '59 s',
    '0 ms',
    '100',
  ])
  assert.deepEqual(shown(workerCells(worker(1, 'down'), node.shards)), [
    '1',
    'down (failing)',
    '2–3, 1 starting, 1 broken (failing)',
    '2 (degraded)',
    '–',
    '10 ms',
    '–',
  ])
})

test('numbers in a row become a range', () => {
  assert.equal(rangesText([0, 1, 2, 5, 7, 8]), '0–2, 5, 7–8')
  assert.equal(rangesText([]), '–')
})

test('an event loop that was busy for long is said to be slow, of a worker and of its node', () => {
  for (const [ms, said] of [
    [500, '500 ms'],
    [501, '501 ms, slow (degraded)'],
    [1_100, '1.1 s, slow (degraded)'],
  ] as const) {
    const busy = { ...worker(0), event_loop_delay_max_ms: ms }
    assert.equal(shown(workerCells(busy, []))[5], said)
    assert.equal(shown(nodeCells({ ...node, workers: [worker(0), busy] }))[5], said)
  }
})
