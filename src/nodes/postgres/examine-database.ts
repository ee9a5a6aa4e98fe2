/**
 * Looks for what makes a database unsafe or slow for shards. Each finding is a sentence for the operator that says what to
 * do; nothing is changed.
 */
import { type Clock, sleep, waitingClock } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { shardsOfDatabase } from '../../store/database-of-shard.ts'
import {
  nodeLooks,
  clusterLooks,
  pgDoctorLookMs,
  rowLooks,
  tableLooks,
  unclaimedShards,
} from './cluster-looks.ts'
import { type ClusterRow, hasSchema, holdsRecords, readCluster } from './cluster-row.ts'
import { connectionFinding, type ConnectionUsers, readConnectionLimit } from './connection-limit.ts'
import { bad, type Finding, good } from '../../kit/finding.ts'
import { findAll } from './look.ts'
import { PgConnection } from './pg-connection.ts'
import { readRows } from './pg-nodes.ts'
import { serverLooks, withoutStandby } from './server-looks.ts'
import type { PgUrl } from '../../api/pg-url.ts'

export interface ExaminedDatabase {
  readonly findings: readonly Finding[]
  /** Undefined if the database has none that can be read. */
  readonly cluster?: ClusterRow
}

/** The doctor waits this long for a response: a busy database is one that it is asked about. Chosen. */
const pgDoctorStatementMs = 30_000

/**
 * Examines the primary of the database. An unusable one is a finding, too.
 *
 * @param workersOf - returns the number of workers of the node that will use the database, if none does
 * @param clock - for the pause between two looks at the nodes, if there are any
 */
export async function examineDatabase(
  database: PgUrl,
  workersOf: (shards: number) => number,
  clock: Clock = waitingClock,
): Promise<ExaminedDatabase> {
  let connection: PgConnection
  try {
    const statementMs = pgDoctorStatementMs
    connection = await PgConnection.open({ database, name: 'postbote/doctor', statementMs })
  } catch (error) {
    return { findings: [bad(messageOf(error))] }
  }
  try {
    const server = good(`${connection.server.address.shown} is the primary`)
    const ofServer = [server, ...(await findAll(connection, serverLooks))]
    try {
      const { findings, cluster } = await examineCluster(connection, workersOf, clock)
      return { findings: [...ofServer, ...findings], ...(cluster === undefined ? {} : { cluster }) }
    } catch (error) {
      return { findings: [...ofServer, bad(messageOf(error))] }
    }
  } finally {
    connection.close()
  }
}

/** Returns why a failure of the database's machine may lose acknowledged updates, or undefined if it cannot. */
export async function replicationGap(connection: PgConnection): Promise<string | undefined> {
  const [gap] = await findAll(connection, { looks: [withoutStandby] })
  return gap?.text
}

async function examineCluster(
  connection: PgConnection,
  workersOf: (shards: number) => number,
  clock: Clock,
): Promise<ExaminedDatabase> {
  const lost = (await hasSchema(connection)) ? await findAll(connection, clusterLooks) : []
  if (lost.length > 0) return { findings: lost }
  const cluster = await readCluster(connection)
  const own = shardsOfDatabase(cluster)
  const hasNodes = await hasNodeTable(connection)
  const disagreeing = [
    ...(await findAll(connection, tableLooks, [own])),
    ...(hasNodes ? await examineRows(connection, own, clock) : []),
  ]
  const all =
    cluster.databases === 1 ? `${own.length} shards` : `${own.length} of ${cluster.shards} shards`
  const findings =
    disagreeing.length === 0 ? [good(`cluster ${cluster.id} with ${all}`)] : disagreeing
  const limit = await readConnectionLimit(connection)
  const users = hasNodes ? await nodesOf(connection) : noNodes
  const wanted = users.nodes === 0 ? { nodes: 1, workers: workersOf(cluster.shards) } : users
  findings.push(connectionFinding(limit, own.length, wanted))
  return { findings, cluster }
}

async function examineRows(
  connection: PgConnection,
  own: readonly number[],
  clock: Clock,
): Promise<readonly Finding[]> {
  const before = await readRows(connection)
  const findings = await findAll(connection, rowLooks, [own, await filledOf(connection)])
  // Without nodes nothing moves, and no shard needs an owner.
  if (before.nodes.length === 0) return findings
  await sleep(clock, pgDoctorLookMs)
  return [...findings, ...(await findAll(connection, nodeLooks, [before]))]
}

/** Returns the shards that have records, of those whose row says that no server has ever opened them. */
async function filledOf(connection: PgConnection): Promise<readonly number[]> {
  const rows = await connection.run<{ readonly shard: number }>({ text: unclaimedShards })
  const filled: number[] = []
  for (const { shard } of rows) if (await holdsRecords(connection, shard)) filled.push(shard)
  return filled
}

const noNodes = { nodes: 0, workers: 0 }

async function nodesOf(connection: PgConnection): Promise<ConnectionUsers> {
  const [row] = await connection.run<{ readonly nodes: number; readonly workers: number }>({
    text: 'SELECT count(*)::int AS nodes, coalesce(sum(workers), 0)::int AS workers FROM node',
  })
  return row ?? noNodes
}

async function hasNodeTable(connection: PgConnection): Promise<boolean> {
  const [row] = await connection.run<{ readonly has: boolean }>({
    text: "SELECT to_regclass('node') IS NOT NULL AS has",
  })
  return row?.has === true
}
