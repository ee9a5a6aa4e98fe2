/**
 * Looks for rows of a cluster that disagree: with its number of shards, with each other, or with what living nodes would
 * have done about them. What changes all the time is looked at twice, so that a take-over under way is no finding.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import { clockDifference } from '../membership/database-clock.ts'
import type { ClusterRows, NodeRow, ShardRow } from '../../store/node-table.ts'
import { holdsRecords, readKeyFingerprint } from './cluster-row.ts'
import type { ExaminedTables } from './examine-tables.ts'
import { bad, type Finding, listed, warn } from '../../kit/finding.ts'
import type { PgConnection } from './pg-connection.ts'
import { readRows } from './pg-nodes.ts'

interface RowsToExamine {
  /** The shards that this database should have. */
  readonly own: readonly number[]
  readonly tables: ExaminedTables
  /** For the pause between the two looks. */
  readonly clock: Clock
}

/**
 * The doctor reads the rows of nodes and shards twice, this long apart. Chosen: longer than a lost node keeps its row
 * (`nodeEvictedMs`) and than the second node in the rank of a shard waits for the first (`orphanTurnMs`).
 */
export const pgDoctorLookMs = 3_000

export async function examineRows(
  connection: PgConnection,
  { own, tables, clock }: RowsToExamine,
): Promise<readonly Finding[]> {
  const first = await readRows(connection)
  const findings = [
    ...shardRowFindings(first.shards, new Set(own)),
    ...epochFindings(first.shards, await filledOf(connection, first.shards, tables)),
  ]
  // Without nodes nothing moves, and no shard needs an owner.
  if (first.nodes.length === 0) return findings
  await sleep(clock, pgDoctorLookMs)
  const second = await readRows(connection)
  return [
    ...findings,
    ...nodeFindings({ first, second, apartMs: pgDoctorLookMs }),
    ...(await keyFindings(connection, second)),
  ]
}

/** Returns the shards that have records, of those whose row says that no server has ever opened them. */
async function filledOf(
  connection: PgConnection,
  rows: readonly ShardRow[],
  tables: ExaminedTables,
): Promise<ReadonlySet<number>> {
  const filled = new Set<number>()
  for (const { shard } of rows.filter(isUnclaimed)) {
    if (tables.has(shard) && (await holdsRecords(connection, shard))) filled.add(shard)
  }
  return filled
}

/** Nodes compare their admin keys with the fingerprint of the last one that joined. */
async function keyFindings(
  connection: PgConnection,
  { nodes }: ClusterRows,
): Promise<readonly Finding[]> {
  if (nodes.length === 0 || (await readKeyFingerprint(connection)) !== undefined) return []
  return [
    warn(
      'the row of cluster has no fingerprint of the admin key, so a node with another key would start: restart one of the nodes',
    ),
  ]
}

/** The rows, read twice. */
interface TwoLooks {
  readonly first: ClusterRows
  readonly second: ClusterRows
  /** How long the second look came after the first one. */
  readonly apartMs: number
}

/** @param own - the shards that this database should have */
function shardRowFindings(rows: readonly ShardRow[], own: ReadonlySet<number>): readonly Finding[] {
  const numbers = rows.map(({ shard }) => shard)
  const has = new Set(numbers)
  const missing = [...own].filter((shard) => !has.has(shard))
  const foreign = [...has].filter((shard) => !own.has(shard))
  const doubled = [...new Set(numbers.filter((shard, nth) => numbers.indexOf(shard) !== nth))]
  const findings: Finding[] = []
  if (missing.length > 0) {
    findings.push(
      bad(
        `the table shard has no row for ${shards(missing)}: stop all servers, and restore the database, or insert the row (${missing[0]}, 1, '', '') if the tables of the shard are there`,
      ),
    )
  }
  if (foreign.length > 0) {
    findings.push(
      bad(
        `the table shard has rows for ${shards(foreign)}, which this database does not have: undo the change of the row of cluster that makes them too many, or else delete them`,
      ),
    )
  }
  if (doubled.length > 0) {
    findings.push(
      bad(
        `the table shard has several rows for ${shards(doubled)}: stop all servers, and keep only the one with the highest epoch`,
      ),
    )
  }
  return findings
}

/** @param filled - the shards with records in their tables, of those without an epoch */
function epochFindings(rows: readonly ShardRow[], filled: ReadonlySet<number>): readonly Finding[] {
  const wrong = rows
    .filter(isUnclaimed)
    .filter(({ shard, boot }) => boot !== '' || filled.has(shard))
    .map(({ shard }) => shard)
  if (wrong.length === 0) return []
  return [
    bad(
      `the row of ${shards(wrong)} has no epoch although the shard was in use, so a former owner may write beside the present one: stop all servers, and start them again`,
    ),
  ]
}

/** Whether no server has ever opened the shard, as its row says: each claim raises the epoch, from 0. */
function isUnclaimed({ epoch }: ShardRow): boolean {
  return BigInt(epoch) <= 0n
}

function nodeFindings({ first, second, apartMs }: TwoLooks): readonly Finding[] {
  const before = new Map(first.nodes.map(({ boot, beat }) => [boot, beat]))
  const standing = second.nodes.filter(({ boot, beat }) => before.get(boot) === beat)
  const alive = second.nodes.filter((node) => !standing.includes(node))
  return [
    ...standing.map((node) =>
      warn(
        `${nameOf(node)} has sent no heartbeat in the ${apartMs / 1_000} s that the doctor looked: start it again, or another one, which removes its row`,
      ),
    ),
    ...clockFindings(alive),
    ...sharedAddressFindings(alive),
    ...orphanFindings({ first, second, apartMs }, alive),
  ]
}

function clockFindings(alive: readonly NodeRow[]): readonly Finding[] {
  return alive.flatMap((node) => {
    const difference = clockDifference(node)
    if (difference === undefined) return []
    const of = `the clock of ${nameOf(node)} is ${difference} of that of the database`
    return [
      warn(
        `${of}: let a time service set both, because receivers check the time of signed deliveries`,
      ),
    ]
  })
}

function sharedAddressFindings(alive: readonly NodeRow[]): readonly Finding[] {
  return alive.flatMap((node, nth) => {
    const other = alive.slice(0, nth).find(({ address }) => address === node.address)
    if (other === undefined || node.address === '') return []
    return [
      bad(
        `${nameOf(other)} and ${nameOf(node)} have the same address ${node.address}, so requests for one reach the other: give each an address of its own with --cluster-advertise or --cluster-listen`,
      ),
    ]
  })
}

/** A node claims the shards of one that was lost at once, so none is without an owner for long. */
function orphanFindings(
  { first, second, apartMs }: TwoLooks,
  alive: readonly NodeRow[],
): readonly Finding[] {
  const serving = alive.filter(({ state }) => state === 'serving')
  if (serving.length === 0) return []
  const boots = new Set([...first.nodes, ...second.nodes].map(({ boot }) => boot))
  const before = new Map(first.shards.map(({ shard, epoch }) => [shard, epoch]))
  const orphans = second.shards
    .filter(({ shard, epoch, boot }) => !boots.has(boot) && before.get(shard) === epoch)
    .map(({ shard }) => shard)
  if (orphans.length === 0) return []
  return [
    bad(
      `no node has opened ${shards(orphans)} in the ${apartMs / 1_000} s that the doctor looked, although ${listed(serving.map(({ name }) => name))} should: look for errors in the logs of the nodes, and restart one after the other`,
    ),
  ]
}

function nameOf({ name }: NodeRow): string {
  return `the node ${JSON.stringify(name)}`
}

function shards(numbers: readonly number[]): string {
  return `${numbers.length === 1 ? 'shard' : 'shards'} ${listed(numbers)}`
}
