/** A database whose standby was promoted while the old primary is still up. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { PgConnection } from '../../src/nodes/postgres/pg-connection.ts'
import { parsePgUrl } from '../../src/api/pg-url.ts'
import { Postgres, postgresObstacle } from '../support/server/postgres.ts'

const connectionFile = fileURLToPath(
  new URL('../../src/nodes/postgres/pg-connection.js', import.meta.url),
)
const urlFile = fileURLToPath(new URL('../../src/api/pg-url.js', import.meta.url))

test('of two primaries the one that was promoted later is used, also by a process that has seen neither', {
  skip: postgresObstacle() ?? false,
}, async (t) => {
  const former = await Postgres.start()
  t.after(() => former.remove())
  const promoted = await former.standby({ isSynchronous: false })
  t.after(() => promoted.remove())
  const text = `postgres://postbote@127.0.0.1:${former.port},127.0.0.1:${promoted.port}/postgres`
  const database = parsePgUrl(text)
  assert(database !== undefined)
  const before = await PgConnection.open({ database, name: 'before' })
  assert.match(before.server.address.shown, new RegExp(`:${former.port}$`))
  before.close()
  await promoted.promote()
  const after = await PgConnection.open({ database, name: 'after' })
  assert.match(after.server.address.shown, new RegExp(`:${promoted.port}$`))
  after.close()
  const script = `
    const { PgConnection } = await import(${JSON.stringify(connectionFile)})
    const { parsePgUrl } = await import(${JSON.stringify(urlFile)})
    const connection = await PgConnection.open({ database: parsePgUrl(${JSON.stringify(text)}), name: 'new' })
    console.log(connection.server.address.shown)
    connection.close()`
  for (let turn = 0; turn < 3; turn++) {
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    })
    assert.equal(stdout.trim(), `127.0.0.1:${promoted.port}`)
  }
  // This process knows the new timeline, and the old server is no substitute.
  await promoted.down()
  await assert.rejects(PgConnection.open({ database, name: 'late' }), /older than/)
})
