/** Connections to the primary of a database that has several servers, and the connections that shards share. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { PgConnection } from '../../src/nodes/postgres/pg-connection.ts'
import { PgReaders } from '../../src/nodes/postgres/pg-readers.ts'
import type { PgUrl } from '../../src/api/pg-url.ts'
import { pgReadersMax } from '../../src/store/limits.ts'
import { CuttingProxy } from '../support/network/cutting-proxy.ts'
import { freePort, portOf } from '../support/kit/port.ts'
import { Postgres, postgresObstacle } from '../support/server/postgres.ts'
import { databaseAt } from '../support/server/postgres-shards.ts'
import { until } from '../support/kit/until.ts'

const name = 'postbote/test'
const obstacle = postgresObstacle()

/** The database with these servers, as a user with a password. */
function databaseOn(...ports: readonly number[]): PgUrl {
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',')
  return databaseAt(`postgres://postbote:hidden@${hosts}/postgres`)
}

function count(connection: PgConnection): Promise<readonly { readonly one: number }[]> {
  return connection.run<{ readonly one: number }>({ text: 'SELECT 1 AS one' })
}

async function reasonOf(opening: Promise<unknown>): Promise<string> {
  const reason = await opening.then(
    () => assert.fail('it was opened'),
    (error: unknown) => error,
  )
  assert(reason instanceof Error && reason.name === 'NoServerError', String(reason))
  return reason.message
}

describe('PgConnection', { skip: obstacle }, () => {
  let server: Postgres
  before(async () => {
    server = await Postgres.start()
  })
  after(() => server.remove())

  test('a statement without an answer in its time ends the connection', async () => {
    const database = databaseOn(server.port)
    const connection = await PgConnection.open({ database, name, statementMs: 200 })
    await assert.rejects(connection.run({ text: 'SELECT pg_sleep(60)' }), /timeout/)
    assert.equal(connection.isOpen, false)
    await assert.rejects(count(connection), /timeout/)
  })

  test('a script takes as long as it takes, longer than a connection or a statement', async () => {
    const connection = await PgConnection.open({ database: databaseOn(server.port), name })
    await connection.runScript('SELECT pg_sleep(3.2)')
    assert.deepEqual(await count(connection), [{ one: 1 }])
    connection.close()
  })

  test('a statement that is refused leaves the connection open, and one that warns ends it', async () => {
    const connection = await PgConnection.open({ database: databaseOn(server.port), name })
    await assert.rejects(connection.run({ text: 'SELECT 1 / 0' }), { code: '22012' })
    assert.equal(connection.isOpen, true)
    assert.deepEqual(await count(connection), [{ one: 1 }])
    // A rollback without a transaction succeeds with a warning.
    await assert.rejects(connection.run({ text: 'ROLLBACK' }), /the database warned/)
    assert.equal(connection.isOpen, false)
    await assert.rejects(count(connection), /the database warned/)
  })

  test('a connection that is closed, or ended by the server, refuses every statement', async () => {
    const database = databaseOn(server.port)
    const [closed, ended] = await Promise.all([
      PgConnection.open({ database, name: 'closed' }),
      PgConnection.open({ database, name: 'ended' }),
    ])
    closed.close()
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ended'`,
    )
    await until(() => !ended.isOpen)
    assert.equal(closed.isOpen, false)
    await assert.rejects(count(closed), /the connection was closed/)
    await assert.rejects(count(ended))
  })

  test('a server that does not respond delays no other one', async (t) => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    silent.on('connection', (socket) => {
      t.after(() => socket.destroy())
    })
    t.after(() => silent.close())
    const connection = await PgConnection.open({
      database: databaseOn(portOf(silent), await freePort(), server.port),
      name,
    })
    assert.equal(connection.server.address.shown, `127.0.0.1:${server.port}`)
    connection.close()
  })

  test('a server is reached through its Unix socket', async () => {
    const query = `host=${server.directory}&port=${server.port}`
    const database = databaseAt(`postgres://postbote:hidden@/postgres?${query}`)
    const connection = await PgConnection.open({ database, name })
    assert.deepEqual(await count(connection), [{ one: 1 }])
    connection.close()
  })

  test('shards share up to a few connections for reading, which the last one closes', async () => {
    const readers = new PgReaders(databaseOn(server.port), 'readers')
    const writer = await PgConnection.open({ database: databaseOn(server.port), name })
    const other = await PgConnection.open({ database: databaseOn(server.port), name })
    const first = readers.enter(writer)
    assert.equal(readers.enter(other), first)
    const taken: PgConnection[] = []
    for (let nth = 0; nth < 3 * pgReadersMax; nth++) taken.push(await first.connection())
    assert.equal(new Set(taken).size, pgReadersMax)
    first.leave(other)
    // The other shard goes on.
    for (const connection of taken) assert.deepEqual(await count(connection), [{ one: 1 }])
    first.leave(writer)
    await until(() => taken.every(({ isOpen }) => !isOpen))
    const later = readers.enter(writer)
    assert.notEqual(later, first)
    assert.deepEqual(await count(await later.connection()), [{ one: 1 }])
    later.leave(writer)
    writer.close()
    other.close()
  })

  test('when the database has moved, writes and reads at earlier lives of servers end at once', async () => {
    const readers = new PgReaders(databaseOn(server.port), 'readers')
    const writer = await PgConnection.open({ database: databaseOn(server.port), name })
    let ended = 0
    writer.onEnded = () => ended++
    const pool = readers.enter(writer)
    readers.endBefore(writer.server.identity)
    const reader = await pool.connection()
    const underWay = [writer, reader].map((each) => each.run({ text: 'SELECT pg_sleep(60)' }))
    const waiting = Array.from({ length: pgReadersMax - 1 }, () => pool.connection())
    const [timeline = ''] = writer.server.identity.split(' ')
    const settled = Promise.allSettled([...underWay, ...waiting])
    const startMs = performance.now()
    readers.endBefore(`${timeline.slice(0, -1)}F and later`)
    const outcomes = await settled
    assert(outcomes.every(({ status }) => status === 'rejected'))
    assert(performance.now() - startMs < 1_900)
    await assert.rejects(pool.connection(), /has moved/)
    assert.equal(ended, 1)
    const late = await PgConnection.open({ database: databaseOn(server.port), name })
    assert.equal(readers.enter(late), pool)
    assert(!late.isOpen)
    pool.leave(late)
    pool.leave(writer)
  })
})

describe('PgConnection, when servers come and go', { skip: obstacle }, () => {
  let server: Postgres
  before(async () => {
    server = await Postgres.start()
  })
  after(() => server.remove())

  test('after a restart of the server readers of its old life are refused, and a new opening works', async () => {
    const closedPort = await freePort()
    const database = databaseOn(closedPort, server.port)
    const readers = new PgReaders(database, name)
    const first = await PgConnection.open({ database, name })
    const old = readers.enter(first)
    await old.connection()
    await server.down()
    for (let nth = 0; nth < pgReadersMax; nth++) await reasonOf(old.connection())
    await server.up()
    for (let nth = 0; nth <= pgReadersMax; nth++) {
      const reason = await reasonOf(old.connection())
      assert.match(reason, /: it was restarted or promoted$/)
      // The one that was asked, not the first one of the URL.
      assert(reason.includes(`127.0.0.1:${server.port}: `), reason)
      assert(!reason.includes(`${closedPort}`), reason)
    }
    const again = await PgConnection.open({ database, name })
    const pool = readers.enter(again)
    assert.deepEqual(await count(await pool.connection()), [{ one: 1 }])
    pool.leave(again)
    old.leave(first)
    again.close()
  })

  test('a standby that is promoted while the other server is silent is found at once', async (t) => {
    const standby = await server.standby({ isSynchronous: false })
    t.after(() => standby.remove())
    const silent = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    t.after(() => void silent.close())
    const database = databaseOn(portOf(silent), standby.port)
    let openedMs = Number.POSITIVE_INFINITY
    const opening = PgConnection.open({ database, name }).finally(
      () => (openedMs = performance.now()),
    )
    await new Promise((resolve) => setTimeout(resolve, 300))
    await standby.promote()
    const promotedMs = performance.now()
    const connection = await opening
    t.diagnostic(`${Math.round(openedMs - promotedMs)} ms`)
    assert(openedMs - promotedMs < 2_800)
    connection.close()
  })

  test('a connection for reading that broke is replaced, and a failed replacement is tried again', async (t) => {
    const proxy = await CuttingProxy.start(server.port)
    t.after(() => proxy.close())
    const database = databaseOn(proxy.port)
    const writer = await PgConnection.open({ database, name })
    const pool = new PgReaders(database, 'broken').enter(writer)
    const broken: PgConnection[] = []
    for (let nth = 0; nth < pgReadersMax; nth++) broken.push(await pool.connection())
    for (const connection of broken) connection.close()
    await until(async () => {
      const open = "SELECT FROM pg_stat_activity WHERE application_name = 'broken'"
      return (await server.query(open)).length === 0
    })
    for (let nth = 0; nth < pgReadersMax; nth++) {
      proxy.cutNext('request')
      await reasonOf(pool.connection())
    }
    for (let nth = 0; nth < pgReadersMax; nth++) {
      const connection = await pool.connection()
      assert(!broken.includes(connection))
      assert.deepEqual(await count(connection), [{ one: 1 }])
    }
    pool.leave(writer)
    writer.close()
  })

  test('a standby and a server that is away are left out, and an error says why each of them is', async (t) => {
    const standby = await server.standby({ isSynchronous: false })
    t.after(() => standby.remove())
    const awayPort = await freePort()
    const database = databaseOn(standby.port, awayPort, server.port)
    const ports = [standby.port, awayPort, server.port].map((port) => `127.0.0.1:${port}`)
    for (let nth = 0; nth < 5; nth++) {
      const connection = await PgConnection.open({ database, name })
      assert.equal(connection.server.address.shown, ports[2])
      connection.close()
    }
    const away = await reasonOf(
      PgConnection.open({ database: databaseOn(standby.port, awayPort), name }),
    )
    assert.equal(
      away,
      `no server of the database can be used: ${ports[0]}: it is a standby; ${ports[1]}: connect ECONNREFUSED ${ports[1]}`,
    )
    const local = databaseAt(`postgres://postbote:hidden@localhost:${awayPort}/postgres`)
    const reason = await reasonOf(PgConnection.open({ database: local, name }))
    assert.match(reason, /localhost:\d+: .*ECONNREFUSED/)
    for (const message of [away, reason]) assert.doesNotMatch(message, /hidden|postbote/)

    await standby.promote()
    await until(async () => {
      const [row] = await standby.query('SELECT pg_is_in_recovery() AS standby')
      return row?.['standby'] === false
    })
    // Both say that they are the primary. Whoever has seen the newer timeline leaves the old primary alone.
    await server.down()
    const promoted = await PgConnection.open({ database, name })
    assert.equal(promoted.server.address.shown, ports[0])
    promoted.close()
    await server.up()
    for (let nth = 0; nth < 5; nth++) {
      const connection = await PgConnection.open({ database, name })
      assert.equal(connection.server.address.shown, ports[0])
      connection.close()
    }
    await standby.down()
    assert.match(
      await reasonOf(PgConnection.open({ database, name })),
      /it has timeline 00000001, which is older than 00000002/,
    )
  })
})
