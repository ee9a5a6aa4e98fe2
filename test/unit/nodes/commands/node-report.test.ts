import assert from 'node:assert/strict'
import { test } from 'node:test'
import { View } from '../../../../src/cli/output/view.ts'
import { nodeLines, nodeReport } from '../../../../src/nodes/commands/node-report.ts'
import type { ClusterRows, NodeRow, ShardRow } from '../../../../src/store/node-table.ts'

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

function linesOf(before: readonly NodeRow[], rows: ClusterRows): readonly string[] {
  return nodeLines(nodeReport('a:5432/bots', before, rows), new View())
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
  assert.deepEqual(linesOf(before, { nodes, shards }), [
    'node   state    heartbeat        shards  workers  address',
    'a      serving  alive                17        4  10.0.0.5:8450',
    'still  leaving  stands still          4        4  -',
    'new    serving  has just joined       0        4  10.0.0.5:8450',
    '',
    'shards  owner  epoch  last_owner',
    '0-15    a      3      -',
    '16      still  3      -',
    '17-19   still  12     -',
    '20-21   none   3      gone',
    '22-30   none   0      -',
    '31      a      3      -',
  ])
})

test('the clock of a node that differs from that of the database is shown', () => {
  const clocked = (name: string, skewMs: number): NodeRow =>
    row(name, { beat: '2', clock: { skewMs, lagMs: 0 } })
  const nodes = [clocked('a', 600_400), clocked('b', -3_000), clocked('c', 2_000)]
  const lines = linesOf([row('a'), row('b'), row('c')], { nodes, shards: [] })
  assert.deepEqual(
    lines.slice(1, 4).map((line) => line.replace(/.*(?=alive)|  .*/g, '')),
    ['alive, its clock is 600 s ahead', 'alive, its clock is 3 s behind', 'alive'],
  )
})

test('an earlier life of a node does not own its shards any more', () => {
  const nodes = [row('a', { boot: 'a-next' })]
  const lines = linesOf([row('a')], { nodes, shards: owned(0, 3, 'a-boot') })
  assert.match(lines[1] ?? '', /^a .* has just joined +0 /)
  assert.equal(lines.at(-1), '0-3     none   3      a')
})

test('a database without nodes says so', () => {
  assert.deepEqual(linesOf([], { nodes: [], shards: owned(0, 3, '', '0') }), [
    'no node uses this database',
    '',
    'shards  owner  epoch',
    '0-3     none   0',
  ])
})

test('nodes are a list as others: its columns can be chosen, and CSV has every field and no shards', () => {
  const parts = { form: 'csv', columns: undefined, isWide: false, width: 80, nowMs: 0 } as const
  const report = nodeReport('a:5432/bots', [row('a')], {
    nodes: [row('a', { beat: '2' })],
    shards: owned(0, 3, 'a-boot'),
  })
  assert.deepEqual(nodeLines(report, new View(parts)), [
    'database,node,state,heartbeat,shards,workers,address',
    'a:5432/bots,a,serving,alive,4,4,10.0.0.5:8450',
  ])
  const chosen = new View({ ...parts, form: 'table', columns: ['node', 'shards'] })
  assert.deepEqual(nodeLines(report, chosen), ['node  shards', 'a          4'])
})
