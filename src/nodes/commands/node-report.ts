/** The tables that `postbote nodes` prints, as lines. Pure. */
import { clockDifference } from '../membership/database-clock.ts'
import type { ClusterRows, NodeRow, ShardRow } from '../../store/node-table.ts'
import { textTable } from '../../cli/output/text-table.ts'

/**
 * Returns a table of the nodes and one of the shards.
 *
 * @param before - the nodes as they were some heartbeats earlier, which says whether they are alive
 */
export function nodeReport(
  before: readonly NodeRow[],
  { nodes, shards }: ClusterRows,
): readonly string[] {
  const names = new Map(nodes.map(({ boot, name }) => [boot, name]))
  const nodeLines = nodes.map((row) => [
    row.name,
    row.state,
    row.address === '' ? '-' : row.address,
    `${row.workers}`,
    `${shards.filter(({ boot }) => boot === row.boot).length}`,
    heartbeatOf(row, before),
  ])
  const shardLines = foldedShards(shards).map(({ first, last, row }) => [
    first === last ? `${first}` : `${first}-${last}`,
    row.epoch,
    names.get(row.boot) ?? orphanText(row),
  ])
  return [
    ...(nodes.length === 0
      ? ['no node uses this database']
      : textTable({
          head: ['node', 'state', 'address', 'workers', 'shards', 'heartbeat'],
          rows: nodeLines,
        }).lines),
    '',
    ...textTable({ head: ['shards', 'epoch', 'owner'], rows: shardLines }).lines,
  ]
}

/** Returns whether the beat of a node has moved between two reads; undefined if it has joined between them. */
export function hasMoved(row: NodeRow, before: readonly NodeRow[]): boolean | undefined {
  const earlier = before.find(({ boot }) => boot === row.boot)
  return earlier === undefined ? undefined : earlier.beat !== row.beat
}

function heartbeatOf(row: NodeRow, before: readonly NodeRow[]): string {
  const moved = hasMoved(row, before)
  if (moved === undefined) return 'has just joined'
  if (!moved) return 'stands still'
  const difference = clockDifference(row)
  return difference === undefined ? 'alive' : `alive, its clock is ${difference}`
}

function orphanText({ node }: ShardRow): string {
  return node === '' ? 'none' : `none (last ${node})`
}

/** Shards in a row that have the same owner and epoch. */
interface ShardRange {
  readonly first: number
  readonly last: number
  readonly row: ShardRow
}

function foldedShards(shards: readonly ShardRow[]): readonly ShardRange[] {
  const ranges: ShardRange[] = []
  for (const row of shards) {
    const range = ranges.at(-1)
    const continues =
      range?.last === row.shard - 1 && range.row.boot === row.boot && range.row.epoch === row.epoch
    if (range !== undefined && continues) ranges[ranges.length - 1] = { ...range, last: row.shard }
    else ranges.push({ first: row.shard, last: row.shard, row })
  }
  return ranges
}
