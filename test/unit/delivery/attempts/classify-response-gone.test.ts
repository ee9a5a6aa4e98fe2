import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GoneClock } from '../../../../src/delivery/attempts/classify-response.ts'

test('the first 410 starts the clock, any other response stops it, and a 410 past the timeout removes the webhook', () => {
  const clock = new GoneClock(1_000, undefined)
  assert.equal(clock.answered(false, 0), 'unchanged')
  assert.equal(clock.answered(true, 10), 'changed')
  assert.equal(clock.sinceMs, 10)
  assert.equal(clock.answered(true, 1_010), 'unchanged')
  assert.equal(clock.answered(false, 1_011), 'changed')
  assert.equal(clock.sinceMs, undefined)
  assert.equal(clock.answered(true, 2_000), 'changed')
  assert.equal(clock.answered(true, 3_001), 'closed')
})

test('the clock continues from a start that was persisted', () => {
  assert.equal(new GoneClock(1_000, 5).answered(true, 1_006), 'closed')
})
