/** What the examination of a database finds after its rows and tables were changed by hand. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { commitSchema, createSchema, newCluster } from '../../src/nodes/postgres/create-schema.ts'
import { connectionFinding } from '../../src/nodes/postgres/connection-limit.ts'
import { examineDatabase } from '../../src/nodes/postgres/examine-database.ts'
import { PgConnection } from '../../src/nodes/postgres/pg-connection.ts'
import { pgDoctorLookMs } from '../../src/nodes/postgres/cluster-looks.ts'
import { FakeClock } from '../support/kit/fake-clock.ts'
import { portOf } from '../support/kit/port.ts'
import { Postgres, postgresObstacle } from '../support/server/postgres.ts'
import { databaseAt } from '../support/server/postgres-shards.ts'
import { until } from '../support/kit/until.ts'

const shards = 4
const joined = "UPDATE cluster SET admin_key = 'fingerprint'"
const owned = "UPDATE shard SET epoch = 1, node = 'a', boot = 'a1'"
const beat = 'UPDATE node SET beat = beat + 1'

/** SQL that adds the row of a node. */
function node(name: string, address = `10.0.0.1:${name.charCodeAt(0)}`): string {
  return `INSERT INTO node VALUES ('${name}', '${name}1', 5, '${address}', 2, 'serving')`
}

describe('examineDatabase', { skip: postgresObstacle() }, () => {
  let server: Postgres
  let databases = 0
  before(async () => {
    server = await Postgres.start()
    const url = await server.newDatabase('sound')
    const connection = await PgConnection.open({ database: databaseAt(url), name: 'init' })
    for (const row of newCluster(shards, 1)) await createSchema(connection, row)
    await commitSchema(connection)
    connection.close()
  })
  after(() => server.remove())

  /** Changes a sound database, and returns what is found in it, other than what is good or said of every test server. */
  async function findings(sql: readonly string[], between = 'SELECT'): Promise<readonly string[]> {
    const name = `examined_${++databases}`
    await server.query(`CREATE DATABASE ${name} TEMPLATE sound`)
    await server.query(sql.join('; '), name)
    const clock = new FakeClock()
    let isDone = false
    const examined = examineDatabase(databaseAt(server.url(name)), () => 2, clock)
    void examined.finally(() => (isDone = true))
    await until(() => isDone || clock.timers > 0)
    await server.query(between, name)
    await clock.advance(pgDoctorLookMs)
    return (await examined).findings
      .filter(({ level, text }) => level !== 'good' && !/^(?:fsync|synchronous_standby)/.test(text))
      .map(({ text }) => text)
  }

  /** Breaks a database in several ways. Each of them is found once, in this order, and nothing else is. */
  async function assertFound(sql: readonly string[], expected: readonly RegExp[]): Promise<void> {
    const found = await findings(sql)
    assert.equal(found.length, expected.length, found.join('\n'))
    expected.forEach((each, nth) => assert.match(found[nth] ?? '', each))
  }

  test('a new database and one with two living nodes have nothing to report', async () => {
    assert.deepEqual(await findings([]), [])
    assert.deepEqual(await findings([joined, owned, node('a'), node('b')], beat), [])
  })

  test('rows of shards that are missing, foreign or doubled are named, each once', async () => {
    await assertFound(
      ['DELETE FROM shard WHERE shard IN (1, 3)', "INSERT INTO shard VALUES (7, 1, '', '')"],
      [
        /no row for shards 1 and 3: stop all servers/,
        /rows for shard 7, which this database does not have: .* delete/,
      ],
    )
    // Nothing advises to drop the tables of the shards that are too many now.
    await assertFound(['UPDATE cluster SET shards = 3'], [/rows for shard 3, .* undo the change/])
    await assertFound(
      [
        'ALTER TABLE shard DROP CONSTRAINT shard_pkey',
        'INSERT INTO shard SELECT * FROM shard WHERE shard = 2',
      ],
      [/table shard has no valid primary key/, /several rows for shard 2/],
    )
  })

  test('a row of the cluster that is missing, doubled or that of an import without an end is named', async () => {
    await assertFound(['DELETE FROM cluster'], [/the table cluster has no row/])
    const double = 'INSERT INTO cluster SELECT * FROM cluster'
    await assertFound([double], [/the table cluster has 2 rows/])
    await assertFound(['UPDATE cluster SET format = 0'], [/an import .* did not end/])
  })

  test('tables of shards that are missing, left over or without an index, a setting or a log are named', async () => {
    await assertFound(
      [
        'DROP TABLE s_0, r_3, node',
        'CREATE TABLE u_9 (key bytea PRIMARY KEY, value bytea)',
        'ALTER TABLE r_1 SET UNLOGGED',
        'ALTER TABLE r_2 DROP CONSTRAINT r_2_pkey',
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'u_0_pkey'::regclass",
        'ALTER TABLE u_1 RESET (autovacuum_vacuum_threshold)',
        'ALTER TABLE s_1 RESET (fillfactor)',
        'ALTER TABLE u_3 ALTER value SET STORAGE EXTENDED',
      ],
      [
        /the tables node, s_0 and r_3 are missing: restore/,
        /the table u_9 is left over .* drop it/,
        /the table r_1 is not logged.* ALTER TABLE r_1 SET LOGGED/,
        /the table r_2 has no valid .* ADD PRIMARY KEY \(key\)/,
        /the table u_0 has no valid/,
        /ALTER TABLE u_1 SET \(.*autovacuum_vacuum_threshold=20000/,
        /ALTER TABLE s_1 SET \(fillfactor=50\)/,
        /ALTER TABLE u_3 ALTER value SET STORAGE EXTERNAL/,
      ],
    )
  })

  test('a shard without an epoch is named if it has records or an owner, as nothing fences a former one', async () => {
    await assertFound(
      [
        "INSERT INTO u_2 VALUES ('k', 'v')",
        "UPDATE shard SET node = 'a', boot = 'a1' WHERE shard = 1",
      ],
      [/row of shards 1 and 2 has no epoch .* stop all servers/],
    )
  })

  test('a shard without an owner is a finding only if living nodes leave it alone for both looks', async () => {
    const lost = [joined, owned, node('b'), "UPDATE shard SET boot = 'b1' WHERE shard > 1"]
    const [left = '', ...others] = await findings(lost, beat)
    assert.match(left, /no node has opened shards 0 and 1 in the 3 s .* although b should/)
    assert.deepEqual(others, [])
    const claimed = `${beat}; UPDATE shard SET epoch = 2, boot = 'b1' WHERE shard < 2`
    assert.deepEqual(await findings(lost, claimed), [])
    // It was lost again, between the looks.
    const lostAgain = `${beat}; UPDATE shard SET epoch = 2, boot = 'c1' WHERE shard < 2`
    assert.deepEqual(await findings(lost, lostAgain), [])
    const onlyLeaving = `${beat}; UPDATE node SET state = 'leaving'`
    assert.deepEqual(await findings(lost, onlyLeaving), [])
  })

  test('a node whose heartbeat does not rise is named, and its shards are not', async () => {
    const both = [joined, owned, node('a'), node('b')]
    const found = await findings(both, `${beat} WHERE name = 'b'`)
    assert.equal(found.length, 1, found.join('\n'))
    assert.match(found[0] ?? '', /the node "a" has sent no heartbeat in the 3 s .*start it again/)
  })

  test('two living nodes with one address are named, and a node that stands still has lost its own', async () => {
    const same = [joined, owned, node('a', '10.0.0.1:9'), node('b', '10.0.0.1:9')]
    assert.match((await findings(same, beat)).join('\n'), /^the node "a" and the node "b" have/)
    const found = await findings(same, `${beat} WHERE name = 'a'`)
    assert.match(found.join('\n'), /^the node "b" has sent no heartbeat[^\n]*$/)
  })

  test('nodes that left no fingerprint of their admin key are a finding', async () => {
    const found = await findings([owned, node('a')], beat)
    assert.match(found.join('\n'), /^the row of cluster has no fingerprint[^\n]*$/)
  })

  test('a role that may not see standbys is told so, and not that there is none', async (t) => {
    const setStandbys = async (names: string): Promise<void> => {
      await server.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
      await server.query('SELECT pg_reload_conf()')
    }
    await server.query('CREATE ROLE plain LOGIN')
    await setStandbys('s')
    t.after(() => setStandbys(''))
    const plain = databaseAt(server.url('sound').replace('postbote@', 'plain@'))
    const textsOf = async (): Promise<string> =>
      (await examineDatabase(plain, () => 2)).findings
        .map(({ level, text }) => `${level} ${text}`)
        .join('\n')
    assert.match(await textsOf(), /^warn whether a synchronous standby is connected, .* GRANT/m)
    // It waits for no standby itself.
    await server.query('SET synchronous_commit = local; GRANT pg_read_all_stats TO plain')
    assert.match(await textsOf(), /^bad no synchronous standby is connected/m)
  })

  test('the fewest connections that role, database or server allow are compared with what shards and nodes need', async () => {
    await server.query('CREATE ROLE limited LOGIN')
    const limited = databaseAt(server.url('sound').replace('postbote@', 'limited@'))
    const found = async (change: string): Promise<string | undefined> => {
      await server.query(change)
      const { findings: all } = await examineDatabase(limited, () => 2)
      const ofConnections = all.filter(({ text }) => /connections/.test(text))
      assert.equal(ofConnections.length, 1, JSON.stringify(all))
      return `${ofConnections[0]?.level} ${ofConnections[0]?.text}`
    }
    const needed = /4 shards, 1 node and 2 workers need 7 to 15 connections/
    const ofRole = await found(
      'GRANT pg_read_all_data TO limited; ALTER ROLE limited CONNECTION LIMIT 6',
    )
    assert.match(ofRole ?? '', /^bad the CONNECTION LIMIT of the role limited is 6, and/)
    assert.match(ofRole ?? '', needed)
    assert.match((await found('ALTER ROLE limited CONNECTION LIMIT 7')) ?? '', /^warn /)
    assert.match((await found('ALTER ROLE limited CONNECTION LIMIT 15')) ?? '', /^good /)
    assert.match(
      (await found('ALTER DATABASE sound CONNECTION LIMIT 14')) ?? '',
      /^warn the CONNECTION LIMIT of the database sound is 14, and/,
    )
    await server.query('ALTER DATABASE sound CONNECTION LIMIT -1')
    const limit = { connections: 97, what: 'max_connections leaves 97 for this role' }
    const ofServer = connectionFinding(limit, 64, { nodes: 3, workers: 12 })
    assert.deepEqual(ofServer, {
      level: 'warn',
      text: 'max_connections leaves 97 for this role, and 64 shards, 3 nodes and 12 workers need 79 to 127 connections: raise it',
    })
  })

  test('a pooler is noticed although it has a single connection to the server', async (t) => {
    const pooler = createServer((client) => {
      const backend = connect(server.port, '127.0.0.1')
      for (const socket of [client, backend]) {
        socket.on('error', () => undefined)
        t.after(() => socket.destroy())
      }
      client.pipe(backend)
      backend.on('data', (bytes) => client.write(withOtherProcess(bytes)))
    }).listen(0, '127.0.0.1')
    t.after(() => pooler.close())
    await once(pooler, 'listening')
    const url = server.url('sound').replace(`:${server.port}/`, `:${portOf(pooler)}/`)
    const { findings: found } = await examineDatabase(databaseAt(url), () => 2)
    assert.equal(found.length, 1)
    assert.match(found[0]?.text ?? '', /a connection pooler is in between; connect to the server/)
  })
})

/** Poolers make up the process and the key with which a client would cancel a statement. */
function withOtherProcess(bytes: Buffer): Buffer {
  const at = bytes.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]))
  if (at !== -1) bytes.writeInt32BE(1, at + 5)
  return bytes
}
