import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AttemptLog } from '../../../src/webhook/attempt-log.ts'
import { type HealthFacts, healthOf, healthWord } from '../../../src/webhook/health.ts'

const startMs = 1_800_000_000_000

/** A log with one attempt per second: `.` is a success, `x` a failure. */
function logOf(history: string): AttemptLog {
  const log = new AttemptLog()
  for (const [nth, what] of history.split('').entries()) {
    const error = what === 'x' ? 'Connection refused' : undefined
    log.add(
      {
        atMs: startMs + nth * 1_000,
        updateId: nth + 1,
        status: 0,
        durationMs: 1,
        nextRetryMs: Number.NaN,
        address: undefined,
        error,
      },
      error === undefined ? 'delivered' : 'connection_failed',
    )
  }
  return log
}

/** Returns the health at `nowS` seconds after the first attempt. */
function healthAt(nowS: number, history: string, more: Partial<HealthFacts> = {}): string {
  const facts: HealthFacts = {
    isPaused: false,
    limitPerSecond: undefined,
    pendingCount: 0,
    log: logOf(history),
    nowMs: startMs + nowS * 1_000,
    parkedKeys: 0,
    nextAttemptMs: undefined,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
    ...more,
  }
  const { health, reason } = healthOf(facts)
  // Lists of bots show the word alone.
  assert.equal(healthWord(facts), health)
  return `${health}: ${reason}`
}

test('a webhook that was not tried yet is healthy', () => {
  assert.equal(healthAt(0, '', { log: undefined }), 'healthy: nothing was sent yet')
  assert.equal(healthAt(0, ''), 'healthy: nothing was sent yet')
})

test('a webhook whose recent attempts have all succeeded is healthy', () => {
  assert.equal(healthAt(1, '.'), 'healthy: the last attempt succeeded')
  assert.equal(healthAt(3, '...'), 'healthy: all of the last 3 attempts succeeded')
  assert.equal(
    healthAt(5_000, 'x.'),
    'healthy: no response since the last success 4999 s ago',
    'a failure long ago is forgiven',
  )
})

test('a delivery without a response is reported before it fails', () => {
  assert.equal(
    healthAt(28, '', { log: undefined, unansweredMs: 28_400 }),
    'healthy: no response yet; a delivery has had no response for 28 s',
  )
  assert.equal(healthAt(1, '.', { unansweredMs: 999 }), 'healthy: the last attempt succeeded')
  assert.equal(
    healthAt(9, '..', { unansweredMs: 1_000 }),
    'healthy: all of the last 2 attempts succeeded; a delivery has had no response for 1 s',
  )
  assert.equal(
    healthAt(812, '.xxx', { parkedKeys: 3, nextAttemptMs: startMs + 852_001, unansweredMs: 2_000 }),
    'failing: no success for 812 s, 3 failures: Connection refused; 3 keys wait, a delivery has had no response for 2 s, next attempt in 41 s',
  )
})

test('failures between successes make a webhook degraded', () => {
  assert.equal(healthAt(4, '.x.'), 'degraded: 1 of the last 3 attempts failed: Connection refused')
  assert.equal(healthAt(4, '.xx'), 'degraded: 2 of the last 3 attempts failed: Connection refused')
  assert.equal(
    healthAt(901, '.xx'),
    'degraded: 2 of the last 2 attempts failed: Connection refused',
    'what is long ago counts no more',
  )
})

test('one or two failures without a later attempt stay a reason, however old', () => {
  assert.equal(healthAt(5_000, '.x'), 'degraded: the last attempt failed: Connection refused')
})

test('a parked key makes a webhook degraded, even if all recent attempts of others succeeded', () => {
  assert.equal(
    healthAt(60, `x${'.'.repeat(50)}`, { parkedKeys: 1, nextAttemptMs: startMs + 100_000 }),
    'degraded: 1 key failed, others succeed: Connection refused; 1 key waits, next attempt in 40 s',
  )
})

test('three failures without a success between them make a webhook failing', () => {
  assert.equal(
    healthAt(812, '.xxx', { parkedKeys: 3, nextAttemptMs: startMs + 852_001 }),
    'failing: no success for 812 s, 3 failures: Connection refused; 3 keys wait, next attempt in 41 s',
  )
  assert.equal(
    healthAt(812, 'xxxx'),
    'failing: no success yet in 812 s, 4 failures: Connection refused',
  )
  assert.equal(
    healthAt(100_000, 'xxx', { nextAttemptMs: startMs }),
    'failing: no success yet in 100000 s, 3 failures: Connection refused; next attempt now',
  )
  assert.match(healthAt(5, 'xxx.'), /^degraded: 3 of the last 4 attempts failed/)
})

test('a wall clock that is set back causes no negative times', () => {
  assert.equal(
    healthAt(-50, 'xxx'),
    'failing: no success yet in 0 s, 3 failures: Connection refused',
  )
})

test('a limit of the operator and a recovery are part of every sentence, with what waits for them', () => {
  assert.equal(
    healthAt(3, '...', { limitPerSecond: 5, pendingCount: 1_200 }),
    'healthy: all of the last 3 attempts succeeded; limited to 5 deliveries a second by the operator; 1200 updates wait',
  )
  assert.equal(
    healthAt(0, '', { log: undefined, limitPerSecond: 1 }),
    'healthy: nothing was sent yet; limited to 1 delivery a second by the operator',
  )
  assert.equal(
    healthAt(4, '.xx', { endpointPerSecond: 41.3, pendingCount: 1 }),
    'degraded: 2 of the last 3 attempts failed: Connection refused; recovering with 41 deliveries a second at present; 1 update waits',
  )
  assert.equal(
    healthAt(9, '.xxx', {
      limitPerSecond: 0.5,
      endpointPerSecond: 1,
      pendingCount: 7,
      parkedKeys: 3,
    }),
    'failing: no success for 9 s, 3 failures: Connection refused; 3 keys wait; limited to 0.5 deliveries a second by the operator; slowed down to 1 delivery a second at present; 7 updates wait',
  )
})

test('a pause takes precedence over everything', () => {
  assert.equal(healthAt(9, 'xxx', { isPaused: true }), 'paused: paused by the operator')
  assert.equal(
    healthAt(9, 'xxx', { isPaused: true, pendingCount: 1 }),
    'paused: paused by the operator; 1 update waits',
  )
  assert.equal(
    healthAt(9, '', { isPaused: true, pendingCount: 2, log: undefined }),
    'paused: paused by the operator; 2 updates wait',
  )
})
