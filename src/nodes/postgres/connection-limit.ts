/**
 * How many connections a database allows its role, and how many its shards need: each shard one, each node one for its
 * heartbeats, and each worker of a node one to `pgReadersMax` to read, and one that watches the size of the database.
 */
import { pgReadersMax } from '../../store/limits.ts'
import { bad, type Finding, good, warn } from '../../kit/finding.ts'
import type { PgConnection } from './pg-connection.ts'

/** What limits the connections of the role most. */
export interface ConnectionLimit {
  readonly connections: number
  /** A sentence without its end: what the limit is, and where it is set. */
  readonly what: string
}

/** The nodes that use a database. */
export interface ConnectionUsers {
  readonly nodes: number
  readonly workers: number
}

/** Limits of -1 do not limit, and only that of the server holds for a superuser. */
const limitsQuery = `SELECT rolname AS role_name, datname AS database_name, rolsuper AS is_superuser,
rolconnlimit AS role, datconnlimit AS database, current_setting('max_connections')::int AS all,
current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0) AS reserved
FROM pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()`

interface LimitsRow {
  readonly role_name: string
  readonly database_name: string
  readonly is_superuser: boolean
  readonly role: number
  readonly database: number
  readonly all: number
  readonly reserved: number
  readonly [column: string]: unknown
}

export async function readConnectionLimit(connection: PgConnection): Promise<ConnectionLimit> {
  const [row] = await connection.run<LimitsRow>({ text: limitsQuery })
  if (row === undefined) throw new Error('the database did not name its role')
  const { role, database, all, reserved, is_superuser: isSuperuser } = row
  const forAll = isSuperuser ? all : all - reserved
  const limits = [
    { connections: forAll, what: `max_connections leaves ${forAll} for this role` },
    { connections: role, what: `the CONNECTION LIMIT of the role ${row.role_name} is ${role}` },
    {
      connections: database,
      what: `the CONNECTION LIMIT of the database ${row.database_name} is ${database}`,
    },
  ]
  return limits
    .filter(({ connections }, nth) => nth === 0 || (connections >= 0 && !isSuperuser))
    .reduce((least, each) => (each.connections < least.connections ? each : least))
}

/** Returns why a node alone cannot serve all shards of a database, or undefined if it can. */
export function connectionGap(limit: ConnectionLimit, shards: number): string | undefined {
  const { level, text } = connectionFinding(limit, shards, { nodes: 1, workers: 1 })
  return level === 'bad' ? text : undefined
}

/** Returns whether the connections that a database allows are enough for its shards and nodes. */
export function connectionFinding(
  { connections, what }: ConnectionLimit,
  shards: number,
  { nodes, workers }: ConnectionUsers,
): Finding {
  const least = shards + nodes + workers
  const most = least + workers * pgReadersMax
  if (connections >= most) return good(`${connections} connections are enough for the nodes`)
  const needed = `${shards} shards, ${nodes} ${nodes === 1 ? 'node' : 'nodes'} and ${workers} ${workers === 1 ? 'worker' : 'workers'} need ${least} to ${most} connections`
  return connections < least
    ? bad(`${what}, and ${needed}: shards cannot be opened or read; raise it`)
    : warn(`${what}, and ${needed}: raise it`)
}
