import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fullAfter, lackMs } from '../../../src/kit/token-bucket.ts'

test('a full bucket gives what it holds at once, and then as much as it gains', () => {
  const [burstMs, costMs] = [1_000, 250]
  let fullAtMs = 0
  for (let taken = 0; taken < 4; taken++) {
    fullAtMs = fullAfter(fullAtMs, 5_000, costMs)
    assert.equal(lackMs(fullAtMs, 5_000, burstMs), 0)
  }
  assert.equal(lackMs(fullAfter(fullAtMs, 5_000, costMs), 5_000, burstMs), 250)
  assert.equal(lackMs(fullAfter(fullAtMs, 5_250, costMs), 5_250, burstMs), 0)
  // What was not taken in an hour is no more than the bucket holds.
  assert.equal(lackMs(fullAfter(fullAtMs, 3_605_000, 5 * costMs), 3_605_000, burstMs), 250)
})
