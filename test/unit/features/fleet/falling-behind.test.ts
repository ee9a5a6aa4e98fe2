import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FallingBehind } from '../../../../src/features/fleet/falling-behind.ts'

/** How late a queue is after each minute, by the age of its oldest update in seconds. */
function seen(ages: readonly (number | undefined)[]): readonly ('growing' | 'late' | undefined)[] {
  const behind = new FallingBehind()
  return ages.map((ageS, minute) => {
    behind.note(1, ageS, minute * 60_000)
    return behind.of(1)
  })
}

test('a queue is behind if its oldest update is older than five minutes and gets older', () => {
  assert.deepEqual(seen([240, 300, 360, 420]), [undefined, undefined, undefined, 'growing'])
  assert.deepEqual(seen([240, 250, 260, 290]), [undefined, undefined, undefined, undefined])
})

test('a queue that works off a backlog is not behind, nor is one whose backlog stays', () => {
  assert.deepEqual(seen([1_500, 1_400, 1_000]), [undefined, undefined, undefined])
  assert.deepEqual(seen([1_500, 1_500, 1_500]), [undefined, undefined, undefined])
  assert.deepEqual(seen([1_500, 1_560, 1_500]), [undefined, 'growing', undefined])
})

test('a queue whose oldest update is half an hour old is late, whatever becomes of it', () => {
  assert.deepEqual(seen([1_800, 1_800, 1_799]), [undefined, 'late', undefined])
  assert.deepEqual(seen([3_000, 2_900, 1_000]), [undefined, 'late', undefined])
  assert.deepEqual(seen([1_799, 1_850, 1_850]), [undefined, 'growing', 'late'])
})

test('a queue is forgotten when it has nothing old, or when it is gone', () => {
  assert.deepEqual(seen([1_500, 1_560, 100, 1_500]), [undefined, 'growing', undefined, undefined])
  assert.deepEqual(seen([1_500, 1_560, undefined]), [undefined, 'growing', undefined])
  const behind = new FallingBehind()
  behind.note(1, 3_000, 0)
  behind.note(1, 3_100, 60_000)
  behind.forget((queue) => queue === 1)
  assert.equal(behind.of(1), undefined)
  behind.note(1, 3_000, 0)
  behind.note(2, 3_000, 0)
  behind.note(1, 3_100, 600_000)
  behind.sweep(600_001)
  behind.note(1, undefined, 600_001)
  assert(behind.isEmpty)
})
