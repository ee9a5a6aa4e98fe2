import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AttemptLog } from '../../../../src/delivery/attempts/attempt-log.ts'
import {
  type HealthFacts,
  healthOf,
  healthWord,
  type Polls,
  type Waiting,
} from '../../../../src/delivery/attempts/health.ts'

const startMs = 1_800_000_000_000

/** A log with one attempt per second: `.` is a success, `x` a failure, `r` an update that is refused for good. */
function logOf(history: string): AttemptLog {
  const log = new AttemptLog()
  for (const [nth, what] of history.split('').entries()) {
    const error = what === '.' ? undefined : 'Connection refused'
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
      what === '.' ? 'delivered' : what === 'r' ? 'refused_for_good' : 'connection_failed',
    )
  }
  return log
}

/** Returns the health at `nowS` seconds after the first attempt. */
function healthAt(
  nowS: number,
  history: string,
  more: Partial<Omit<HealthFacts, 'waiting'> & Waiting> = {},
): string {
  const { parkedKeys = 0, nextAttemptMs, unansweredMs, endpointPerSecond, ...others } = more
  const facts: HealthFacts = {
    hasWebhook: true,
    isPaused: false,
    limitPerSecond: undefined,
    pendingCount: 0,
    oldestAgeS: undefined,
    notes: [],
    log: logOf(history),
    polls: { isWaiting: false, lastBeforeMs: undefined, knownForMs: 0 },
    nowMs: startMs + nowS * 1_000,
    waiting: { parkedKeys, nextAttemptMs, unansweredMs, endpointPerSecond },
    ...others,
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
    healthAt(9, '', { log: undefined, unansweredMs: 9_999 }),
    'healthy: no response yet; a delivery has had no response for 9 s',
  )
  for (const history of ['', '.']) {
    assert.equal(
      healthAt(28, history, { unansweredMs: 27_400 }),
      'degraded: the endpoint does not respond; a delivery has had no response for 27 s',
    )
  }
  assert.equal(
    healthAt(28, '.'.repeat(20), { unansweredMs: 27_400 }),
    'healthy: all of the last 20 attempts succeeded; a delivery has had no response for 27 s',
    'others succeed',
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
    'healthy: all of the last 3 attempts succeeded; limited to 5 deliveries a second by the operator; 1,200 updates wait',
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

test('an endpoint that refuses updates for good is healthy, and ends a failure', () => {
  assert.equal(
    healthAt(5, 'rrrr'),
    'healthy: the endpoint has refused 4 of the last 4 updates for good',
  )
  assert.match(healthAt(5, 'xxxr'), /^degraded: 3 of the last 4 attempts failed/)
  assert.equal(
    healthAt(3, '.r.'),
    'healthy: the endpoint has refused 1 of the last 3 updates for good',
  )
})

/** Returns the health of a queue without a webhook. */
function polled(polls: Partial<Polls>, pendingCount = 0): string {
  return healthAt(0, '', {
    hasWebhook: false,
    log: undefined,
    pendingCount,
    oldestAgeS: 10_900,
    polls: { isWaiting: false, lastBeforeMs: undefined, knownForMs: 20_000, ...polls },
  })
}

test('a queue without a webhook is unpolled if updates wait and nobody has polled for a minute', () => {
  assert.equal(
    polled({ lastBeforeMs: 3 * 3_600_000, knownForMs: 60_001 }, 11_008),
    'unpolled: nobody has polled for 3 h; 11,008 updates wait, the oldest for 3 h',
  )
  assert.equal(
    polled({ knownForMs: 60_001 }, 1),
    'unpolled: nobody has polled since the start 60 s ago; 1 update waits, the oldest for 3 h',
  )
  assert.equal(
    polled({}, 1),
    'undefined: nobody has polled since the start 20 s ago; 1 update waits, the oldest for 3 h',
    'nothing is known of the time before the start',
  )
  assert.equal(
    polled({ lastBeforeMs: 60_000 }, 2),
    'undefined: last polled 60 s ago; 2 updates wait, the oldest for 3 h',
  )
  assert.equal(polled({ lastBeforeMs: 7_200_000 }), 'undefined: last polled 2 h ago')
  assert.match(
    polled({ lastBeforeMs: 7_200_000, knownForMs: 60_000 }, 1),
    /^undefined: last polled 2 h ago/,
    'nobody could poll while the server was down',
  )
  assert.match(polled({ isWaiting: true, lastBeforeMs: 90_000 }, 1), /^undefined: a getUpdates /)
})

test('two programs that poll at the same time are named first, and degrade the health after a minute', () => {
  const polls = { isWaiting: true, lastBeforeMs: 0 }
  const fight = { kind: 'refusal', forMs: 59_999, lastMinute: 40 } as const
  const text = 'two programs poll: 40 refusals in the last minute; a getUpdates call waits'
  assert.equal(polled({ ...polls, fight }), `undefined: ${text}`)
  assert.equal(polled({ ...polls, fight: { ...fight, forMs: 60_000 } }), `degraded: ${text}`)
  assert.match(
    polled({ ...polls, fight: { kind: 'takeover', forMs: 60_000, lastMinute: 1 } }),
    /^degraded: two programs poll: 1 takeover in the last minute; /,
  )
})

test('polls that get the same updates for five minutes and confirm none degrade the health, and are named first', () => {
  const polls = { isWaiting: false, lastBeforeMs: 2_000 }
  const repeated = { times: 3, firstBeforeMs: 300_000, lastBeforeMs: 2_000 }
  assert.match(
    polled({ ...polls, repeated }, 7),
    /^degraded: polls get the same updates since \d\d:\d\d UTC and confirm none; last polled 2 s ago; 7 updates wait/,
  )
  const fine = /^undefined: last polled 2 s ago; 7 updates wait/
  assert.match(polled({ ...polls, repeated: { ...repeated, times: 2 } }, 7), fine)
  assert.match(polled({ ...polls, repeated: { ...repeated, firstBeforeMs: 299_999 } }, 7), fine)
  assert.match(polled({ ...polls, repeated: { ...repeated, lastBeforeMs: 120_001 } }, 7), fine)
  assert.match(
    polled({ ...polls, repeated: { ...repeated, firstBeforeMs: 2 * 86_400_000 } }, 7),
    /^degraded: polls get the same updates since \d{4}-\d\d-\d\d \d\d:\d\d UTC and confirm none; /,
  )
})

test('updates that expire for five minutes though somebody polls degrade the health', () => {
  const polls = { isWaiting: false, lastBeforeMs: 2_000 }
  assert.equal(
    polled({ ...polls, expiring: { count: 1_200, forMs: 720_000 } }),
    'degraded: updates expire before polls get them: 1,200 in 12 min; last polled 2 s ago',
  )
  assert.equal(
    polled({ ...polls, expiring: { count: 1_200, forMs: 299_999 } }),
    'undefined: last polled 2 s ago',
  )
})

test('a queue is unpolled for an hour after its last update has expired, if nobody polls', () => {
  const log = new AttemptLog()
  log.count('expired', startMs, 7)
  const polls = { isWaiting: false, lastBeforeMs: 7_200_000, knownForMs: 7_200_000 }
  const facts = { hasWebhook: false, log, polls }
  assert.equal(
    healthAt(3_599, '', facts),
    'unpolled: nobody has polled for 2 h; the last update expired 59 min ago',
  )
  assert.equal(healthAt(3_600, '', facts), 'undefined: last polled 2 h ago')
  const lately = { ...facts, polls: { ...polls, lastBeforeMs: 1_000 } }
  assert.equal(healthAt(60, '', lately), 'undefined: last polled 1 s ago')
  log.newEndpoint()
  assert.equal(healthAt(60, '', facts), 'undefined: last polled 2 h ago')
})

test('a webhook whose oldest update gets older is behind, if nothing worse is known', () => {
  const facts = { isFallingBehind: true, pendingCount: 1_200, oldestAgeS: 1_740 }
  assert.equal(
    healthAt(1, '.', facts),
    'behind: the oldest of 1,200 updates has waited for 29 min, and waits longer and longer; the last attempt succeeded',
  )
  assert.match(healthAt(812, '.xxx', facts), /^failing: /)
  assert.match(healthAt(1, '.x', facts), /^degraded: /)
  assert.match(healthAt(1, '.', { ...facts, isPaused: true }), /^paused: /)
})

test('failures that an earlier process has stored are at least so many', () => {
  const log = new AttemptLog()
  log.restore(logOf('.xxx').stored()!)
  assert.equal(
    healthAt(812, '', { log }),
    'failing: no success for 812 s, at least 3 failures: Connection refused',
  )
})

test('a paused relay is in the sentence of any queue, and makes a word that was fine degraded', () => {
  const troubles = ['the relay is paused: Somebody else polls']
  const polls = { isWaiting: true, lastBeforeMs: 0, knownForMs: 0 }
  assert.equal(
    healthAt(1, '.', { troubles }),
    'degraded: the last attempt succeeded; the relay is paused: Somebody else polls',
  )
  assert.equal(
    healthAt(1, '', { hasWebhook: false, polls, troubles }),
    'degraded: a getUpdates call waits; the relay is paused: Somebody else polls',
  )
  assert.match(
    healthAt(812, '.xxx', { troubles }),
    /^failing: no success for .*; the relay is paused: Somebody else polls$/,
  )
})
