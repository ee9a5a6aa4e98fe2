import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pollPauseMs } from '../../../../src/features/relay/relay-job.ts'

test('a relay polls at once after one failure, and then ever later, up to two minutes', () => {
  const pauses = [1, 2, 3, 4, 7, 8, 1_000_000].map((failures) => pollPauseMs(failures, () => 0.5))
  assert.deepEqual(pauses, [0, 2_000, 4_000, 8_000, 64_000, 90_000, 90_000])
  assert.equal(
    pollPauseMs(2, () => 0),
    1_500,
  )
  assert(pollPauseMs(99, () => 0.999) < 120_000)
})
