/** The contract of stores with a fence: in memory, and in PostgreSQL behind a proxy that cuts connections. */
import { test } from 'node:test'
import { CuttingProxy } from '../support/network/cutting-proxy.ts'
import { FencedMemoryShard } from '../support/store/fenced-memory-store.ts'
import { postgresObstacle } from '../support/server/postgres.ts'
import { databaseAt, PostgresShards } from '../support/server/postgres-shards.ts'
import { type FencedHarness, type FencedShard, fencedStoreContract } from './fenced-store.ts'
import { storeContract } from './store.ts'

function memoryShard(): FencedShard {
  const shard = new FencedMemoryShard()
  return {
    storeOf: (owner) => shard.storeOf(owner),
    async setAlive(owner, isAlive) {
      if (isAlive) shard.alive.add(owner)
      else shard.alive.delete(owner)
    },
    epoch: async () => shard.epoch,
    owner: async () => shard.owner,
    loseNextWrite: (fate) => (shard.nextFate = fate),
  }
}

async function postgresHarness(): Promise<FencedHarness> {
  const shards = await PostgresShards.start()
  const proxy = await CuttingProxy.start(shards.server.port)
  const database = databaseAt(`postgres://postbote@127.0.0.1:${proxy.port}/postgres`)
  return {
    createShard() {
      const shard = shards.nextShard()
      // Rows of nodes outlive a test, so every shard has owners of its own.
      const own = (owner: string): string => `${owner}-${shard}`
      return {
        storeOf: (owner) => shards.storeOf(shard, own(owner), { database }),
        setAlive: (owner, isAlive) => shards.setAlive(own(owner), isAlive),
        epoch: () => shards.epochOf(shard),
        async owner() {
          const [row] = await shards.server.query(`SELECT node FROM shard WHERE shard = ${shard}`)
          return String(row?.['node']).replace(`-${shard}`, '')
        },
        loseNextWrite: (fate) => proxy.cutNext(fate === 'stored' ? 'answer' : 'request'),
      }
    },
    async cleanUp() {
      proxy.close()
      await shards.remove()
    },
  }
}

fencedStoreContract('FencedMemoryStore', () => ({
  createShard: memoryShard,
  cleanUp: () => undefined,
}))

storeContract('FencedMemoryStore, opened by one owner', () => ({
  create: () => new FencedMemoryShard().storeOf('a'),
  createBroken() {
    const shard = new FencedMemoryShard()
    shard.owner = 'living'
    shard.alive.add('living')
    return { store: shard.storeOf('a'), mend: () => shard.alive.clear() }
  },
  cleanUp: () => undefined,
}))

const obstacle = postgresObstacle()
if (obstacle === undefined) fencedStoreContract('PgStore with several owners', postgresHarness)
else test('PgStore with several owners', { skip: obstacle }, () => undefined)
