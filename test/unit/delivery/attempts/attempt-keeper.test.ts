import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AttemptKeeper,
  attemptsStoredPeriodMs,
} from '../../../../src/delivery/attempts/attempt-keeper.ts'
import type { AttemptsRecord } from '../../../../src/shard/records/attempts-record.ts'
import { AttemptLog } from '../../../../src/delivery/attempts/attempt-log.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

function setUp() {
  const clock = new FakeClock()
  const log = new AttemptLog()
  const stored: AttemptsRecord[] = []
  const keeper = new AttemptKeeper(log, clock, (record) => stored.push(record))
  const add = (error: string | undefined): void => {
    const attempt = { updateId: 1, status: 1, durationMs: 1, nextRetryMs: NaN, address: '::1' }
    const outcome = error === undefined ? 'delivered' : 'rejected'
    log.add({ ...attempt, atMs: clock.nowMs(), error }, outcome)
  }
  const fail = (): void => {
    add('no')
    keeper.failed()
  }
  const rows = (): readonly number[] => stored.map((record) => record.rows.length)
  return { clock, keeper, log, fail, succeed: () => add(undefined), rows }
}

test('a failure is stored at once, and those of the next second together', async () => {
  const { clock, fail, rows } = setUp()
  fail()
  assert.deepEqual(rows(), [1])
  for (let nth = 0; nth < 40; nth++) fail()
  await clock.advance(attemptsStoredPeriodMs - 1)
  assert.deepEqual(rows(), [1])
  await clock.advance(1)
  assert.deepEqual(rows(), [1, 41])
  await clock.advance(10 * attemptsStoredPeriodMs)
  assert.deepEqual(rows(), [1, 41], 'nothing is new')
})

test('an endpoint that fails all the time has one record a second written', async () => {
  const { clock, fail, rows } = setUp()
  for (let nth = 0; nth < 1_000; nth++) {
    fail()
    await clock.advance(10)
  }
  assert.equal(rows().length, 11)
})

test('successes write nothing, and are stored with what comes after them or at the end', async () => {
  const { clock, keeper, fail, succeed, rows } = setUp()
  for (let nth = 0; nth < 5; nth++) succeed()
  await clock.advance(60_000)
  assert.deepEqual(rows(), [])
  fail()
  assert.deepEqual(rows(), [6])
  succeed()
  await clock.advance(60_000)
  assert.deepEqual(rows(), [6])
  keeper.close()
  assert.deepEqual(rows(), [6, 7])
})

test('the end stores what waits, and nothing else', () => {
  const { keeper, fail, rows } = setUp()
  keeper.close()
  assert.deepEqual(rows(), [])
  fail()
  fail()
  keeper.close()
  keeper.close()
  assert.deepEqual(rows(), [1, 2])
})

test('without a failure among what is kept, the end stores nothing', () => {
  const { keeper, fail, succeed, rows } = setUp()
  fail()
  for (let nth = 0; nth < 50; nth++) succeed()
  keeper.close()
  assert.deepEqual(rows(), [1])
})

test('a failure after an erasure is stored at the end, although there are as many attempts as before', () => {
  const { keeper, log, fail, rows } = setUp()
  fail()
  log.forget(() => 'all')
  fail()
  keeper.close()
  assert.deepEqual(rows(), [1, 1])
})
