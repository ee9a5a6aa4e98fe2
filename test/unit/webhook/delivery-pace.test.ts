import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AttemptPace } from '../../../src/webhook/attempt-pace.ts'
import { DeliveryPace } from '../../../src/webhook/delivery-pace.ts'

/** Sends as fast as the pace permits. Returns how much is sent from `fromMs` to before `toMs`. */
function sendAll(pace: DeliveryPace, fromMs: number, toMs: number): number {
  let sent = 0
  for (let nowMs = fromMs; nowMs < toMs; nowMs++) {
    pace.refresh(nowMs)
    for (let burst = 0; burst < 10 && pace.waitMs(nowMs) === 0; burst++) {
      pace.taken(nowMs)
      pace.sent({ monotonicMs: () => nowMs })
      pace.succeeded(nowMs)
      sent++
    }
  }
  return sent
}

function failFor(pace: DeliveryPace, fromMs: number, toMs: number): void {
  for (let nowMs = fromMs; nowMs < toMs; nowMs += 100) {
    pace.failed({ on: { startedMs: nowMs }, lane: { failures: 0 } }, nowMs)
  }
}

test('without a limit and without an outage nothing waits and no clock is read', () => {
  const pace = new DeliveryPace()
  assert.equal(sendAll(pace, 0, 1_000), 10_000)
  pace.sent({ monotonicMs: () => assert.fail('the clock was read') })
  assert.equal(pace.recoveryPerSecond, undefined)
  assert.equal(pace.maySend(0), true)
})

test('a limit is in effect immediately when it is set, changed and removed', () => {
  let limit: number | undefined
  const pace = new DeliveryPace({ limit: () => limit })
  limit = 5
  assert.equal(sendAll(pace, 0, 10_000), 49)
  limit = 100
  assert.equal(sendAll(pace, 10_000, 11_000), 100)
  limit = undefined
  assert.equal(sendAll(pace, 11_000, 11_100), 1_000)
  limit = 2
  assert.equal(sendAll(pace, 11_100, 13_100), 3)
})

test('retries count like first attempts', () => {
  const pace = new DeliveryPace({ limit: () => 5 })
  let sent = 0
  for (let nowMs = 0; nowMs < 10_000; nowMs++) {
    pace.refresh(nowMs)
    if (pace.waitMs(nowMs) > 0) continue
    pace.taken(nowMs)
    pace.sent({ monotonicMs: () => nowMs })
    pace.failed({ on: { startedMs: nowMs }, lane: { failures: sent % 3 } }, nowMs)
    sent++
  }
  assert.equal(sent, 49)
})

test('after an outage the deliveries per second are 10, 20, 40 and so on, or as many as the limit allows', () => {
  for (const [limit, expected] of [
    [undefined, [9, 20, 39]],
    [15, [9, 15, 15]],
    [5, [4, 5, 5]],
  ] as const) {
    const pace = new DeliveryPace({ limit: () => limit })
    failFor(pace, 0, 2_000)
    pace.succeeded(2_000)
    assert.equal(pace.recoveryPerSecond, 10)
    const sent = [2_000, 3_000, 4_000].map((fromMs) => sendAll(pace, fromMs, fromMs + 1_000))
    for (const [second, count] of sent.entries()) {
      const wanted = expected[second] ?? 0
      assert(
        Math.abs(count - wanted) <= 1,
        `limit ${limit}: ${sent.join()}, expected ${expected.join()}`,
      )
    }
  }
})

test('the pace of failing attempts counts beside the limit', () => {
  const attempts = new AttemptPace({ failuresMax: 1, failuresPerSecond: 1 })
  const pace = new DeliveryPace({ limit: () => 10_000, attempts })
  pace.refresh(0)
  failFor(pace, 1_000, 1_100)
  assert.equal(pace.waitMs(1_000), 1_000)
})

test('a delivery that was taken earlier is not sent before its turn', () => {
  const pace = new DeliveryPace({ limit: () => 10 })
  pace.refresh(0)
  assert.equal(pace.waitMs(200), 0)
  pace.taken(200)
  assert.equal(pace.maySend(200), true)
  pace.sent({ monotonicMs: () => 200 })
  assert.equal(pace.maySend(200), false)
  assert.equal(pace.maySend(291), true)
})

test('the rate falls although the pace of attempts is lower, because this pace holds deliveries back, too', () => {
  const pace = new DeliveryPace()
  failFor(pace, 0, 2_000)
  pace.succeeded(2_000)
  for (let nowMs = 2_000; nowMs < 8_000; nowMs += 1_000) sendAll(pace, nowMs, nowMs + 1_000)
  const before = pace.recoveryPerSecond ?? 0
  assert(before >= 320, `${before}`)
  for (let nowMs = 8_000; nowMs < 14_000; nowMs++) {
    pace.refresh(nowMs)
    if (pace.waitMs(nowMs) > 0) continue
    pace.taken(nowMs)
    pace.sent({ monotonicMs: () => nowMs })
    pace.failed({ on: { startedMs: nowMs }, lane: { failures: 1 } }, nowMs)
  }
  assert((pace.recoveryPerSecond ?? before) <= before / 16, `${pace.recoveryPerSecond}`)
})
