/** The database of a command, and a connection for one step of it. Failures name the database and say what to do. */
import { type Config, ConfigError } from '../config/config.ts'
import { messageOf } from '../message-of.ts'
import { NoServerError, PgConnection } from '../store/postgres/pg-connection.ts'
import type { PgUrl } from '../store/postgres/pg-url.ts'
import { insufficientPrivilege, sqlState } from '../store/postgres/sql-state.ts'

/** Returns the database that `--database` names. */
export function databaseOf({ database }: Config): PgUrl {
  if (database !== undefined) return database
  throw new ConfigError(['--database: expected the URL of a database, got none'])
}

/** Runs `work` on a connection of its own, which is closed afterward. */
export async function withDatabase<Result>(
  database: PgUrl,
  work: (connection: PgConnection) => Promise<Result>,
): Promise<Result> {
  let connection: PgConnection | undefined
  try {
    connection = await PgConnection.open({ database, name: 'postbote/command' })
    return await work(connection)
  } catch (error) {
    throw new Error(`${database.shown}: ${messageOf(error)}${adviceOn(error)}`, { cause: error })
  } finally {
    connection?.close()
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
