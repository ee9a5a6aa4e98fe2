/** What `postbote nodes` shows of databases, and the rows of its tables. Pure. */
import type { Static } from 'typebox'
import * as is from '../../api/words.ts'
import { listLines } from '../../cli/remote/cells.ts'
import type { View } from '../../cli/output/view.ts'
import { clockDifference } from '../membership/database-clock.ts'
import type { ClusterRows, NodeRow, ShardRow } from '../../store/node-table.ts'

const nodeItem = is.object({
  database: is.name(),
  node: is.text(),
  state: is.text(),
  heartbeat: is.reason(),
  shards: is.count('How many it owns.'),
  workers: is.count('How many it has.'),
  address: is.orNull(is.text()),
})
const shardItem = is.object({
  database: is.name(),
  shards: is.text('One, or the first and the last in a row.'),
  epoch: is.text(),
  owner: is.orNull(is.text(), 'none'),
  last_owner: is.orNull(is.text('Of shards that nobody has.')),
})

/** What one database says. */
export interface NodeReport {
  readonly nodes: readonly Static<typeof nodeItem>[]
  readonly shards: readonly Static<typeof shardItem>[]
}

/** The names of columns, for `--columns`. */
export const nodeFields = Object.keys(nodeItem.properties)

/**
 * Returns the nodes of a database, and who has its shards.
 *
 * @param before - the nodes as they were some heartbeats earlier, which says whether they are alive
 */
export function nodeReport(
  database: string,
  before: readonly NodeRow[],
  { nodes, shards }: ClusterRows,
): NodeReport {
  const names = new Map(nodes.map(({ boot, name }) => [boot, name]))
  return {
    nodes: nodes.map((row) => ({
      database,
      node: row.name,
      state: row.state,
      heartbeat: heartbeatOf(row, before),
      shards: shards.filter(({ boot }) => boot === row.boot).length,
      workers: row.workers,
      address: row.address === '' ? null : row.address,
    })),
    shards: foldedShards(shards).map(({ first, last, row }) => {
      const owner = names.get(row.boot) ?? null
      return {
        database,
        shards: first === last ? `${first}` : `${first}-${last}`,
        epoch: row.epoch,
        owner,
        last_owner: owner !== null || row.node === '' ? null : row.node,
      }
    }),
  }
}

/** Returns a table of the nodes and, unless its columns were chosen, one of the shards. CSV has the nodes alone. */
export function nodeLines({ nodes, shards }: NodeReport, view: View): readonly string[] {
  const columns = nodeFields.filter((field) => field !== 'database')
  const isEmpty = nodes.length === 0 && view.form === 'table'
  const lines = isEmpty
    ? ['no node uses this database']
    : listLines({ item: nodeItem, items: nodes, columns }, view)
  if (view.form === 'csv' || view.columns !== undefined) return lines
  const ofShards = ['shards', 'owner', 'epoch', ...(hasOrphans(shards) ? ['last_owner'] : [])]
  return [
    ...lines,
    '',
    ...listLines({ item: shardItem, items: shards, columns: ofShards }, view.inner),
  ]
}

function hasOrphans(shards: NodeReport['shards']): boolean {
  return shards.some(({ last_owner: last }) => last !== null)
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
