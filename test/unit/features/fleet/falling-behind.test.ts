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

test('a queue is behind if its oldest update is older than two minutes and gets older', () => {
  assert.deepEqual(seen([60, 120, 180, 240]), [undefined, undefined, undefined, 'growing'])
  assert.deepEqual(seen([60, 80, 100, 120]), [undefined, undefined, undefined, undefined])
})

test('a queue that was behind is so until it catches up by a fifth', () => {
  assert.deepEqual(seen([300, 400, 390, 330, 320, 310]), [
    undefined,
    'growing',
    'late',
    'late',
    undefined,
    undefined,
  ])
  assert.deepEqual(seen([180, 240, 235, 238]), [undefined, 'growing', 'late', 'growing'])
})

test('a queue that works off a backlog is not behind', () => {
  assert.deepEqual(seen([1_500, 1_400, 1_000, 990]), [undefined, undefined, undefined, undefined])
  const minutes = Array.from({ length: 20 }, (_, minute) => 1_500 - minute * 70)
  assert.deepEqual(
    seen(minutes),
    minutes.map(() => undefined),
  )
})

test('a queue that is as late as before for five minutes is behind', () => {
  const still = Array.from({ length: 7 }, () => 180)
  assert.deepEqual(seen(still).slice(3), [undefined, undefined, 'late', 'late'])
  const slow = Array.from({ length: 7 }, (_, minute) => 400 - minute * 10)
  assert.deepEqual(seen(slow).slice(3), [undefined, undefined, 'late', 'late'])
})

test('a queue whose oldest update is half an hour old is late, whatever becomes of it', () => {
  assert.deepEqual(seen([1_800, 1_800, 1_799, 1_400]), [undefined, 'late', 'late', undefined])
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
