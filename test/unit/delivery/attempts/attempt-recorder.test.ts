import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AttemptLog } from '../../../../src/delivery/attempts/attempt-log.ts'
import { AttemptRecorder } from '../../../../src/delivery/attempts/attempt-recorder.ts'
import { webhookFailingMin } from '../../../../src/delivery/limits.ts'
import {
  recoveredAfterMs,
  recoveredSuccesses,
} from '../../../../src/delivery/attempts/recovery-watch.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

const on = { address: undefined, startedMs: 0, status: 0 }
const now = { monotonicMs: 1, wallMs: 1 }

function setUp() {
  const told: string[] = []
  const log = new AttemptLog()
  const clock = new FakeClock()
  const recorder = new AttemptRecorder(log, {
    clock,
    onFailing: (error) => told.push(error),
    onRecovered: () => told.push('recovered'),
  })
  const fail = (times: number): void => {
    for (let nth = 1; nth <= times; nth++) {
      const failed = { on, updateId: 1, outcome: 'rejected', nextRetryMs: undefined } as const
      recorder.failed({ ...failed, error: `error ${nth}` }, now)
    }
  }
  const refuse = (): void => {
    const refused = { on, updateId: 1, outcome: 'refused_for_good', error: 'never' } as const
    recorder.failed({ ...refused, nextRetryMs: undefined }, now)
  }
  return { told, log, clock, recorder, fail, refuse, succeed: () => recorder.delivered(on, 1, now) }
}

test('a webhook is reported once when it fails, with its last error, and once when many deliveries succeed', () => {
  const { told, clock, fail, succeed } = setUp()
  succeed()
  fail(webhookFailingMin - 1)
  succeed()
  assert.deepEqual(told, [], 'some failures are usual')
  fail(webhookFailingMin + 5)
  assert.deepEqual(told, [`error ${webhookFailingMin}`])
  for (let nth = 1; nth < recoveredSuccesses; nth++) succeed()
  assert.equal(told.length, 1)
  succeed()
  succeed()
  assert.deepEqual(told, [`error ${webhookFailingMin}`, 'recovered'])
  assert.equal(clock.timers, 0)
})

test('a webhook with few updates has recovered when it has not failed for some minutes', async () => {
  const { told, clock, fail, succeed } = setUp()
  fail(webhookFailingMin)
  await clock.advance(recoveredAfterMs / 2)
  succeed()
  await clock.advance(recoveredAfterMs / 2 - 1)
  assert.equal(told.length, 1)
  await clock.advance(1)
  assert.deepEqual(told.slice(1), ['recovered'])
  fail(webhookFailingMin)
  await clock.advance(2 * recoveredAfterMs)
  assert.equal(told.length, 3, 'nothing has succeeded')
  succeed()
  await clock.advance(0)
  assert.deepEqual(told.slice(3), ['recovered'])
})

test('a webhook that fails every other time, or three times of every ten, is reported once', async () => {
  const { told, clock, fail, succeed } = setUp()
  fail(webhookFailingMin)
  for (let minute = 0; minute < 50; minute++) {
    for (let nth = 0; nth < recoveredSuccesses - 1; nth++) succeed()
    fail(1 + (minute % webhookFailingMin))
    await clock.advance(60_000)
  }
  assert.equal(told.length, 1)
})

test('a webhook whose deliveries succeed when its worker ends has recovered, and one that fails has not', () => {
  const [failing, doubtful] = [setUp(), setUp()]
  failing.fail(webhookFailingMin)
  doubtful.fail(webhookFailingMin)
  doubtful.succeed()
  for (const { recorder } of [failing, doubtful]) recorder.close()
  assert.deepEqual([failing.told.length, doubtful.told.length], [1, 2])
  assert.equal(doubtful.clock.timers, 0)
})

test('a webhook that failed before this process began is reported when it has recovered', () => {
  const { told, log, recorder, succeed } = setUp()
  const last = { atMs: 0, updateId: 1, status: 500, durationMs: 1, error: 'before' }
  log.restore({ inRow: webhookFailingMin, sinceMs: 0, last })
  succeed()
  recorder.close()
  assert.deepEqual(told, ['recovered'])
})

test('an update that is refused for good is no failure, and a recovery', () => {
  const { told, log, fail, refuse } = setUp()
  for (let times = 0; times < 5; times++) refuse()
  assert.deepEqual(told, [])
  fail(webhookFailingMin)
  for (let times = 0; times < recoveredSuccesses; times++) refuse()
  assert.deepEqual(told, [`error ${webhookFailingMin}`, 'recovered'])
  assert.equal(log.lastError, 'never', 'the bot sees it all the same')
})

test('another endpoint begins anew', () => {
  const { told, log, fail, succeed } = setUp()
  fail(webhookFailingMin)
  log.newEndpoint()
  succeed()
  assert.equal(told.length, 1)
})
