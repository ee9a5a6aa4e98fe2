/** What the doctor looks for in the server of a database: versions, settings, standbys, and what keeps deleted rows. */
import type { Look, Looks } from './look.ts'

/** The oldest version of which all statements are known to work. */
const versionMin = 150_000

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

/** A row if the condition holds, with the value of which the sentence speaks. */
function ifSo(condition: string, found = "''"): string {
  return `SELECT ${found} AS found WHERE ${condition}`
}

/** A transaction that is open for longer is reported: what is deleted meanwhile stays. Measured: 4 times slower after 2 min. */
const pgSnapshotWarnS = 60

/** Also what a server says that starts. */
export const withoutStandby: Look = {
  sql: ifSo(`${standbyNames} = ''`),
  level: 'warn',
  sentence: () =>
    'synchronous_standby_names is empty: if the machine of the database is lost, so is what was acknowledged last; name a standby',
}

const looks: readonly Look[] = [
  {
    sql: ifSo(`${versionNumber} >= ${versionMin}`, version),
    level: 'good',
    sentence: ({ found }) => `PostgreSQL ${found}`,
  },
  {
    sql: ifSo(`${versionNumber} < ${versionMin}`, version),
    level: 'warn',
    sentence: ({ found }) => `PostgreSQL ${found} is older than any that was tested: 15`,
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
  withoutStandby,
  {
    sql: ifSo(`${standbyNames} <> '' AND NOT ${seesAll}`),
    level: 'warn',
    sentence: () =>
      'whether a synchronous standby is connected, and how long transactions are open, is hidden from this role: GRANT pg_read_all_stats to it',
  },
  {
    sql: ifSo(`${standbyNames} <> '' AND ${seesAll} AND ${standbys} = 0`, standbyNames),
    level: 'bad',
    sentence: ({ found }) =>
      `no synchronous standby is connected (synchronous_standby_names = ${found}): nothing is acknowledged until one is`,
  },
  {
    sql: ifSo(`${standbyNames} <> '' AND ${seesAll} AND ${standbys} > 0`, standbys),
    level: 'good',
    sentence: ({ found }) => `${found} synchronous standbys are connected`,
  },
  {
    sql: ifSo("current_setting('autovacuum') <> 'on'"),
    level: 'warn',
    sentence: () => 'autovacuum is off: deleted updates take room and time; set autovacuum = on',
  },
  {
    sql: ifSo(`${oldestSnapshotS} > ${pgSnapshotWarnS}`, oldestSnapshotS),
    level: 'warn',
    sentence: ({ found }) =>
      `a transaction has been open for ${found} s: updates that are deleted meanwhile take room and time; end it, and dump from a standby`,
  },
  {
    sql: ifSo(`${prepared} > 0`, prepared),
    level: 'warn',
    sentence: ({ found }) =>
      `${found} prepared transactions keep deleted updates: commit them or roll them back`,
  },
  {
    sql: ifSo(`${deadSlots} > 0`, deadSlots),
    level: 'warn',
    sentence: ({ found }) =>
      `${found} replication slots have no standby: they keep the log and deleted updates; drop them`,
  },
]

export const serverLooks: Looks = { looks }
