/**
 * Looks for what makes a database unsafe or slow for shards. Each finding is a sentence for the operator that says what to
 * do; nothing is changed.
 */
import { type Clock, waitingClock } from '../../kit/clock.ts'
import { messageOf } from '../../kit/text/message-of.ts'
import { shardsOfDatabase } from '../../store/database-of-shard.ts'
import { type ClusterRow, hasSchema, readCluster } from './cluster-row.ts'
import { connectionFinding, type ConnectionUsers, readConnectionLimit } from './connection-limit.ts'
import { examineRows } from './examine-rows.ts'
import { ExaminedTables } from './examine-tables.ts'
import { bad, type Finding, good } from '../../kit/finding.ts'
import { PgConnection } from './pg-connection.ts'
import type { PgUrl } from '../../api/pg-url.ts'

/** The oldest version of which all statements are known to work. */
const versionMin = 150_000

/** Something to look for in the server of a database. */
interface Look {
  /** Gives the text of which the sentence speaks, or NULL if there is nothing to say. */
  readonly sql: string
  readonly level: Finding['level']
  readonly sentence: (found: string) => string
}

const version = "current_setting('server_version')"
const versionNumber = "current_setting('server_version_num')::int"
const standbyNames = "current_setting('synchronous_standby_names')"
const standbys = "(SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))"
/** Whether the role sees the standbys and what others have open. */
const seesAll = "pg_has_role('pg_read_all_stats', 'USAGE')"
const prepared = '(SELECT count(*) FROM pg_prepared_xacts)'
const deadSlots = '(SELECT count(*) FROM pg_replication_slots WHERE NOT active)'
const oldestSnapshotS = `(SELECT extract(epoch FROM max(now() - xact_start))::int FROM pg_stat_activity
WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend')`

function ifSo(condition: string, text = "''"): string {
  return `CASE WHEN ${condition} THEN ${text} END`
}

const noStandby =
  'synchronous_standby_names is empty: if the machine of the database is lost, so is what was acknowledged last; name a standby'

/** A transaction that is open for longer is reported: what is deleted meanwhile stays. Measured: 4 times slower after 2 min. */
const pgSnapshotWarnS = 60

/** The findings come in this order. */
const looks: readonly Look[] = [
  {
    sql: ifSo(`${versionNumber} >= ${versionMin}`, version),
    level: 'good',
    sentence: (found) => `PostgreSQL ${found}`,
  },
  {
    sql: ifSo(`${versionNumber} < ${versionMin}`, version),
    level: 'warn',
    sentence: (found) => `PostgreSQL ${found} is older than any that was tested: 15`,
  },
  { sql: ifSo("current_setting('fsync') = 'on'"), level: 'good', sentence: () => 'fsync is on' },
  {
    sql: ifSo("current_setting('fsync') <> 'on'"),
    level: 'bad',
    sentence: () => 'fsync is off: a power loss destroys the database; set fsync = on',
  },
  {
    sql: ifSo("current_setting('full_page_writes') = 'on'"),
    level: 'good',
    sentence: () => 'full_page_writes is on',
  },
  {
    sql: ifSo("current_setting('full_page_writes') <> 'on'"),
    level: 'bad',
    sentence: () =>
      'full_page_writes is off: a power loss may damage tables, unless the file system writes pages atomically',
  },
  { sql: ifSo(`${standbyNames} = ''`), level: 'warn', sentence: () => noStandby },
  {
    sql: ifSo(`${standbyNames} <> '' AND NOT ${seesAll}`),
    level: 'warn',
    sentence: () =>
      'whether a synchronous standby is connected, and how long transactions are open, is hidden from this role: GRANT pg_read_all_stats to it',
  },
  {
    sql: ifSo(`${standbyNames} <> '' AND ${seesAll} AND ${standbys} = 0`, standbyNames),
    level: 'bad',
    sentence: (found) =>
      `no synchronous standby is connected (synchronous_standby_names = ${found}): nothing is acknowledged until one is`,
  },
  {
    sql: ifSo(`${standbyNames} <> '' AND ${seesAll} AND ${standbys} > 0`, standbys),
    level: 'good',
    sentence: (found) => `${found} synchronous standbys are connected`,
  },
  {
    sql: ifSo("current_setting('autovacuum') <> 'on'"),
    level: 'warn',
    sentence: () => 'autovacuum is off: deleted updates take room and time; set autovacuum = on',
  },
  {
    sql: ifSo(`${oldestSnapshotS} > ${pgSnapshotWarnS}`, oldestSnapshotS),
    level: 'warn',
    sentence: (found) =>
      `a transaction has been open for ${found} s: updates that are deleted meanwhile take room and time; end it, and dump from a standby`,
  },
  {
    sql: ifSo(`${prepared} > 0`, prepared),
    level: 'warn',
    sentence: (found) =>
      `${found} prepared transactions keep deleted updates: commit them or roll them back`,
  },
  {
    sql: ifSo(`${deadSlots} > 0`, deadSlots),
    level: 'warn',
    sentence: (found) =>
      `${found} replication slots have no standby: they keep the log and deleted updates; drop them`,
  },
]

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

/** The doctor waits this long for a response: a busy database is one that it is asked about. Chosen. */
const pgDoctorStatementMs = 30_000

/** Examines the primary of the database. An unusable one is a finding, too. */
export async function examineDatabase(
  database: PgUrl,
  options: ExaminationOptions,
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
    const ofServer = [server, ...(await serverFindings(connection))]
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

async function serverFindings(connection: PgConnection): Promise<readonly Finding[]> {
  const columns = looks.map(({ sql }) => `(${sql})::text`).join(', ')
  const [row] = await connection.run<{ readonly found: readonly (string | null)[] }>({
    text: `SELECT ARRAY[${columns}] AS found`,
  })
  return looks.flatMap(({ level, sentence }, nth) => {
    const found = row?.found[nth] ?? undefined
    return found === undefined ? [] : [{ level, text: sentence(found) }]
  })
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
