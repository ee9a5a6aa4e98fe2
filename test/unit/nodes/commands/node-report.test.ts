import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeReport } from '../../../../src/nodes/commands/node-report.ts'
import type { NodeRow, ShardRow } from '../../../../src/store/node-table.ts'

function row(name: string, rest: Partial<NodeRow> = {}): NodeRow {
  const boot = `${name}-boot`
  return { name, boot, beat: '1', address: '10.0.0.5:8450', workers: 4, state: 'serving', ...rest }
}

/** Shards from `first` to `last` that this boot owns. */
function owned(first: number, last: number, boot: string, epoch = '3'): readonly ShardRow[] {
  const node = boot.split('-')[0] ?? ''
  return Array.from({ length: last - first + 1 }, (_, nth) => ({
    shard: first + nth,
    epoch,
    node,
    boot,
  }))
}

test('nodes are shown with their shards and heartbeats, and shards in ranges of one owner and epoch', () => {
  const before = [row('a'), row('still', { address: '', state: 'leaving' })]
  const nodes = [
    row('a', { beat: '3' }),
    row('still', { address: '', state: 'leaving' }),
    row('new'),
  ]
  const shards = [
    ...owned(0, 15, 'a-boot'),
    ...owned(16, 16, 'still-boot'),
    ...owned(17, 19, 'still-boot', '12'),
    ...owned(20, 21, 'gone-boot'),
    ...owned(22, 30, '', '0'),
    ...owned(31, 31, 'a-boot'),
  ]
  assert.deepEqual(nodeReport(before, { nodes, shards }), [
    'node   state    address        workers  shards  heartbeat',
    'a      serving  10.0.0.5:8450  4        17      alive',
    'still  leaving  -              4        4       stands still',
    'new    serving  10.0.0.5:8450  4        0       has just joined',
    '',
    'shards  epoch  owner',
    '0-15    3      a',
    '16      3      still',
    '17-19   12     still',
    '20-21   3      none (last gone)',
    '22-30   0      none',
    '31      3      a',
  ])
})

test('the clock of a node that differs from that of the database is shown', () => {
  const clocked = (name: string, skewMs: number): NodeRow =>
    row(name, { beat: '2', clock: { skewMs, lagMs: 0 } })
  const nodes = [clocked('a', 600_400), clocked('b', -3_000), clocked('c', 2_000)]
  const lines = nodeReport([row('a'), row('b'), row('c')], { nodes, shards: [] })
  assert.deepEqual(
    lines.slice(1, 4).map((line) => line.replace(/.*(?=alive)/, '')),
    ['alive, its clock is 600 s ahead', 'alive, its clock is 3 s behind', 'alive'],
  )
})

test('an earlier life of a node does not own its shards any more', () => {
  const nodes = [row('a', { boot: 'a-next' })]
  const lines = nodeReport([row('a')], { nodes, shards: owned(0, 3, 'a-boot') })
  assert.match(lines[1] ?? '', /^a .* 0 +has just joined$/)
  assert.equal(lines.at(-1), '0-3     3      none (last a)')
})

test('a database without nodes says so', () => {
  assert.deepEqual(nodeReport([], { nodes: [], shards: owned(0, 3, '', '0') }), [
    'no node uses this database',
    '',
    'shards  epoch  owner',
    '0-3     0      none',
  ])
})
