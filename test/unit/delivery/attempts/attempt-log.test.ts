import assert from 'node:assert/strict'
import { test } from 'node:test'
import { webhookAttemptsKept } from '../../../../src/kit/limits.ts'
import { webhookHealthRecentMs } from '../../../../src/delivery/limits.ts'
import type { RecordedAttempt } from '../../../../src/delivery/attempts/attempt.ts'
import { AttemptLog } from '../../../../src/delivery/attempts/attempt-log.ts'

const startMs = 1_800_000_000_000

function attempt(nth: number, more: Partial<RecordedAttempt> = {}): RecordedAttempt {
  return {
    atMs: startMs + nth,
    updateId: nth,
    status: 200,
    durationMs: nth / 2,
    nextRetryMs: Number.NaN,
    address: '192.0.2.1',
    error: undefined,
    responseBody: undefined,
    responseHeaders: undefined,
    isRefused: false,
    ...more,
  }
}

function addFailure(log: AttemptLog, nth: number, more: Partial<RecordedAttempt> = {}): void {
  log.add(
    attempt(nth, { status: 500, error: 'no', nextRetryMs: startMs + nth, ...more }),
    'rejected',
  )
}

test('the last 50 attempts are kept unchanged, the newest first', () => {
  const log = new AttemptLog()
  assert.deepEqual(log.latest(), [])
  const all: RecordedAttempt[] = []
  for (let nth = 1; nth <= 203; nth++) {
    const one = attempt(nth, nth % 3 === 0 ? { error: `error ${nth}`, address: undefined } : {})
    all.unshift(one)
    log.add(one, nth % 3 === 0 ? 'timed_out' : 'delivered')
    assert.deepEqual(log.latest(), all.slice(0, webhookAttemptsKept))
  }
  assert.deepEqual(log.latest(3), all.slice(0, 3))
  assert.equal(webhookAttemptsKept, 50)
})

test('an attempt is copied, so one object can be reused', () => {
  const log = new AttemptLog()
  const one = attempt(1)
  log.add(one, 'delivered')
  one.updateId = 2
  log.add(one, 'delivered')
  assert.deepEqual(
    log.latest().map(({ updateId }) => updateId),
    [2, 1],
  )
})

test('outcomes are counted beyond what is kept', () => {
  const log = new AttemptLog()
  for (let nth = 0; nth < 120; nth++) log.add(attempt(nth), 'delivered')
  addFailure(log, 121)
  log.add(attempt(122, { error: 'x' }), 'refused_for_good')
  log.count('expired', startMs, 7)
  assert.deepEqual(log.counts(), {
    delivered: 120,
    rejected: 1,
    timed_out: 0,
    connection_failed: 0,
    tls_failed: 0,
    refused_for_good: 1,
    expired: 7,
  })
})

test('consecutive failures are counted from the last success on', () => {
  const log = new AttemptLog()
  log.add(attempt(1), 'delivered')
  addFailure(log, 2)
  addFailure(log, 3, { error: 'other' })
  assert.deepEqual(
    [log.failuresInRow, log.failingSinceMs, log.lastSuccessMs, log.lastError],
    [2, startMs + 2, startMs + 1, 'other'],
  )
  log.add(attempt(4), 'delivered')
  assert.deepEqual(
    [log.failuresInRow, log.failingSinceMs, log.lastSuccessMs],
    [0, undefined, startMs + 4],
  )
})

test('recent attempts are those of the last minutes, however many are kept', () => {
  const log = new AttemptLog()
  addFailure(log, 0)
  addFailure(log, 1_000)
  log.add(attempt(2_000), 'delivered')
  assert.deepEqual(log.recent(startMs + 2_000), { attempts: 3, failures: 2, refusals: 0 })
  assert.deepEqual(log.recent(startMs + webhookHealthRecentMs), {
    attempts: 3,
    failures: 2,
    refusals: 0,
  })
  assert.deepEqual(log.recent(startMs + webhookHealthRecentMs + 1), {
    attempts: 2,
    failures: 1,
    refusals: 0,
  })
  assert.deepEqual(log.recent(startMs + 2 * webhookHealthRecentMs), {
    attempts: 0,
    failures: 0,
    refusals: 0,
  })
  for (let nth = 3_000; nth < 3_100; nth++) log.add(attempt(nth), 'delivered')
  assert.deepEqual(log.recent(startMs + 3_100), { attempts: 50, failures: 0, refusals: 0 })
})

test('a new endpoint starts without failures, and earlier attempts can still be read', () => {
  const log = new AttemptLog()
  for (let nth = 0; nth < 5; nth++) addFailure(log, nth)
  log.newEndpoint()
  assert.deepEqual(
    [log.failuresInRow, log.failingSinceMs, log.lastSuccessMs, log.lastError],
    [0, undefined, undefined, undefined],
  )
  assert.deepEqual(log.recent(startMs + 10), { attempts: 0, failures: 0, refusals: 0 })
  assert.equal(log.latest().length, 5)
  assert.equal(log.counts().rejected, 5)
  log.add(attempt(6), 'delivered')
  assert.deepEqual(log.recent(startMs + 10), { attempts: 1, failures: 0, refusals: 0 })
})

test('equal texts are kept once', () => {
  const log = new AttemptLog()
  assert.equal(log.shared('no'), 'no')
  addFailure(log, 1)
  assert.equal(log.shared(['n', 'o'].join('')), 'no')
  assert.equal(log.shared('other'), 'other')
})

test('what is stored of a log makes another one with the same health', () => {
  const log = new AttemptLog()
  assert.equal(log.stored(), undefined)
  log.add(attempt(1), 'delivered')
  assert.equal(log.stored(), undefined)
  for (const nth of [2, 3, 4]) addFailure(log, nth)
  const stored = log.stored()!
  assert.deepEqual(stored, {
    inRow: 3,
    sinceMs: startMs + 2,
    lastSuccessMs: startMs + 1,
    last: {
      atMs: startMs + 4,
      updateId: 4,
      status: 500,
      durationMs: 2,
      error: 'no',
      address: '192.0.2.1',
    },
  })
  const again = new AttemptLog()
  again.restore(stored)
  assert.deepEqual(again.stored(), stored)
  assert.deepEqual(again.latest(), [{ ...log.latest()[0]!, nextRetryMs: Number.NaN }])
  assert.deepEqual(again.recent(startMs + 5), { attempts: 1, failures: 1, refusals: 0 })
  assert.equal(again.counts().rejected, 0, 'this process has tried nothing')
  assert.deepEqual([again.failuresInRow, again.areFailuresAtLeast], [3, true])
  again.add(attempt(6), 'delivered')
  assert.deepEqual([again.failuresInRow, again.areFailuresAtLeast], [0, false])
  assert.equal(again.stored()?.inRow, 0)
  again.newEndpoint()
  assert.equal(again.stored(), undefined)
})

test('a failure that is no longer kept is not stored', () => {
  const log = new AttemptLog()
  addFailure(log, 1)
  for (let nth = 2; nth <= webhookAttemptsKept + 1; nth++) log.add(attempt(nth), 'delivered')
  assert.equal(log.stored(), undefined)
})

test('what is stored of the attempts makes another log with the same attempts, and equal texts are stored once', () => {
  const log = new AttemptLog()
  for (let nth = 1; nth <= 70; nth++) {
    addFailure(log, nth, { durationMs: nth, responseBody: nth % 2 === 0 ? `sorry ${nth}` : 'no' })
  }
  log.add(attempt(71, { durationMs: 3, error: 'never', isRefused: true }), 'refused_for_good')
  const record = log.record()
  assert.equal(record.rows.length, webhookAttemptsKept)
  assert.equal(record.texts.length, 3 + 25, 'the address, two errors, and the bodies that differ')
  const again = new AttemptLog()
  again.restoreAttempts(JSON.parse(JSON.stringify(record)))
  assert.deepEqual(again.latest(), log.latest())
  assert.deepEqual(again.record(), record)
  assert.deepEqual(
    [again.failuresInRow, again.lastError, again.recent(startMs + 80).attempts],
    [0, undefined, 0],
    'the health depends on what is stored of the endpoint',
  )
})

test('the health goes on with the attempts since the failures that were stored, and not with those before', () => {
  const log = new AttemptLog()
  for (const nth of [1, 2]) addFailure(log, nth, { error: 'of another endpoint' })
  log.newEndpoint()
  for (const nth of [3, 4]) addFailure(log, nth)
  const stored = log.stored()!
  for (const nth of [5, 6]) addFailure(log, nth, { error: 'other' })
  const again = new AttemptLog()
  again.restoreAttempts(log.record())
  again.restore(stored)
  assert.deepEqual(again.stored(), log.stored())
  assert.deepEqual(
    [again.failuresInRow, again.lastError, again.failingSinceMs],
    [4, 'other', startMs + 3],
  )
  assert.deepEqual(again.recent(startMs + 7), { attempts: 4, failures: 4, refusals: 0 })
  assert.equal(again.latest().length, 6)

  log.add(attempt(7), 'delivered')
  const recovered = new AttemptLog()
  recovered.restoreAttempts(log.record())
  recovered.restore(stored)
  assert.deepEqual([recovered.failuresInRow, recovered.lastSuccessMs], [0, startMs + 7])
})

test('a failure that was stored after the attempts is one of them', () => {
  const log = new AttemptLog()
  addFailure(log, 1)
  const record = log.record()
  addFailure(log, 2)
  const again = new AttemptLog()
  again.restoreAttempts(record)
  again.restore(log.stored()!)
  assert.deepEqual(
    again.latest().map(({ updateId }) => updateId),
    [2, 1],
  )
})

function bodies(log: AttemptLog): number {
  return log.latest().filter(({ responseBody }) => responseBody !== undefined).length
}

test('bodies have a bound for all logs, within which each keeps the newest', () => {
  const room = { used: 0, max: 1_000 }
  const [first, second] = [new AttemptLog(room), new AttemptLog(room)]
  for (let nth = 0; nth < 60; nth++) addFailure(first, nth, { responseBody: 'same'.repeat(50) })
  assert.deepEqual([room.used, bodies(first)], [200, 50])
  for (let nth = 0; nth < 8; nth++) addFailure(second, nth, { responseBody: `${nth}`.repeat(100) })
  assert.deepEqual([room.used, bodies(second)], [1_000, 8])
  addFailure(second, 9, { responseBody: '9'.repeat(100) })
  assert.deepEqual([room.used, bodies(second)], [300, 1])
  for (let nth = 0; nth < 50; nth++) {
    first.add(attempt(nth), 'delivered')
    second.add(attempt(nth), 'delivered')
  }
  assert.deepEqual([room.used, bodies(first), bodies(second)], [0, 0, 0])
  addFailure(first, 1, { responseBody: 'x' })
  first.forgetAnswers()
  assert.equal(room.used, 0)
})

test('headers share the room of bodies, equal ones are kept once, and both of the newest attempt are kept', () => {
  const room = { used: 0, max: 1_000 }
  const log = new AttemptLog(room)
  const responseHeaders = 'server: nginx'
  for (let nth = 0; nth < 60; nth++) {
    addFailure(log, nth, { responseHeaders, responseBody: 'same' })
  }
  assert.equal(room.used, responseHeaders.length + 4)
  const newest = { responseHeaders: 'h'.repeat(600), responseBody: 'b'.repeat(600) }
  addFailure(log, 60, newest)
  assert.equal(room.used, 1_200)
  const [first, second] = log.latest()
  assert.deepEqual(
    [first?.responseHeaders, first?.responseBody],
    [newest.responseHeaders, newest.responseBody],
  )
  assert.deepEqual([second?.responseHeaders, second?.responseBody], [undefined, undefined])
  for (let nth = 0; nth < webhookAttemptsKept; nth++) log.add(attempt(nth), 'delivered')
  assert.equal(room.used, 0)
})

test('an attempt without headers is stored as before them, and one that was stored so is read', () => {
  const log = new AttemptLog()
  addFailure(log, 2, { responseBody: 'no' })
  addFailure(log, 4, { responseHeaders: 'server: nginx' })
  const record = log.record()
  assert.deepEqual(
    record.rows.map((row) => row.length),
    [9, 10],
  )
  const again = new AttemptLog()
  again.restoreAttempts(JSON.parse(JSON.stringify(record)))
  assert.deepEqual(again.latest(), log.latest())
  assert.deepEqual(again.record(), record)
})

test('attempts are forgotten, or only what the endpoint has answered to them', () => {
  const log = new AttemptLog()
  for (let nth = 1; nth <= 60; nth++) {
    addFailure(log, nth, { responseBody: `body ${nth}`, responseHeaders: `nth: ${nth}` })
  }
  const before = log.latest()
  assert.equal(log.has(15), true)
  const count = log.forget(({ updateId }) =>
    updateId % 2 === 0 ? 'all' : updateId === 33 ? 'answer' : 'nothing',
  )
  assert.equal(count, 25)
  const left = before.filter(({ updateId }) => updateId % 2 === 1)
  assert.deepEqual(
    log.latest(),
    left.map((each) =>
      each.updateId === 33
        ? { ...each, responseBody: undefined, responseHeaders: undefined }
        : each,
    ),
  )
  assert.deepEqual([log.has(14), log.has(15), log.failuresInRow], [false, true, 60])
  assert.equal(log.stored()?.last.updateId, 59)
  assert.deepEqual(log.recent(startMs + 61), { attempts: 25, failures: 25, refusals: 0 })
  log.forget(() => 'all')
  assert.deepEqual([log.latest(), log.hasErrors, log.stored()], [[], false, undefined])
})

test('after attempts were forgotten, those of an earlier endpoint still do not count', () => {
  const log = new AttemptLog()
  for (let nth = 1; nth <= 4; nth++) addFailure(log, nth)
  log.newEndpoint()
  addFailure(log, 5)
  addFailure(log, 6)
  log.forget(({ updateId }) => (updateId === 2 || updateId === 6 ? 'all' : 'nothing'))
  assert.deepEqual(log.recent(startMs + 7), { attempts: 1, failures: 1, refusals: 0 })
  assert.equal(log.stored()?.last.updateId, 5)
})

function whole(nth: number, more: Partial<RecordedAttempt> = {}): RecordedAttempt {
  return attempt(nth, { durationMs: nth, ...more })
}

test('the place in a trace is kept with its attempt alone, and only then stored', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const log = new AttemptLog()
  log.add(whole(1), 'delivered')
  assert.deepEqual(
    log.record().rows.map(({ length }) => length),
    [9],
  )
  log.add(whole(2, { traceparent }), 'delivered')
  log.add(whole(3), 'delivered')
  assert.deepEqual(log.latest(), [whole(3), whole(2, { traceparent }), whole(1)])
  const again = new AttemptLog()
  again.restoreAttempts(JSON.parse(JSON.stringify(log.record())))
  assert.deepEqual(again.latest(), log.latest())
  for (let nth = 4; nth < 4 + webhookAttemptsKept; nth++) log.add(whole(nth), 'delivered')
  assert(log.latest().every((each) => !('traceparent' in each)))
})
