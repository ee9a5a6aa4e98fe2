/** A PostgreSQL server with the tables of a cluster, and stores of its shards. */
import assert from 'node:assert/strict'
import { connectionName } from '../../src/store/postgres/claim-shard.ts'
import { commitSchema, createSchema, newCluster } from '../../src/store/postgres/create-schema.ts'
import { PgConnection } from '../../src/store/postgres/pg-connection.ts'
import { PgReaders } from '../../src/store/postgres/pg-readers.ts'
import { PgStore } from '../../src/store/postgres/pg-store.ts'
import { parsePgUrl, type PgUrl } from '../../src/store/postgres/pg-url.ts'
import { Postgres, type PostgresOptions } from './postgres.ts'

const shards = 64

export function databaseAt(url: string): PgUrl {
  const database = parsePgUrl(url)
  assert(database !== undefined, url)
  return database
}

/** Makes the tables of a cluster with one database. */
export async function initialize(database: PgUrl): Promise<void> {
  const connection = await PgConnection.open({ database, name: 'init' })
  for (const row of newCluster(shards, 1)) await createSchema(connection, row)
  await commitSchema(connection)
  connection.close()
}

export class PostgresShards {
  readonly server: Postgres
  readonly database: PgUrl
  #used = 0

  private constructor(server: Postgres) {
    this.server = server
    this.database = databaseAt(server.url())
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresShards> {
    const started = new PostgresShards(await Postgres.start(options))
    await initialize(started.database)
    return started
  }

  /** Returns a shard that was never opened. */
  nextShard(): number {
    assert(this.#used < shards, 'all shards are used')
    return this.#used++
  }

  storeOf(shard: number, owner: string, database = this.database): PgStore {
    const name = connectionName(owner)
    const readers = new PgReaders({ database, name: `${name}/read` })
    return new PgStore({ database, shard, owner: { node: owner, boot: owner }, readers })
  }

  async epochOf(shard: number): Promise<number> {
    const [row] = await this.server.query(`SELECT epoch FROM shard WHERE shard = ${shard}`)
    return Number(row?.['epoch'])
  }

  async setAlive(owner: string, isAlive: boolean): Promise<void> {
    await this.server.query(
      isAlive
        ? `INSERT INTO node VALUES ('${owner}', '${owner}', 0, '', 1, 'serving')`
        : `DELETE FROM node WHERE boot = '${owner}'`,
    )
  }

  /** How many connections have this name. */
  async connectionsOf(name: string): Promise<number> {
    const [row] = await this.server.query(
      `SELECT count(*) FROM pg_stat_activity WHERE application_name = '${name}'`,
    )
    return Number(row?.['count'])
  }

  async remove(): Promise<void> {
    await this.server.remove()
  }
}
