import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hourTimes } from '../../../../src/page/bot/hour-times.ts'

const none = [0, 0, 0, 0]
const quiet = {
  from: 600,
  outcomes: { delivered: none, rejected: none },
  mean_ms: [null, null, null, null],
  max_ms: [null, null, null, null],
  delivery_p50_ms: [null, null, null, null],
  delivery_p99_ms: [null, null, null, null],
}

test('the charts of a queue begin with the first minute in which something happened', () => {
  assert.deepEqual(hourTimes(quiet), { times: [600, 660, 720, 780], beginS: undefined })
  const rejected = { ...quiet, outcomes: { delivered: none, rejected: [0, 0, 2, 0] } }
  assert.equal(hourTimes(rejected).beginS, 720)
  assert.equal(hourTimes({ ...rejected, fetched: [0, 3, 0, 0], confirmed: none }).beginS, 660)
  assert.equal(hourTimes({ ...quiet, fetched: none, confirmed: [0, 0, 0, 1] }).beginS, 780)
})
