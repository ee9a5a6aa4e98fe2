/**
 * Looks for what makes a database unsafe or slow for shards. Each finding is a sentence for the operator that says what to
 * do; nothing is changed.
 */
import { type Clock, waitingClock } from '../../clock.ts'
import { messageOf } from '../../message-of.ts'
import { pgSnapshotWarnS } from '../limits.ts'
import { shardsOfDatabase } from '../database-of-shard.ts'
import { type ClusterRow, hasSchema, readCluster } from './cluster-row.ts'
import { connectionFinding, type ConnectionUsers, readConnectionLimit } from './connection-limit.ts'
import { examineRows } from './examine-rows.ts'
import { ExaminedTables } from './examine-tables.ts'
import { bad, type Finding, good, warn } from './finding.ts'
import { PgConnection } from './pg-connection.ts'
import type { PgUrl } from './pg-url.ts'

/** The oldest version of which all statements are known to work. */
const versionMin = 150_000

interface Facts {
  readonly version: number
  readonly version_text: string
  readonly fsync: string
  readonly full_page_writes: string
  readonly autovacuum: string
  readonly standby_names: string
  readonly synchronous_standbys: number
  /** Whether the role sees the standbys and what others have open. */
  readonly sees_all: boolean
  readonly oldest_snapshot_s: number | null
  readonly prepared: number
  readonly dead_slots: number
  readonly may_create: boolean
  readonly [column: string]: unknown
}

const factsQuery = `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS version_text,
current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
current_setting('autovacuum') AS autovacuum,
current_setting('synchronous_standby_names') AS standby_names,
(SELECT count(*)::int FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS synchronous_standbys,
pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all,
(SELECT extract(epoch FROM max(now() - xact_start))::int FROM pg_stat_activity
  WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend') AS oldest_snapshot_s,
(SELECT count(*)::int FROM pg_prepared_xacts) AS prepared,
(SELECT count(*)::int FROM pg_replication_slots WHERE NOT active) AS dead_slots,
has_schema_privilege(current_schema(), 'CREATE') AS may_create`

export interface ExaminedDatabase {
  readonly findings: readonly Finding[]
  /** Undefined if the database has none that can be read. */
  readonly cluster?: ClusterRow
}

export interface ExaminationOptions {
  /** For the pause between two looks at the nodes, if there are any. */
  readonly clock?: Clock
  /** Returns the number of workers of the node that will use the database, if none does. */
  readonly workersOf: (shards: number) => number
}

/** Examines the primary of the database. An unusable one is a finding, too. */
export async function examineDatabase(
  database: PgUrl,
  options: ExaminationOptions,
): Promise<ExaminedDatabase> {
  let connection: PgConnection
  try {
    connection = await PgConnection.open({ database, name: 'postbote/doctor' })
  } catch (error) {
    return { findings: [bad(messageOf(error))] }
  }
  try {
    const [facts] = await connection.run<Facts>({ text: factsQuery })
    const server = good(`${connection.server.address.shown} is the primary`)
    const ofServer = [server, ...(facts === undefined ? [] : findingsOf(facts))]
    try {
      const { findings, cluster } = await examineCluster(connection, options)
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
  const [row] = await connection.run<{ readonly names: string }>({
    text: "SELECT current_setting('synchronous_standby_names') AS names",
  })
  return row?.names === '' ? noStandby : undefined
}

const noStandby =
  'synchronous_standby_names is empty: if the machine of the database is lost, so is what was acknowledged last; name a standby'

function findingsOf(facts: Facts): Finding[] {
  const { version, fsync, full_page_writes: pages } = facts
  const { oldest_snapshot_s: oldestS, prepared, dead_slots: deadSlots } = facts
  const found = [
    version >= versionMin
      ? good(`PostgreSQL ${facts.version_text}`)
      : warn(`PostgreSQL ${facts.version_text} is older than any that was tested: 15`),
    fsync === 'on'
      ? good('fsync is on')
      : bad('fsync is off: a power loss destroys the database; set fsync = on'),
    pages === 'on'
      ? good('full_page_writes is on')
      : bad(
          'full_page_writes is off: a power loss may damage tables, unless the file system writes pages atomically',
        ),
    standbyFinding(facts),
  ]
  if (facts.autovacuum !== 'on')
    found.push(warn('autovacuum is off: deleted updates take room and time; set autovacuum = on'))
  if (oldestS !== null && oldestS > pgSnapshotWarnS) {
    found.push(
      warn(
        `a transaction has been open for ${oldestS} s: updates that are deleted meanwhile take room and time; end it, and dump from a standby`,
      ),
    )
  }
  if (prepared > 0)
    found.push(
      warn(`${prepared} prepared transactions keep deleted updates: commit them or roll them back`),
    )
  if (deadSlots > 0)
    found.push(
      warn(
        `${deadSlots} replication slots have no standby: they keep the log and deleted updates; drop them`,
      ),
    )
  return found
}

function standbyFinding(facts: Facts): Finding {
  const { standby_names: names, synchronous_standbys: connected } = facts
  if (names === '') return warn(noStandby)
  if (!facts.sees_all)
    return warn(
      'whether a synchronous standby is connected, and how long transactions are open, is hidden from this role: GRANT pg_read_all_stats to it',
    )
  if (connected === 0)
    return bad(
      `no synchronous standby is connected (synchronous_standby_names = ${names}): nothing is acknowledged until one is`,
    )
  return good(`${connected} synchronous standbys are connected`)
}

async function examineCluster(
  connection: PgConnection,
  { clock = waitingClock, workersOf }: ExaminationOptions,
): Promise<ExaminedDatabase> {
  const rows = await clusterRowCount(connection)
  if (rows === 0) {
    return { findings: [bad('the table cluster has no row: restore the database from a backup')] }
  }
  const cluster = await readCluster(connection)
  const own = shardsOfDatabase(cluster)
  const tables = await ExaminedTables.read(connection, own)
  const disagreeing = [
    ...(rows === 1
      ? []
      : [bad(`the table cluster has ${rows} rows: stop all servers, and delete the wrong ones`)]),
    ...tables.findings(),
    ...(tables.hasNodes ? await examineRows(connection, { own, tables, clock }) : []),
  ]
  const all =
    cluster.databases === 1 ? `${own.length} shards` : `${own.length} of ${cluster.shards} shards`
  const findings =
    disagreeing.length === 0 ? [good(`cluster ${cluster.id} with ${all}`)] : disagreeing
  const limit = await readConnectionLimit(connection)
  const users = tables.hasNodes ? await nodesOf(connection) : noNodes
  const wanted = users.nodes === 0 ? { nodes: 1, workers: workersOf(cluster.shards) } : users
  findings.push(connectionFinding(limit, own.length, wanted))
  return { findings, cluster }
}

const noNodes = { nodes: 0, workers: 0 }

async function nodesOf(connection: PgConnection): Promise<ConnectionUsers> {
  const [row] = await connection.run<{ readonly nodes: number; readonly workers: number }>({
    text: 'SELECT count(*)::int AS nodes, coalesce(sum(workers), 0)::int AS workers FROM node',
  })
  return row ?? noNodes
}

/** Returns how many rows the table `cluster` has; undefined if there is no such table. */
async function clusterRowCount(connection: PgConnection): Promise<number | undefined> {
  if (!(await hasSchema(connection))) return undefined
  const [row] = await connection.run<{ readonly rows: number }>({
    text: 'SELECT count(*)::int AS rows FROM cluster',
  })
  return row?.rows
}
