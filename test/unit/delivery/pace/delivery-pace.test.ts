import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeliveryPace } from '../../../../src/delivery/pace/delivery-pace.ts'

const isSick = true
const unknown = { failures: 0 }

/** Sends as fast as the pace permits. Returns how much is sent from `fromMs` to before `toMs`. */
function sendAll(pace: DeliveryPace, fromMs: number, toMs: number): number {
  let sent = 0
  for (let nowMs = fromMs; nowMs < toMs; nowMs++) {
    pace.refresh(nowMs)
    for (let burst = 0; burst < 10 && pace.waitMs(nowMs) === 0; burst++) {
      pace.taken(nowMs)
      pace.sent({ monotonicMs: () => nowMs })
      pace.succeeded({ on: { startedMs: nowMs }, lane: { failures: 0 } }, nowMs)
      sent++
    }
  }
  return sent
}

function failFor(pace: DeliveryPace, fromMs: number, toMs: number): void {
  for (let nowMs = fromMs; nowMs < toMs; nowMs += 100) {
    pace.failed({ on: { startedMs: nowMs }, lane: unknown }, isSick, nowMs)
  }
}

test('without a limit and without an outage nothing waits and no clock is read', () => {
  const pace = new DeliveryPace()
  assert.equal(sendAll(pace, 0, 1_000), 10_000)
  pace.sent({ monotonicMs: () => assert.fail('the clock was read') })
  assert.equal(pace.endpointPerSecond, undefined)
  assert.equal(pace.maySend(0), true)
})

test('a limit is in effect immediately when it is set, changed and removed', () => {
  let limit: number | undefined
  const pace = new DeliveryPace(() => limit)
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
  const pace = new DeliveryPace(() => 5)
  let sent = 0
  for (let nowMs = 0; nowMs < 10_000; nowMs++) {
    pace.refresh(nowMs)
    if (pace.waitMs(nowMs) > 0) continue
    pace.taken(nowMs)
    pace.sent({ monotonicMs: () => nowMs })
    pace.failed({ on: { startedMs: nowMs }, lane: { failures: sent % 3 } }, !isSick, nowMs)
    sent++
  }
  assert.equal(sent, 49)
})

test('the pace of the endpoint counts beside the limit, and the lower one of both applies', () => {
  for (const [limit, expected] of [
    [undefined, [9, 17, 33, 64]],
    [50, [9, 19, 25, 25]],
    [10, [5, 5, 5, 5]],
  ] as const) {
    const pace = new DeliveryPace(() => limit)
    failFor(pace, 0, 1_000)
    assert.equal(pace.endpointPerSecond, 20)
    const sent = [1_000, 1_500, 2_000, 2_500].map((fromMs) => sendAll(pace, fromMs, fromMs + 500))
    for (const [step, count] of sent.entries()) {
      const wanted = expected[step] ?? 0
      assert(Math.abs(count - wanted) <= 2, `limit ${limit}: ${sent.join()}`)
    }
  }
})

test('a delivery that was taken earlier is not sent before its turn', () => {
  const pace = new DeliveryPace(() => 10)
  pace.refresh(0)
  assert.equal(pace.waitMs(200), 0)
  pace.taken(200)
  assert.equal(pace.maySend(200), true)
  pace.sent({ monotonicMs: () => 200 })
  assert.equal(pace.maySend(200), false)
  assert.equal(pace.maySend(291), true)
})
