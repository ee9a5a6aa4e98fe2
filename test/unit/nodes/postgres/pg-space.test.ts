import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pgSizePeriodMs, PgSpace } from '../../../../src/nodes/postgres/pg-space.ts'
import { parsePgUrl } from '../../../../src/api/pg-url.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { Postgres, postgresObstacle } from '../../../support/server/postgres.ts'
import { until } from '../../../support/kit/until.ts'

test('the room of a database is low while it is larger than its limit, and stays as it was while nobody knows', {
  skip: postgresObstacle() ?? false,
}, async (t) => {
  const server = await Postgres.start()
  t.after(() => server.remove())
  const databases = [await server.newDatabase('other'), server.url(), 'postgres://127.0.0.1:1/away']
    .map((url) => parsePgUrl(url))
    .filter((url) => url !== undefined)
  const [row] = await server.query(
    'SELECT pg_database_size(current_database())::int + 1000000 AS bytes',
  )
  const clock = new FakeClock()
  const space = new PgSpace(clock, databases, 'size', Number(row?.['bytes']))
  await space.start()
  const low = (): readonly number[] => [0, 1, 2, 3, 4, 5].filter((shard) => space.isLow(shard))
  assert.deepEqual(low(), [])
  await server.query(
    'CREATE TABLE filler AS SELECT repeat(md5(n::text), 50) AS text FROM generate_series(1, 20000) n',
  )
  await until(async () => {
    await clock.advance(pgSizePeriodMs)
    return low().length > 0
  })
  await server.down()
  await clock.advance(pgSizePeriodMs)
  assert.deepEqual(low(), [1, 4])
  await server.up()
  await server.query('DROP TABLE filler')
  await until(async () => {
    await clock.advance(pgSizePeriodMs)
    return low().length === 0
  })
  space.close()
  assert.equal(clock.timers, 0)
})
