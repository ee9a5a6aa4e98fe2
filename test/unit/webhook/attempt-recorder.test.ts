import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AttemptLog } from '../../../src/webhook/attempt-log.ts'
import { AttemptRecorder } from '../../../src/webhook/attempt-recorder.ts'
import { webhookFailingMin } from '../../../src/webhook/limits.ts'

const on = { address: undefined, startedMs: 0, status: 0 }
const now = { monotonicMs: 1, wallMs: 1 }

function setUp() {
  const told: string[] = []
  const log = new AttemptLog()
  const recorder = new AttemptRecorder(log, {
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
  return { told, log, fail, refuse, succeed: () => recorder.delivered(on, 1, now) }
}

test('a webhook is reported once when it fails, with its last error, and once when a delivery succeeds', () => {
  const { told, fail, succeed } = setUp()
  succeed()
  fail(webhookFailingMin - 1)
  succeed()
  assert.deepEqual(told, [], 'some failures are usual')
  fail(webhookFailingMin + 5)
  assert.deepEqual(told, [`error ${webhookFailingMin}`])
  succeed()
  succeed()
  assert.deepEqual(told, [`error ${webhookFailingMin}`, 'recovered'])
})

test('an update that is refused for good is no failure, and a recovery', () => {
  const { told, log, fail, refuse } = setUp()
  for (let times = 0; times < 5; times++) refuse()
  assert.deepEqual(told, [])
  fail(webhookFailingMin)
  refuse()
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
