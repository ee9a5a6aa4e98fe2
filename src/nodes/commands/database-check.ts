/**
 * What a server checks in each of its databases before it joins: that they are those of one cluster, in their order, and
 * that they are replicated if they must be. A database that does not respond is checked when it does.
 */
import { AddedTypesError } from '../../kit/added-type.ts'
import type { Log } from '../../kit/surroundings.ts'
import { JoinRefusedError } from '../membership/join.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import { messageOf } from '../../kit/errors.ts'
import { shardsOfDatabase } from '../../store/database-of-shard.ts'
import { type ClusterRow, readCluster, SchemaError } from '../postgres/cluster-row.ts'
import type { PgUrl } from '../../api/pg-url.ts'
import { databaseProblems } from './database-problems.ts'

export class DatabaseCheck {
  readonly #config: Pick<Config, 'databases' | 'shards' | 'requireReplication'>
  readonly #log: Log
  /** By database; undefined as long as it has not responded. */
  readonly #rows: (ClusterRow | undefined)[]

  constructor(config: Pick<Config, 'databases' | 'shards' | 'requireReplication'>, log: Log) {
    this.#config = config
    this.#log = log
    this.#rows = config.databases.map(() => undefined)
  }

  /** By database; undefined for one that has not responded. */
  get rows(): readonly (ClusterRow | undefined)[] {
    return this.#rows
  }

  /** Whether a database has responded. */
  hasResponded(number: number): boolean {
    return this.#rows[number] !== undefined
  }

  /**
   * Checks all databases that respond, and logs the others.
   *
   * @returns the row of one of them
   * @throws ConfigError if one is wrong; Error if none responds
   */
  async all(): Promise<ClusterRow> {
    const { databases } = this.#config
    const results = await Promise.allSettled(
      databases.map(async (_, number) => {
        const gap = await this.#read(number)
        if (gap !== undefined) throw new ConfigError([gap])
      }),
    )
    const failures = results.map((result) => (result.status === 'rejected' ? result.reason : ''))
    const wrong = failures.find(isMisfit)
    if (wrong !== undefined) throw wrong
    const row = this.#rows.find((each) => each !== undefined)
    if (row === undefined) throw failures.length === 1 ? failures[0] : allAway(failures)
    this.#assertUsable()
    for (const number of databases.keys()) {
      if (this.hasResponded(number)) continue
      this.logOf(number).error({ error: messageOf(failures[number]) }, isAway)
    }
    return row
  }

  /** Checks a database that did not respond before. Rejects with the reason if it does not respond now. */
  async one(number: number): Promise<void> {
    const gap = await this.#read(number)
    // It may have just failed over, and get a standby again. The server must not end for that.
    if (gap !== undefined) throw new Error(gap)
    this.#assertUsable()
  }

  /** Returns a log that says which database the lines are about, if there are several. */
  logOf(number: number): Log {
    const { databases } = this.#config
    const log = this.#log
    const database = databases[number]?.shown
    if (databases.length === 1) return log
    return {
      debug: (fields, text) => log.debug({ database, ...fields }, text),
      info: (fields, text) => log.info({ database, ...fields }, text),
      warn: (fields, text) => log.warn({ database, ...fields }, text),
      error: (fields, text) => log.error({ database, ...fields }, text),
    }
  }

  /** Returns why the database cannot be used as it is: too few connections, or no replication, if that is required. */
  async #read(number: number): Promise<string | undefined> {
    const { databases, requireReplication } = this.#config
    const database = databases[number]
    if (database === undefined) throw new RangeError(`there is no database ${number}`)
    const { row, gap, connectionsGap } = await examined(database)
    const where = databases.length === 1 ? '' : `${database.shown}: `
    if (connectionsGap !== undefined) return `--database: ${where}${connectionsGap}`
    if (gap !== undefined) {
      if (requireReplication) return `--require-replication: ${where}${gap}`
      this.logOf(number).warn({}, gap)
    }
    this.#rows[number] = row
    return undefined
  }

  #assertUsable(): void {
    const { databases, shards } = this.#config
    const named = databases.map((database, number) => ({ database, row: this.#rows[number] }))
    const problems = databaseProblems(named)
    if (problems.length > 0) throw new ConfigError([...problems])
    const known = named.find(({ row }) => row !== undefined)
    if (shards === undefined || known?.row === undefined || shards === known.row.shards) return
    throw new ConfigError([
      `--shards ${shards}: expected ${known.row.shards}, the number of shards of ${known.database.shown}`,
    ])
  }
}

/** Whether this server does not belong to the database, so that waiting for the database changes nothing. */
export function isMisfit(error: unknown): boolean {
  if (error instanceof ConfigError || error instanceof JoinRefusedError) return true
  if (error instanceof AddedTypesError) return true
  // with-databases.ts puts the name of the database around what it caught.
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof SchemaError || cause instanceof AddedTypesError
}

const isAway = 'a database does not respond: its shards are served when it does'

function allAway(failures: readonly unknown[]): Error {
  return new Error(failures.map(messageOf).join('\n'), { cause: new AggregateError(failures) })
}

interface ExaminedDatabase {
  readonly row: ClusterRow
  /** Why the loss of its machine would lose updates, if it would. */
  readonly gap: string | undefined
  /** Why it cannot have all connections that it needs, if so. */
  readonly connectionsGap: string | undefined
}

async function examined(database: PgUrl): Promise<ExaminedDatabase> {
  const { withDatabase } = await import('./with-databases.ts')
  const { replicationGap } = await import('../postgres/examine-database.ts')
  const { connectionGap, readConnectionLimit } = await import('../postgres/connection-limit.ts')
  return withDatabase(database, async (connection) => {
    const row = await readCluster(connection)
    const limit = await readConnectionLimit(connection)
    return {
      row,
      gap: await replicationGap(connection),
      connectionsGap: connectionGap(limit, shardsOfDatabase(row).length),
    }
  })
}
