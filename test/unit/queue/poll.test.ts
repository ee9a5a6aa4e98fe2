import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isNewcomerRefused, termsOf, wakeAtMs } from '../../../src/queue/poll.ts'

const call = { offset: 5, limit: 100, timeoutMs: 0, startMs: 10_000 }

test('only the same raw offset soon afterwards is delayed', () => {
  const terms = (startMs: number, offset = 5): string => {
    const { limit, timeoutMs } = termsOf(call, { offset, startMs })
    return `${limit} ${timeoutMs}`
  }
  assert.equal(terms(10_000), '1 3000')
  assert.equal(terms(9_501), '1 3000')
  assert.equal(terms(9_500), '100 3000')
  assert.equal(terms(7_001), '100 3000')
  assert.equal(terms(7_000), '100 0')
  assert.equal(terms(10_000, 6), '100 0')
  const { limit, timeoutMs } = termsOf(call, undefined)
  assert.deepEqual([limit, timeoutMs], [100, 0])
  assert.equal(termsOf({ ...call, timeoutMs: 50_000 }, call).timeoutMs, 50_000)
})

test('a new poll is refused only if its offset is older', () => {
  assert.deepEqual(
    [4, 5, 6].map((offset) => isNewcomerRefused(offset, 5)),
    [true, false, false],
  )
})

test('a poll is woken 1 ms after the last push and at most 2 ms after the first', () => {
  assert.equal(wakeAtMs(10, 10), 11)
  assert.equal(wakeAtMs(10, 10.75), 11.75)
  assert.equal(wakeAtMs(10, 11.5), 12)
})
