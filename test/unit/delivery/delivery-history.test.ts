import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DeliveryHistory } from '../../../src/delivery/delivery-history.ts'
import { deliveryHistoryMinutes } from '../../../src/delivery/limits.ts'

const startMs = 1_800_000_000_000
const minuteMs = 60_000

function minuteOf(ms: number): number {
  return Math.floor(ms / minuteMs)
}

test('outcomes and response times are counted in their minute', () => {
  const history = new DeliveryHistory(2)
  history.count(0, startMs, 3)
  history.addResponse(startMs + 10, 20.4)
  history.addResponse(startMs + minuteMs - 1, 101)
  history.count(1, startMs + minuteMs, 1)
  assert.deepEqual(history.minutes(startMs + minuteMs), [
    {
      minute: startMs / minuteMs,
      counts: [3, 0],
      responses: 2,
      responseMsSum: 121,
      responseMsMax: 101,
      deliveryP50Ms: undefined,
      deliveryP99Ms: undefined,
    },
    {
      minute: startMs / minuteMs + 1,
      counts: [0, 1],
      responses: 0,
      responseMsSum: 0,
      responseMsMax: 0,
      deliveryP50Ms: undefined,
      deliveryP99Ms: undefined,
    },
  ])
})

test('percentiles of the delivery times are those of their minute, also of one that is over', () => {
  const history = new DeliveryHistory(1)
  history.addDelivery(startMs, 40, 99)
  history.addDelivery(startMs + 1, 3_000, 1)
  history.addDelivery(startMs + minuteMs, 7, 1)
  history.count(0, startMs + 2 * minuteMs, 1)
  const percentiles = history
    .minutes(startMs + 2 * minuteMs)
    .map(({ deliveryP50Ms, deliveryP99Ms }) => [deliveryP50Ms, deliveryP99Ms])
  assert.deepEqual(percentiles, [
    [38, 50],
    [8, 10],
    [undefined, undefined],
  ])
})

test('a minute is shown for an hour', () => {
  const history = new DeliveryHistory(1)
  history.count(0, startMs, 1)
  const lastMs = startMs + (deliveryHistoryMinutes - 1) * minuteMs
  assert.equal(history.minutes(lastMs).length, 1)
  assert.equal(history.minutes(lastMs + minuteMs).length, 0)
})

test('the history is what a list of all deliveries says of the last hour', () => {
  const delivery = fc.record({
    afterMs: fc.integer({ min: 0, max: 40 * minuteMs }),
    outcome: fc.nat(2),
    durationMs: fc.nat(60_000),
  })
  fc.assert(
    fc.property(fc.array(delivery, { maxLength: 30 }), (deliveries) => {
      const history = new DeliveryHistory(3)
      let nowMs = startMs
      const all = deliveries.map(({ afterMs, ...rest }) => ({ ...rest, atMs: (nowMs += afterMs) }))
      for (const { outcome, durationMs, atMs } of all) {
        history.count(outcome, atMs, 1)
        history.addResponse(atMs, durationMs)
      }
      const shown = all.filter(
        ({ atMs }) => minuteOf(atMs) > minuteOf(nowMs) - deliveryHistoryMinutes,
      )
      const expected = [...new Set(shown.map(({ atMs }) => minuteOf(atMs)))].map((minute) => {
        const own = shown.filter(({ atMs }) => minuteOf(atMs) === minute)
        return {
          minute,
          counts: [0, 1, 2].map((each) => own.filter(({ outcome }) => outcome === each).length),
          responses: own.length,
          responseMsSum: own.reduce((sum, { durationMs }) => sum + durationMs, 0),
          responseMsMax: Math.max(...own.map(({ durationMs }) => durationMs)),
          deliveryP50Ms: undefined,
          deliveryP99Ms: undefined,
        }
      })
      assert.deepEqual(history.minutes(nowMs), expected)
    }),
  )
})
