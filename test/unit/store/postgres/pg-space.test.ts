import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pgSizePeriodMs } from '../../../../src/store/limits.ts'
import { PgSpace } from '../../../../src/store/postgres/pg-space.ts'
import { parsePgUrl } from '../../../../src/store/postgres/pg-url.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { Postgres, postgresObstacle } from '../../../support/postgres.ts'
import { until } from '../../../support/until.ts'

test('the room is low while the database is larger than its limit, and stays as it was while nobody knows', {
  skip: postgresObstacle() ?? false,
}, async (t) => {
  const server = await Postgres.start()
  t.after(() => server.remove())
  const database = parsePgUrl(server.url())
  assert(database !== undefined)
  const [row] = await server.query(
    'SELECT pg_database_size(current_database())::int + 1000000 AS bytes',
  )
  const clock = new FakeClock()
  const space = new PgSpace({ database, name: 'size', bytesMax: Number(row?.['bytes']), clock })
  await space.start()
  assert.equal(space.isLow(), false)
  await server.query(
    'CREATE TABLE filler AS SELECT repeat(md5(n::text), 50) AS text FROM generate_series(1, 20000) n',
  )
  await until(async () => {
    await clock.advance(pgSizePeriodMs)
    return space.isLow()
  })
  await server.down()
  await clock.advance(pgSizePeriodMs)
  assert.equal(space.isLow(), true)
  await server.up()
  await server.query('DROP TABLE filler')
  await until(async () => {
    await clock.advance(pgSizePeriodMs)
    return !space.isLow()
  })
  space.close()
  assert.equal(clock.timers, 0)
})
