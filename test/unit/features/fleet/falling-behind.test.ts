import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FallingBehind } from '../../../../src/features/fleet/falling-behind.ts'

/** Whether a queue is behind after each minute, by the age of its oldest update in seconds. */
function seen(ages: readonly (number | undefined)[]): readonly boolean[] {
  const behind = new FallingBehind()
  return ages.map((ageS, minute) => {
    behind.note(1, ageS, minute * 60_000)
    return behind.has(1)
  })
}

test('a queue is behind if its oldest update is older than five minutes and gets older', () => {
  assert.deepEqual(seen([240, 300, 360, 420]), [false, false, false, true])
  assert.deepEqual(seen([240, 250, 260, 290]), [false, false, false, false])
})

test('a queue that works off a backlog is not behind, nor is one whose backlog stays', () => {
  assert.deepEqual(seen([3_000, 2_900, 1_000]), [false, false, false])
  assert.deepEqual(seen([3_000, 3_000, 3_000]), [false, false, false])
  assert.deepEqual(seen([3_000, 3_060, 3_000]), [false, true, false])
})

test('a queue is forgotten when it has nothing old, or when it is gone', () => {
  assert.deepEqual(seen([3_000, 3_060, 100, 3_000]), [false, true, false, false])
  assert.deepEqual(seen([3_000, 3_060, undefined]), [false, true, false])
  const behind = new FallingBehind()
  behind.note(1, 3_000, 0)
  behind.note(1, 3_100, 60_000)
  behind.forget((queue) => queue === 1)
  assert.equal(behind.has(1), false)
  behind.note(1, 3_000, 0)
  behind.note(2, 3_000, 0)
  behind.note(1, 3_100, 600_000)
  behind.sweep(600_001)
  behind.note(1, undefined, 600_001)
  assert(behind.isEmpty)
})
