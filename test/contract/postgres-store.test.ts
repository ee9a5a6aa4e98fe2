/** The contract of stores, with PostgreSQL. */
import { test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import { PgReaders } from '../../src/nodes/postgres/pg-readers.ts'
import { PgStore } from '../../src/nodes/postgres/pg-store.ts'
import { parsePgUrl } from '../../src/api/pg-url.ts'
import { Postgres, postgresObstacle } from '../support/server/postgres.ts'
import { initialize } from '../support/server/postgres-shards.ts'
import { storeContract, type StoreHarness } from './store.ts'

/** More than the contract opens. */
const shards = 64

async function postgresHarness(): Promise<StoreHarness> {
  const server = await Postgres.start()
  const database = parsePgUrl(server.url())
  if (database === undefined) throw new Error('expected a URL')
  await initialize(database, shards)
  await server.query("INSERT INTO node VALUES ('test', 'boot', 0, '', 1, 'serving')")
  let count = 0
  const create = (): PgStore => {
    const owner = { node: 'test', boot: 'boot' }
    const readers = new PgReaders(database, 'read')
    return new PgStore({ clock: systemClock, database, shard: count++, owner, readers })
  }
  return {
    create,
    createBroken() {
      const shard = count
      const store = create()
      const broken = server.query(`ALTER TABLE shard RENAME TO hidden_${shard}`)
      // The store is opened after the statement.
      const open = store.open.bind(store)
      store.open = async () => {
        await broken
        return open()
      }
      const mend = async (): Promise<void> => {
        await server.query(`ALTER TABLE hidden_${shard} RENAME TO shard`)
      }
      return { store, mend }
    },
    cleanUp: () => server.remove(),
  }
}

const obstacle = postgresObstacle()
if (obstacle === undefined) storeContract('PgStore', postgresHarness)
else test('PgStore', { skip: obstacle }, () => undefined)
