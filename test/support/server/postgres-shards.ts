/** A PostgreSQL server with the tables of a cluster, and stores of its shards. */
import assert from 'node:assert/strict'
import { systemClock } from '../../../src/kit/clock.ts'
import { connectionName } from '../../../src/nodes/postgres/claim-shard.ts'
import {
  commitSchema,
  createSchema,
  newCluster,
} from '../../../src/nodes/postgres/create-schema.ts'
import { PgConnection } from '../../../src/nodes/postgres/pg-connection.ts'
import { PgReaders } from '../../../src/nodes/postgres/pg-readers.ts'
import { PgStore } from '../../../src/nodes/postgres/pg-store.ts'
import { parsePgUrl, type PgUrl } from '../../../src/api/pg-url.ts'
import { Postgres, type PostgresOptions } from './postgres.ts'

const shardsOfServer = 64

export function databaseAt(url: string): PgUrl {
  const database = parsePgUrl(url)
  assert(database !== undefined, url)
  return database
}

/** Makes the tables of a cluster with one database, as `postbote database init` does. */
export async function initialize(database: PgUrl, shards: number): Promise<void> {
  const connection = await PgConnection.open({ database, name: 'init' })
  for (const row of newCluster(shards, 1)) await createSchema(connection, row)
  await commitSchema(connection)
  connection.close()
}

interface StoreParts {
  readonly database?: PgUrl
  readonly readers?: PgReaders
}

export class PostgresShards {
  readonly server: Postgres
  readonly database: PgUrl
  /** The owners that are alive although they are opening nothing. */
  readonly #alive = new Set<string>()
  #used = 0

  private constructor(server: Postgres) {
    this.server = server
    this.database = databaseAt(server.url())
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresShards> {
    const started = new PostgresShards(await Postgres.start(options))
    await initialize(started.database, shardsOfServer)
    return started
  }

  /** Returns a shard that was never opened. */
  nextShard(): number {
    assert(this.#used < shardsOfServer, 'all shards are used')
    return this.#used++
  }

  /** Returns a store of an owner, which is alive while it opens the store, and also later after `setAlive`. */
  storeOf(
    shard: number,
    owner: string,
    { database = this.database, readers = this.readersOf(owner, database) }: StoreParts = {},
  ): PgStore {
    const named = { node: owner, boot: owner }
    const store = new PgStore({ clock: systemClock, database, shard, owner: named, readers })
    const open = store.open.bind(store)
    store.open = async () => {
      await this.#addNode(owner)
      try {
        await open()
      } finally {
        if (!this.#alive.has(owner)) await this.#removeNode(owner)
      }
    }
    return store
  }

  readersOf(owner: string, database = this.database): PgReaders {
    return new PgReaders(database, `${connectionName(owner)}/read`)
  }

  async epochOf(shard: number): Promise<number> {
    const [row] = await this.server.query(`SELECT epoch FROM shard WHERE shard = ${shard}`)
    return Number(row?.['epoch'])
  }

  async setAlive(owner: string, isAlive: boolean): Promise<void> {
    if (isAlive) this.#alive.add(owner)
    else this.#alive.delete(owner)
    await (isAlive ? this.#addNode(owner) : this.#removeNode(owner))
  }

  async #addNode(owner: string): Promise<void> {
    await this.server.query(
      `INSERT INTO node VALUES ('${owner}', '${owner}', 0, '', 1, 'serving') ON CONFLICT DO NOTHING`,
    )
  }

  async #removeNode(owner: string): Promise<void> {
    await this.server.query(`DELETE FROM node WHERE boot = '${owner}'`)
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
