/** What the contract of fenced stores leaves to PostgreSQL: locks, warnings, refusals, and claims that wait. */
import assert from 'node:assert/strict'
import { after, before, describe, test, type TestContext } from 'node:test'
import { kinds } from '../../src/shard/kinds.ts'
import { claimStatement } from '../../src/nodes/postgres/named-statement.ts'
import { PgConnection } from '../../src/nodes/postgres/pg-connection.ts'
import { connectionName, writerName } from '../../src/nodes/postgres/claim-shard.ts'
import { reopenWaitMs } from '../../src/shard/shard-recovery.ts'
import { pgReadersMax } from '../../src/store/limits.ts'
import { type Store, type StoreOperation, WriteRefused } from '../../src/store/store.ts'
import { staleWrites, startWitness, witnessSettings } from '../nemeses/epoch-witness.ts'
import { CuttingProxy } from '../support/network/cutting-proxy.ts'
import { treeOf } from '../support/kit/processes-below.ts'
import { signalAll } from '../support/server/database.ts'
import { type Postgres, postgresObstacle } from '../support/server/postgres.ts'
import { databaseAt, PostgresShards } from '../support/server/postgres-shards.ts'
import { until } from '../support/kit/until.ts'
import { key, put } from './store.ts'

/** A group with records in all three tables. */
const group: readonly StoreOperation[] = [
  { type: 'put', key: kinds.update.key(1, 1), value: Buffer.from('new') },
  put('s1', 'new'),
  put('b1', 'new'),
]

async function countOf(store: Store): Promise<number> {
  const found = await store.getMany([kinds.update.key(1, 1), key('s1'), key('b1')])
  return found.filter((value) => value !== undefined).length
}

function isUnknown(error: unknown): boolean {
  return error instanceof Error && !(error instanceof WriteRefused)
}

const obstacle = postgresObstacle()

describe('PgStore', { skip: obstacle }, () => {
  let shards: PostgresShards
  before(async () => {
    shards = await PostgresShards.start({ settings: witnessSettings })
    await startWitness(shards.server)
  })
  after(() => shards.remove())

  async function opened(shard: number, owner: string): Promise<Store> {
    const store = shards.storeOf(shard, owner)
    await store.open()
    return store
  }

  /** Runs `body` whenever a row of the table is inserted or updated. */
  async function onWrite(table: string, event: 'INSERT' | 'UPDATE', body: string): Promise<void> {
    const name = `${table}_${event}`.toLowerCase()
    await shards.server.query(
      `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body}; RETURN NEW; END $$;
      CREATE TRIGGER ${name} BEFORE ${event} ON ${table} FOR EACH ROW EXECUTE FUNCTION ${name}()`,
    )
  }

  /** Whether a statement of this connection waits for something of this kind. */
  async function isWaiting(name: string, kind: 'Lock' | 'Timeout'): Promise<boolean> {
    const rows = await shards.server.query(
      `SELECT FROM pg_stat_activity WHERE application_name = '${name}' AND wait_event_type = '${kind}'`,
    )
    return rows.length === 1
  }

  /** Resolves when a statement of this connection has begun to sleep. */
  function untilAsleep(name: string): Promise<void> {
    return until(() => isWaiting(name, 'Timeout'))
  }

  test('a claim that waits too long ends the connection of the old owner to this shard, and succeeds', async () => {
    const [shard, other] = [shards.nextShard(), shards.nextShard()]
    await shards.setAlive('frozen', true)
    const stores = await Promise.all([opened(shard, 'frozen'), opened(other, 'frozen')])
    const [old, neighbor] = stores
    await shards.setAlive('frozen', false)
    await onWrite(`r_${shard}`, 'INSERT', 'PERFORM pg_sleep(60)')
    const name = writerName('frozen', shard)
    const writing = assert.rejects(old.write(group, { sync: true }), isUnknown)
    await untilAsleep(name)
    const next = await opened(shard, 'next')
    assert.equal(await shards.connectionsOf(name), 0)
    await writing
    assert.equal(await countOf(next), 0)
    await neighbor.write(group, { sync: true })
    assert.equal(await countOf(neighbor), 3)
    await Promise.all([...stores, next].map((store) => store.close()))
  })

  test('a claim waits for a write under way: what is read after it is final', async () => {
    const shard = shards.nextShard()
    const old = await opened(shard, 'slow')
    const gate = await PgConnection.open({ database: shards.database, name: 'gate' })
    await gate.run({ text: `SELECT pg_advisory_lock(${shard})` })
    const wait = `SET LOCAL lock_timeout = 0; PERFORM pg_advisory_xact_lock(${shard})`
    await onWrite(`r_${shard}`, 'INSERT', wait)
    const writing = old.write(group, { sync: true }).then(
      () => [3],
      (error: unknown) => (isUnknown(error) ? [0, 3] : [0]),
    )
    await until(() => isWaiting(writerName('slow', shard), 'Lock'))
    let isRead = false
    const read = async () => {
      const next = await opened(shard, 'next')
      return { next, count: await countOf(next) }
    }
    const reading = read().finally(() => (isRead = true))
    // On a busy machine the claim may have ended the write meanwhile.
    await until(async () => isRead || (await isWaiting(writerName('next', shard), 'Lock')))
    gate.close()
    const { next, count } = await reading
    assert((await writing).includes(count), `${count} were written`)
    assert.equal(await countOf(next), count)
    await Promise.all([old.close(), next.close()])
  })

  test('a store whose connection ends with the response to its claim is not open, and can be opened again', async () => {
    const shard = shards.nextShard()
    const readers = shards.readersOf('ended')
    const enter = readers.enter.bind(readers)
    readers.enter = (writer) => {
      writer.fail(new Error('the server has ended'))
      readers.enter = enter
      return enter(writer)
    }
    const store = shards.storeOf(shard, 'ended', { readers })
    await assert.rejects(store.open(), /ended with the claim/)
    await store.open()
    await store.write(group)
    assert.equal(await countOf(store), 3)
    await store.close()
  })

  test('a write that succeeds with a warning acknowledges nothing, and no later one does', async () => {
    const shard = shards.nextShard()
    const store = await opened(shard, 'warned')
    await onWrite(`r_${shard}`, 'INSERT', "RAISE WARNING 'canceling wait for replication'")
    await assert.rejects(
      store.write(group, { sync: true }),
      (error) => isUnknown(error) && /the database warned: canceling wait/.test(String(error)),
    )
    await assert.rejects(store.write([put('s2', 'later')], { sync: true }))
    await store.close()
    await store.open()
    assert.equal(await countOf(store), 3)
    assert.deepEqual(await store.getMany([key('s2')]), [undefined])
    await store.write([put('s2', 'later')], { sync: true })
    await store.close()
  })

  test('a group of which the database refuses one record is refused, and nothing of it is stored', async () => {
    const shard = shards.nextShard()
    const store = await opened(shard, 'refused')
    await onWrite(
      `r_${shard}`,
      'INSERT',
      "RAISE EXCEPTION 'the disk is full' USING ERRCODE = '53100'",
    )
    await assert.rejects(store.write(group, { sync: true }), (error) => {
      return error instanceof WriteRefused && /the disk is full/.test(error.message)
    })
    assert.equal(await countOf(store), 0)
    await store.close()
  })

  test('a group that would replace an update and is refused then is refused, too', async () => {
    const shard = shards.nextShard()
    const store = await opened(shard, 'replacing')
    await store.write(group, { sync: true })
    await onWrite(
      `u_${shard}`,
      'UPDATE',
      "RAISE EXCEPTION 'the disk is full' USING ERRCODE = '53100'",
    )
    const again = [...group, put('b2', 'second')]
    await assert.rejects(store.write(again, { sync: true }), WriteRefused)
    assert.deepEqual(await store.getMany([key('b2')]), [undefined])
    await store.close()
  })

  test('a write that waits too long for a row is refused, and nothing of it is stored', async () => {
    const shard = shards.nextShard()
    const store = await opened(shard, 'locked')
    await store.write([put('s1', 'old')], { sync: true })
    const locking = shards.server.query(
      `BEGIN; SELECT FROM s_${shard} FOR UPDATE; SELECT pg_sleep(60)`,
    )
    const ended = assert.rejects(locking, /terminating connection/)
    await untilAsleep('')
    await assert.rejects(store.write(group, { sync: true }), WriteRefused)
    await shards.server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`,
    )
    await ended
    assert.equal(await countOf(store), 1)
    await store.close()
  })

  test('nothing is committed under an epoch after the next claim, and the witness would see it', async () => {
    const shard = shards.nextShard()
    const old = await opened(shard, 'old')
    await old.write(group, { sync: true })
    const next = await opened(shard, 'next')
    await assert.rejects(old.write([put('s2', 'late')], { sync: true }), WriteRefused)
    await next.write([put('s2', 'new')], { sync: true })
    await Promise.all([old.close(), next.close()])
    assert.deepEqual(await staleWrites(shards.server), [])
    // Without the lock of a group, it can be under way while the shard is claimed.
    const { database } = shards
    const writer = await PgConnection.open({ database, name: 'unfenced' })
    const insert = `INSERT INTO r_${shard} VALUES ('late', '')`
    await shards.setAlive('unfenced', true)
    await writer.run({ text: claimStatement }, [shard, 'unfenced', 'unfenced', 2])
    await shards.setAlive('unfenced', false)
    for (const text of ['BEGIN', insert]) await writer.run({ text })
    const last = await opened(shard, 'last')
    await writer.run({ text: 'COMMIT' })
    writer.close()
    await last.close()
    assert.deepEqual(await staleWrites(shards.server), [`shard ${shard}, epoch 3`])
  })

  /** Opens a store that has all of its connections for reading, and returns the processes that serve these. */
  async function openedReading(shard: number, owner: string) {
    const store = await opened(shard, owner)
    await store.write(group, { sync: true })
    for (let nth = 0; nth < pgReadersMax; nth++) assert.equal(await countOf(store), 3)
    const readers = `FROM pg_stat_activity WHERE application_name = '${connectionName(owner)}/read'`
    const rows = await shards.server.query(`SELECT pid ${readers}`)
    assert.equal(rows.length, pgReadersMax)
    return { store, pids: rows.map((row) => Number(row['pid'])) }
  }

  test('reads whose connections are silent are made again on others, also those that were waiting for them', async () => {
    const { store, pids } = await openedReading(shards.nextShard(), 'silent')
    signalAll(pids, 'SIGSTOP')
    try {
      const counts = Array.from({ length: 3 * pgReadersMax }, () => countOf(store))
      assert.deepEqual(new Set(await Promise.all(counts)), new Set([3]))
    } finally {
      signalAll(pids, 'SIGCONT')
    }
    await store.close()
  })

  test('a read whose connection is lost before its response is made again', async (t) => {
    const proxy = await CuttingProxy.start(shards.server.port)
    t.after(() => proxy.close())
    const { port } = shards.server
    const database = databaseAt(shards.server.url().replace(`:${port}`, `:${proxy.port}`))
    const store = shards.storeOf(shards.nextShard(), 'cut', { database })
    await store.open()
    await store.write(group)
    for (let nth = 0; nth < pgReadersMax; nth++) assert.equal(await countOf(store), 3)
    for (const cut of ['request', 'answer'] as const) {
      proxy.cutNext(cut)
      assert.equal(await countOf(store), 3)
    }
    await store.close()
  })

  test('a read that the database refuses is not made again', async () => {
    const shard = shards.nextShard()
    const store = await opened(shard, 'odd')
    await shards.server.query(`ALTER TABLE s_${shard} RENAME TO elsewhere`)
    const startMs = performance.now()
    await assert.rejects(store.getMany([key('s1')]), /does not exist/)
    assert(performance.now() - startMs < reopenWaitMs)
    await shards.server.query(`ALTER TABLE elsewhere RENAME TO s_${shard}`)
    assert.deepEqual(await store.getMany([key('s1')]), [undefined])
    await store.close()
  })

  test('a read of a database that is silent fails in time, with the reason, and the store is usable afterward', async () => {
    const { store } = await openedReading(shards.nextShard(), 'frozen-reads')
    const pids = treeOf(shards.server.pid)
    const startMs = performance.now()
    signalAll(pids, 'SIGSTOP')
    try {
      await assert.rejects(countOf(store), /timeout/)
    } finally {
      signalAll(pids, 'SIGCONT')
    }
    assert(performance.now() - startMs < 2 * reopenWaitMs)
    assert.equal(await countOf(store), 3)
    await store.close()
  })

  test('a write whose response does not come is not made again', async () => {
    const shard = shards.nextShard()
    const store = await opened(shard, 'slow-write')
    await onWrite(`r_${shard}`, 'INSERT', 'PERFORM pg_sleep(60)')
    await assert.rejects(
      store.write(group, { sync: true }),
      (error) => isUnknown(error) && /timeout/.test(String(error)),
    )
    await assert.rejects(store.write(group, { sync: true }), WriteRefused)
    await store.close()
  })

  test('a shard that the database does not have cannot be opened', async () => {
    await assert.rejects(shards.storeOf(64, 'odd').open(), /has no shard 64/)
  })
})

test('a commit whose wait for the standby is canceled acknowledges nothing', {
  skip: obstacle,
}, async (t) => {
  const { server, ...rest } = await startWithStandby(t)
  const store: Store = rest.store
  await store.open()
  rest.freezeStandby()
  const canceled = until(async () => {
    const waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    return (await server.query(`SELECT pg_cancel_backend(pid) ${waiting}`)).length === 1
  })
  await assert.rejects(store.write(group, { sync: true }), /canceling wait for synchronous/)
  await canceled
  rest.thawStandby()
  await store.close()
  await store.open()
  assert.equal(await countOf(store), 3)
  await store.close()
})

interface WithStandby {
  readonly server: Postgres
  readonly store: Store
  freezeStandby(): void
  thawStandby(): void
}

/** Starts a server whose commits wait for a standby. */
async function startWithStandby(t: TestContext): Promise<WithStandby> {
  const shards = await PostgresShards.start()
  const { server } = shards
  const standby = await server.standby({ isSynchronous: true })
  const [receiver] = await standby.query(
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walreceiver'",
  )
  const pid = Number(receiver?.['pid'])
  assert(pid > 0)
  const thawStandby = (): void => void process.kill(pid, 'SIGCONT')
  t.after(async () => {
    // A frozen process does not end.
    thawStandby()
    await standby.remove()
    await shards.remove()
  })
  const freezeStandby = (): void => void process.kill(pid, 'SIGSTOP')
  return { server, store: shards.storeOf(0, 'canceled'), freezeStandby, thawStandby }
}
