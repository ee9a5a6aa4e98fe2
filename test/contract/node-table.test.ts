/** The contract of the table of nodes, in memory and in PostgreSQL, and what only PostgreSQL has: locks and connections. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { Client } from 'pg'
import { claimShard } from '../../src/nodes/postgres/claim-shard.ts'
import { NotOwnerError } from '../../src/store/store-engine.ts'
import { PgConnection } from '../../src/nodes/postgres/pg-connection.ts'
import { PgNodes } from '../../src/nodes/postgres/pg-nodes.ts'
import type { NodeIdentity } from '../../src/store/node-table.ts'
import { MemoryNodeTable } from '../support/server/memory-node-table.ts'
import { postgresObstacle } from '../support/server/postgres.ts'
import { PostgresShards } from '../support/server/postgres-shards.ts'
import { until } from '../support/kit/until.ts'
import { type NodeTableHarness, nodeTableContract } from './node-table.ts'

const memoryShards = 4

function memoryHarness(): NodeTableHarness {
  const table = new MemoryNodeTable(memoryShards)
  return {
    shards: memoryShards,
    connect: () => table.connect(),
    add: async (node, state) => table.add(node, state),
    async claim(shard, owner) {
      const epoch = table.shards[shard]?.epoch ?? ''
      return table.claimNow({ shard, epoch }, owner)
    },
    async clear() {
      for (const row of table.rows) table.leaveNow(row)
      table.resetShards(memoryShards)
    },
    cleanUp: () => undefined,
  }
}

async function postgresHarness(): Promise<NodeTableHarness> {
  const shards = await PostgresShards.start()
  const { server, database } = shards
  const connected: PgNodes[] = []
  return {
    shards: 64,
    connect() {
      const table = new PgNodes(database, `boot${connected.length}`)
      connected.push(table)
      return table
    },
    async add({ name, boot, address, workers }, state = 'serving') {
      const values = `'${name}', '${boot}', 0, '${address}', ${workers}, '${state}'`
      await server.query(`INSERT INTO node VALUES (${values})`)
    },
    claim: (shard, owner) => claim(shards, shard, owner),
    async clear() {
      await server.query("DELETE FROM node; UPDATE shard SET epoch = 0, node = '', boot = ''")
    },
    async cleanUp() {
      for (const table of connected) table.close()
      await server.remove()
    },
  }
}

async function claim(
  { database }: PostgresShards,
  shard: number,
  { name: node, boot }: NodeIdentity,
): Promise<boolean> {
  const connection = await PgConnection.open({ database, name: 'claim' })
  try {
    await claimShard(connection, shard, { node, boot })
    return true
  } catch (error) {
    if (error instanceof NotOwnerError) return false
    throw error
  } finally {
    connection.close()
  }
}

nodeTableContract('MemoryNodeTable', memoryHarness)

const obstacle = postgresObstacle()
if (obstacle === undefined) nodeTableContract('PgNodes', postgresHarness)
else test('PgNodes', { skip: obstacle }, () => undefined)

describe('PgNodes, locks and connections', { skip: obstacle }, () => {
  let shards: PostgresShards
  before(async () => {
    shards = await PostgresShards.start()
  })
  after(() => shards.remove())

  const joining = { name: 'joining', boot: 'joining', address: '10.0.0.5:8450', workers: 1 }

  /** Runs statements on a connection that stays open until it is ended. */
  async function session(...statements: readonly string[]): Promise<Client> {
    const client = new Client({ connectionString: shards.server.url() })
    client.on('error', () => undefined)
    await client.connect()
    for (const statement of statements) await client.query(statement)
    return client
  }

  test('nodes that join at once bring a table of an earlier version up to date, and that version goes on with it', async (t) => {
    await shards.server.query('ALTER TABLE node DROP COLUMN clock')
    const [a, b] = [new PgNodes(shards.database, 'a'), new PgNodes(shards.database, 'b')]
    t.after(async () => {
      for (const table of [a, b]) table.close()
      await shards.server.query('DELETE FROM node')
    })
    assert.deepEqual((await a.read()).nodes, [])
    const other = { ...joining, name: 'other', boot: 'other' }
    assert.deepEqual(await Promise.all([a.join(joining), b.join(other)]), [undefined, undefined])
    const clock = { skewMs: 1, lagMs: 2 }
    await a.beat(joining, clock)
    assert.deepEqual((await b.read()).nodes[0]?.clock, clock)
    await shards.server.query("INSERT INTO node VALUES ('c', 'c', 0, 'c:8450', 1, 'serving')")
  })

  test('a node that stands still while it joins holds up no heartbeat', async () => {
    await shards.setAlive('a', true)
    const [a, b] = [new PgNodes(shards.database, 'a'), new PgNodes(shards.database, 'b')]
    // Between BEGIN and COMMIT, as if the node were stopped there.
    await shards.server.query(
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.9); RETURN NEW; END $$;
      CREATE TRIGGER slow BEFORE INSERT ON node FOR EACH ROW EXECUTE FUNCTION slow();
      UPDATE node SET address = '10.0.0.4:8450'`,
    )
    let hasJoined = false
    const slow = b.join(joining).finally(() => (hasJoined = true))
    await until(async () => (await shards.connectionsOf('postbote/b/node')) === 1)
    for (let beat = 0; beat < 5; beat++) {
      assert.equal((await a.beat({ name: 'a', boot: 'a' })).isMember, true)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    assert.deepEqual(await a.join({ ...joining, name: 'later', boot: 'later' }), { reason: 'busy' })
    assert.equal(hasJoined, false)
    assert.equal(await slow, undefined)
    await shards.server.query('DROP TRIGGER slow ON node; DELETE FROM node')
    a.close()
    b.close()
  })

  test('a shard whose row is locked is not handed over, and the connection stays usable', async () => {
    for (const name of ['a', 'b']) await shards.setAlive(name, true)
    assert.equal(await claim(shards, 0, { name: 'a', boot: 'a' }), true)
    const table = new PgNodes(shards.database, 'a')
    const writing = await session('BEGIN', 'SELECT FROM shard WHERE shard = 0 FOR SHARE')
    const [from, to] = ['a', 'b'].map((name) => ({ name, boot: name }))
    assert(from !== undefined && to !== undefined)
    assert.equal(await table.handOver(0, from, to), false)
    await writing.end()
    assert.equal(await table.handOver(0, from, to), true)
    for (const name of ['a', 'b']) await shards.setAlive(name, false)
    table.close()
  })

  test('a shard that its owner has opened again meanwhile is not handed over', async () => {
    for (const name of ['a', 'b']) await shards.setAlive(name, true)
    const [from, to] = ['a', 'b'].map((name) => ({ name, boot: name }))
    assert(from !== undefined && to !== undefined)
    await claim(shards, 1, from)
    const table = new PgNodes(shards.database, 'a')
    await table.read()
    const waiting = async (count: number): Promise<void> =>
      until(async () => {
        const lock = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return (await shards.server.query(lock)).length === count
      })
    const writing = await session('BEGIN', 'SELECT FROM shard WHERE shard = 1 FOR SHARE')
    const opening = claim(shards, 1, from)
    await waiting(1)
    const handing = table.handOver(1, from, to)
    await waiting(2)
    await writing.end()
    assert.deepEqual([await opening, await handing], [true, false])
    assert.equal((await table.read()).shards[1]?.boot, 'a')
    for (const name of ['a', 'b']) await shards.setAlive(name, false)
    table.close()
  })

  test('a table whose connection has ended opens another one, and listens on it, too', async () => {
    const table = new PgNodes(shards.database, 'cut')
    let told = 0
    table.onChange = () => void told++
    await table.read()
    await shards.server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postbote/cut/node'`,
    )
    await until(() =>
      table.read().then(
        () => true,
        () => false,
      ),
    )
    await shards.server.query('NOTIFY postbote')
    await until(() => told > 0)
    table.close()
  })
})
