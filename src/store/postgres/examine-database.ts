/**
 * Looks for what makes a database unsafe or slow for shards. Each finding is a sentence for the operator that says what to
 * do; nothing is changed.
 */
import { pgSnapshotWarnS } from '../limits.ts'
import { type ClusterRow, readCluster } from './cluster-row.ts'
import { shardsOfDatabase } from '../database-of-shard.ts'
import { PgConnection } from './pg-connection.ts'
import { messageOf } from '../../message-of.ts'
import type { PgUrl } from './pg-url.ts'

export interface Finding {
  /** `bad`: acknowledged updates may be lost, or nothing works. `warn`: something is slow or will be. */
  readonly level: 'good' | 'warn' | 'bad'
  readonly text: string
}

/** The oldest version of which all statements are known to work. */
const versionMin = 150_000
/** A server has about this many connections of its own and for operators. */
const connectionsBesides = 10

interface Facts {
  readonly version: number
  readonly version_text: string
  readonly fsync: string
  readonly full_page_writes: string
  readonly standby_names: string
  readonly synchronous_standbys: number
  readonly connections_max: number
  readonly oldest_snapshot_s: number | null
  readonly prepared: number
  readonly dead_slots: number
  readonly may_create: boolean
  readonly [column: string]: unknown
}

const factsQuery = `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS version_text,
current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
current_setting('synchronous_standby_names') AS standby_names,
(SELECT count(*)::int FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS synchronous_standbys,
current_setting('max_connections')::int AS connections_max,
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

/** Examines the primary of the database. An unusable one is a finding, too. */
export async function examineDatabase(database: PgUrl): Promise<ExaminedDatabase> {
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
      const cluster = await readCluster(connection)
      const ofCluster = await clusterFindings(connection, cluster, facts?.connections_max ?? 0)
      return { findings: [...ofServer, ...ofCluster], cluster }
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
  const { version, fsync, full_page_writes: pages, standby_names: names } = facts
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
    standbyFinding(names, facts.synchronous_standbys),
  ]
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

function standbyFinding(names: string, connected: number): Finding {
  if (names === '') return warn(noStandby)
  if (connected === 0)
    return bad(
      `no synchronous standby is connected (synchronous_standby_names = ${names}): nothing is acknowledged until one is`,
    )
  return good(`${connected} synchronous standbys are connected`)
}

async function clusterFindings(
  connection: PgConnection,
  cluster: ClusterRow,
  connectionsMax: number,
): Promise<readonly Finding[]> {
  const [rows] = await connection.run<{ readonly shards: number; readonly foreign: number }>({
    text: `SELECT (SELECT count(*)::int FROM shard) AS shards,
(SELECT count(*)::int FROM pg_class WHERE oid IN (SELECT format('%I', kind || '_' || shard)::regclass FROM shard, unnest(ARRAY['u', 's', 'r']) kind)
  AND NOT pg_has_role(relowner, 'USAGE')) AS foreign`,
  })
  const { shards = 0, foreign = 0 } = rows ?? {}
  const own = shardsOfDatabase(cluster).length
  const all = cluster.databases === 1 ? `${own} shards` : `${own} of ${cluster.shards} shards`
  const found = [
    shards === own
      ? good(`cluster ${cluster.id} with ${all}`)
      : bad(
          `the cluster has ${own} shards in this database, and the table shard has ${shards} rows`,
        ),
  ]
  if (foreign > 0)
    found.push(bad(`${foreign} tables belong to another role: connect as their owner`))
  if (connectionsMax < own + connectionsBesides) {
    found.push(
      warn(
        `max_connections is ${connectionsMax}: ${own} shards need a connection each, and each worker up to 5 more`,
      ),
    )
  }
  return found
}

function good(text: string): Finding {
  return { level: 'good', text }
}

function warn(text: string): Finding {
  return { level: 'warn', text }
}

function bad(text: string): Finding {
  return { level: 'bad', text }
}
