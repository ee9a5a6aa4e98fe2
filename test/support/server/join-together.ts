/**
 * Lets nodes join the databases of a new cluster as if all came at the same moment, so that each takes its own shards at
 * once. Nodes that come one after the other leave all shards to the first one, which hands them over one at a time, and not
 * before the others have been there for ten seconds.
 */
import assert from 'node:assert/strict'
import { PgNodes } from '../../../src/nodes/postgres/pg-nodes.ts'
import { type TestDatabase, wait } from './database.ts'
import { databaseAt } from './postgres-shards.ts'

/** Far shorter than the time after which a node that stands still is evicted. */
const beatMs = 200

/** Calls `start`, which starts the nodes. Until it resolves, nodes without servers have all shards. */
export async function joinTogether(
  databases: readonly TestDatabase[],
  start: () => Promise<unknown>,
): Promise<void> {
  const keepers = await Promise.all(databases.map((database) => ShardKeeper.join(database)))
  try {
    await start()
  } finally {
    await Promise.all(keepers.map((keeper) => keeper.leave()))
  }
}

const self = { name: 'keeper', boot: 'keeper' }

/** A node without a server. */
class ShardKeeper {
  readonly #table: PgNodes
  readonly #beating: Promise<void>
  #isOver = false

  static async join({ postgres, name, url }: TestDatabase): Promise<ShardKeeper> {
    const table = new PgNodes(databaseAt(url), self.name)
    const refusal = await table.join({ ...self, address: '127.0.0.1:1', workers: 1 })
    assert.equal(refusal, undefined)
    await postgres.query('UPDATE shard SET node = n.name, boot = n.boot FROM node n', name)
    return new ShardKeeper(table)
  }

  private constructor(table: PgNodes) {
    this.#table = table
    this.#beating = this.#beat()
  }

  async leave(): Promise<void> {
    this.#isOver = true
    await this.#beating
    await this.#table.leave(self)
    this.#table.close()
  }

  async #beat(): Promise<void> {
    while (!this.#isOver) {
      // A node that has evicted this one has taken its shards, which then move later than otherwise.
      if (!(await this.#table.beat(self)).isMember) return
      await wait(beatMs)
    }
  }
}
