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
function logOf(history: string, failure = 'Connection refused'): AttemptLog {
  const log = new AttemptLog()
  for (const [nth, what] of history.split('').entries()) {
    const error = what === '.' ? undefined : failure
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
  const { parkedKeys = 0, nextAttemptMs, unansweredMs, endpointPerSecond, ...rest } = more
  const { parkedSubjects, ...others } = rest
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
    waiting: { parkedKeys, parkedSubjects, nextAttemptMs, unansweredMs, endpointPerSecond },
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
    'healthy: no response since the last success 83 min ago',
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
      'degraded: endpoint does not respond; a delivery has had no response for 27 s',
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
    'failing: Connection refused; 3 failures in 13 min, the last success 13 min ago; 3 keys wait, a delivery has had no response for 2 s, next attempt in 41 s',
  )
})

test('failures between successes make a webhook degraded', () => {
  assert.equal(healthAt(4, '.x.'), 'degraded: Connection refused; 1 of the last 3 attempts failed')
  assert.equal(healthAt(4, '.xx'), 'degraded: Connection refused; 2 of the last 3 attempts failed')
  assert.equal(
    healthAt(901, '.xx'),
    'degraded: Connection refused; 2 of the last 2 attempts failed',
    'what is long ago counts no more',
  )
})

test('one or two failures without a later attempt stay a reason, however old', () => {
  assert.equal(healthAt(5_000, '.x'), 'degraded: Connection refused; the last attempt failed')
})

test('a parked key makes a webhook degraded, even if all recent attempts of others succeeded', () => {
  assert.equal(
    healthAt(60, `x${'.'.repeat(50)}`, { parkedKeys: 1, nextAttemptMs: startMs + 100_000 }),
    'degraded: Connection refused; others succeed; 1 key waits, next attempt in 40 s',
  )
})

test('three failures without a success between them make a webhook failing', () => {
  assert.equal(
    healthAt(812, '.xxx', { parkedKeys: 3, nextAttemptMs: startMs + 852_001 }),
    'failing: Connection refused; 3 failures in 13 min, the last success 13 min ago; 3 keys wait, next attempt in 41 s',
  )
  assert.equal(
    healthAt(812, 'xxxx'),
    'failing: Connection refused; 4 failures in 13 min, no success yet',
  )
  assert.equal(
    healthAt(100_000, 'xxx', { nextAttemptMs: startMs }),
    'failing: Connection refused; 3 failures in 27 h, no success yet; next attempt now',
  )
  assert.match(
    healthAt(5, 'xxx.'),
    /^degraded: Connection refused; 3 of the last 4 attempts failed/,
  )
})

test('a wall clock that is set back causes no negative times', () => {
  assert.equal(
    healthAt(-50, 'xxx'),
    'failing: Connection refused; 3 failures in 0 s, no success yet',
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
    'degraded: Connection refused; 2 of the last 3 attempts failed; recovering with 41 deliveries a second at present; 1 update waits',
  )
  assert.equal(
    healthAt(9, '.xxx', {
      limitPerSecond: 0.5,
      endpointPerSecond: 1,
      pendingCount: 7,
      parkedKeys: 3,
    }),
    'failing: Connection refused; 3 failures in 8 s, the last success 9 s ago; 3 keys wait; limited to 0.5 deliveries a second by the operator; slowed down to 1 delivery a second at present; 7 updates wait',
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
  assert.match(
    healthAt(5, 'xxxr'),
    /^degraded: Connection refused; 3 of the last 4 attempts failed/,
  )
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
    'unpolled: nobody polls; last polled 3 h ago; 11,008 updates wait, the oldest for 3 h',
  )
  assert.equal(
    polled({ knownForMs: 60_001 }, 1),
    'unpolled: nobody polls; no poll since the start 60 s ago; 1 update waits, the oldest for 3 h',
  )
  assert.equal(
    polled({}, 1),
    'undefined: no poll since the start 20 s ago; 1 update waits, the oldest for 3 h',
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
  const text = 'two clients poll at once; 40 refusals in the last minute; a getUpdates call waits'
  assert.equal(polled({ ...polls, fight }), `undefined: ${text}`)
  assert.equal(polled({ ...polls, fight: { ...fight, forMs: 60_000 } }), `degraded: ${text}`)
  assert.match(
    polled({ ...polls, fight: { kind: 'takeover', forMs: 60_000, lastMinute: 1 } }),
    /^degraded: two clients poll at once; 1 takeover in the last minute; /,
  )
})

test('polls that get the same updates for five minutes and confirm none degrade the health, and are named first', () => {
  const polls = { isWaiting: false, lastBeforeMs: 2_000 }
  const repeated = { times: 3, firstBeforeMs: 300_000, lastBeforeMs: 2_000 }
  assert.match(
    polled({ ...polls, repeated }, 7),
    /^degraded: polls confirm nothing; they get the same updates since \d\d:\d\d UTC; last polled 2 s ago; 7 updates wait/,
  )
  const fine = /^undefined: last polled 2 s ago; 7 updates wait/
  assert.match(polled({ ...polls, repeated: { ...repeated, times: 2 } }, 7), fine)
  assert.match(polled({ ...polls, repeated: { ...repeated, firstBeforeMs: 299_999 } }, 7), fine)
  assert.match(polled({ ...polls, repeated: { ...repeated, lastBeforeMs: 120_001 } }, 7), fine)
  assert.match(
    polled({ ...polls, repeated: { ...repeated, firstBeforeMs: 2 * 86_400_000 } }, 7),
    /^degraded: polls confirm nothing; they get the same updates since \d{4}-\d\d-\d\d \d\d:\d\d UTC; /,
  )
})

test('updates that expire for five minutes though somebody polls degrade the health', () => {
  const polls = { isWaiting: false, lastBeforeMs: 2_000 }
  assert.equal(
    polled({ ...polls, expiring: { count: 1_200, forMs: 720_000 } }),
    'degraded: updates expire before polls get them; 1,200 in 12 min; last polled 2 s ago',
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
    'unpolled: nobody polls; last polled 2 h ago; the last update expired 59 min ago',
  )
  assert.equal(healthAt(3_600, '', facts), 'undefined: last polled 2 h ago')
  const lately = { ...facts, polls: { ...polls, lastBeforeMs: 1_000 } }
  assert.equal(healthAt(60, '', lately), 'undefined: last polled 1 s ago')
  log.newEndpoint()
  assert.equal(healthAt(60, '', facts), 'undefined: last polled 2 h ago')
})

test('a webhook whose oldest update gets older is behind, if nothing worse is known', () => {
  const facts = { lateness: 'growing', pendingCount: 1_200, oldestAgeS: 1_740 } as const
  assert.equal(
    healthAt(1, '.', facts),
    'behind: updates are 29 min late, and get later; 1,200 updates wait; the last attempt succeeded',
  )
  assert.match(healthAt(812, '.xxx', facts), /^failing: /)
  assert.match(healthAt(1, '.x', facts), /^degraded: /)
  assert.match(healthAt(1, '.', { ...facts, isPaused: true }), /^paused: /)
})

test('a bot that is half an hour late is behind, though it catches up', () => {
  const facts = { lateness: 'late', pendingCount: 1, oldestAgeS: 3_250 } as const
  assert.equal(
    healthAt(1, '.', facts),
    'behind: updates are 54 min late; 1 update waits; the last attempt succeeded',
  )
  const polls = { isWaiting: false, lastBeforeMs: 1_000, knownForMs: 3_600_000 }
  assert.equal(
    healthAt(1, '', { ...facts, hasWebhook: false, polls }),
    'behind: updates are 54 min late; last polled 1 s ago; 1 update waits, the oldest for 54 min',
  )
  const unpolled = { ...facts, hasWebhook: false, polls: { ...polls, lastBeforeMs: 3_600_000 } }
  assert.match(healthAt(1, '', unpolled), /^unpolled: nobody polls; /)
})

test('the cause comes first: what the endpoint answers, in the tense of what it does now', () => {
  const log = (history: string): AttemptLog =>
    logOf(history, 'Wrong response from the webhook: 502 Bad Gateway')
  assert.equal(
    healthAt(600, '', { log: log('xxx') }),
    'failing: endpoint answers 502 Bad Gateway; 3 failures in 10 min, no success yet',
  )
  assert.match(
    healthAt(4, '', { log: log('.x.') }),
    /^degraded: endpoint answered 502 Bad Gateway;/,
  )
  const odd = 'Wrong response from the webhook: not HTTP/1.1'
  assert.match(healthAt(4, '', { log: logOf('xxx', odd) }), /: endpoint answers wrongly: not HTTP/)
})

function waits(parkedKeys: number, chats: number, users: number): string | undefined {
  return healthAt(9, 'xxx', { parkedKeys, parkedSubjects: { chats, users } }).split('; ')[2]
}

test('ordering keys are called chats and users where they are', () => {
  assert.equal(waits(4, 4, 0), '4 chats wait')
  assert.equal(waits(1, 0, 1), '1 user waits')
  assert.equal(waits(2, 1, 1), '1 chat and 1 user wait')
  assert.equal(waits(3, 2, 0), '2 chats and 1 other key wait')
  assert.equal(waits(3, 0, 0), '3 keys wait')
})

test('failures that an earlier process has stored are at least so many', () => {
  const log = new AttemptLog()
  log.restore(logOf('.xxx').stored()!)
  assert.equal(
    healthAt(812, '', { log }),
    'failing: Connection refused; at least 3 failures in 13 min, the last success 13 min ago',
  )
})

test('a paused relay is in the sentence of any queue, and makes a word that was fine degraded', () => {
  const troubles = ['the relay is paused: Somebody else polls']
  const polls = { isWaiting: true, lastBeforeMs: 0, knownForMs: 0 }
  assert.equal(
    healthAt(1, '.', { troubles }),
    'degraded: the relay is paused: Somebody else polls; the last attempt succeeded',
  )
  assert.equal(
    healthAt(1, '', { hasWebhook: false, polls, troubles }),
    'degraded: the relay is paused: Somebody else polls; a getUpdates call waits',
  )
  assert.match(
    healthAt(812, '.xxx', { troubles }),
    /^failing: Connection refused; .*; the relay is paused: Somebody else polls$/,
  )
})
