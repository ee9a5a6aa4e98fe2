/** The databases of a command, and connections for one step of it. Failures name the database and say what to do. */
import { type Config, ConfigError } from '../../config/config.ts'
import { messageOf } from '../../kit/errors.ts'
import { type ClusterRow, readCluster } from '../postgres/cluster-row.ts'
import { NoServerError, PgConnection } from '../postgres/pg-connection.ts'
import type { PgUrl } from '../../api/pg-url.ts'
import { insufficientPrivilege, sqlState } from '../postgres/sql-state.ts'
import { databaseProblems } from './database-problems.ts'

/** Returns the databases that `--database` names. */
export function databasesOf({ databases }: Config): readonly PgUrl[] {
  if (databases.length > 0) return databases
  throw new ConfigError(['--database: expected the URL of a database, got none'])
}

/**
 * Returns the rows of all databases, by their numbers.
 *
 * @throws ConfigError if they are not the databases of one cluster, in their order
 */
export async function readClusterRows(databases: readonly PgUrl[]): Promise<readonly ClusterRow[]> {
  const rows = await Promise.all(databases.map((database) => withDatabase(database, readCluster)))
  const problems = databaseProblems(
    databases.map((database, nth) => ({ database, row: rows[nth] })),
  )
  if (problems.length > 0) throw new ConfigError([...problems])
  return rows
}

/** Returns the lines before what a command says about one of several databases. */
export function headingOf(databases: readonly PgUrl[], number: number): readonly string[] {
  const database = databases[number]
  if (databases.length === 1 || database === undefined) return []
  return [
    ...(number === 0 ? [] : ['']),
    `database ${number + 1} of ${databases.length}: ${database.shown}`,
  ]
}

/** Runs `work` on a connection of its own, which is closed afterward. */
export async function withDatabase<Result>(
  database: PgUrl,
  work: (connection: PgConnection) => Promise<Result>,
): Promise<Result> {
  const connection = await connectionTo(database)
  try {
    return await named(database, work(connection))
  } finally {
    connection.close()
  }
}

/** Does something in one database after the other. */
export type ForEachDatabase = (
  step: (connection: PgConnection, number: number) => Promise<void>,
) => Promise<void>

/** Opens a connection to each database, and closes all of them after `work`. */
export async function withDatabases(
  databases: readonly PgUrl[],
  work: (forEach: ForEachDatabase) => Promise<void>,
): Promise<void> {
  const opened: { readonly database: PgUrl; readonly connection: PgConnection }[] = []
  try {
    for (const database of databases) {
      opened.push({ database, connection: await connectionTo(database) })
    }
    await work(async (step) => {
      for (const [number, { database, connection }] of opened.entries()) {
        await named(database, step(connection, number))
      }
    })
  } finally {
    for (const { connection } of opened) connection.close()
  }
}

function connectionTo(database: PgUrl): Promise<PgConnection> {
  return named(database, PgConnection.open({ database, name: 'postbote/command' }))
}

async function named<Result>(database: PgUrl, result: Promise<Result>): Promise<Result> {
  try {
    return await result
  } catch (error) {
    throw new Error(`${database.shown}: ${messageOf(error)}${adviceOn(error)}`, { cause: error })
  }
}

function adviceOn(error: unknown): string {
  if (error instanceof NoServerError) {
    return '; check --database, and whether the server accepts connections'
  }
  return sqlState(error) === insufficientPrivilege
    ? '; Postbote needs a role that may create tables and owns them'
    : ''
}
