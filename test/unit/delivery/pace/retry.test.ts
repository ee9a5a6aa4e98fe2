import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRetryAfter, retryDelayMs } from '../../../../src/delivery/pace/retry.ts'

const nowMs = Date.UTC(2026, 1, 28, 23, 59, 50)
const none = { retryAfterMs: undefined }

test('the first failure is retried immediately, and then the delay doubles up to a limit of 60 to 120 s', () => {
  const delays = [1, 2, 3, 4, 5, 6, 7].map((failures) =>
    retryDelayMs({ failures, ...none }, () => 0.999),
  )
  assert.deepEqual(delays, [0, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000])
  assert.equal(
    retryDelayMs({ failures: 7, ...none }, () => 0),
    60_000,
  )
  for (const failures of [8, 100, 5_000]) {
    assert.equal(
      retryDelayMs({ failures, ...none }, () => 0),
      60_000,
    )
    assert.equal(
      retryDelayMs({ failures, ...none }, () => 0.5),
      90_000,
    )
  }
})

test('a Retry-After replaces the computed delay, even of the first failure', () => {
  assert.equal(
    retryDelayMs({ failures: 1, retryAfterMs: 7_000 }, () => 0),
    7_000,
  )
  assert.equal(
    retryDelayMs({ failures: 20, retryAfterMs: 7_000 }, () => 0),
    7_000,
  )
})

test('Retry-After is read as seconds or as any of the three date forms, and clamped to an hour', () => {
  assert.equal(parseRetryAfter('5', nowMs), 5_000)
  assert.equal(parseRetryAfter(' 3601 ', nowMs), 3_600_000)
  assert.equal(parseRetryAfter('99999999999999999999999', nowMs), 3_600_000)
  assert.equal(parseRetryAfter('Sun, 01 Mar 2026 00:00:00 GMT', nowMs), 10_000)
  assert.equal(parseRetryAfter('Sunday, 01-Mar-26 00:00:00 GMT', nowMs), 10_000)
  assert.equal(parseRetryAfter('Sun Mar  1 00:00:00 2026', nowMs), 10_000)
  assert.equal(parseRetryAfter('Fri, 01 Jan 2100 00:00:00 GMT', nowMs), 3_600_000)
})

test('a Retry-After that is 0, past or unparsable counts as absent', () => {
  for (const value of [
    undefined,
    '',
    '0',
    '-5',
    '1.5',
    'soon',
    'Sat, 28 Feb 2026 23:59:50 GMT',
    '2026-03-01',
    'Sun, 01 Foo 2026 00:00:00 GMT',
  ]) {
    assert.equal(parseRetryAfter(value, nowMs), undefined, value)
  }
})

test('dates agree with the calendar on leap days and at turns of centuries', () => {
  for (const text of [
    'Thu, 29 Feb 2024 12:34:56 GMT',
    'Mon, 01 Mar 2100 00:00:00 GMT',
    'Fri, 31 Dec 1999 23:59:59 GMT',
  ]) {
    const ms = Date.parse(text)
    assert.equal(parseRetryAfter(text, ms - 1_000), 1_000, text)
  }
})

test('delays of the operator replace the usual ones, and the last one repeats between it and its double', () => {
  const delaysS = [0, 3, 10]
  const delayMs = (failures: number, drawn: number): number =>
    retryDelayMs({ failures, ...none, delaysS }, () => drawn)
  assert.deepEqual(
    [1, 2, 3, 4, 100].map((failures) => delayMs(failures, 0)),
    [0, 3_000, 10_000, 10_000, 10_000],
  )
  assert.deepEqual([delayMs(2, 0.5), delayMs(3, 0.5), delayMs(9, 0.5)], [3_000, 15_000, 15_000])
  assert.equal(
    retryDelayMs({ failures: 1, retryAfterMs: 7_000, delaysS }, () => 0),
    7_000,
  )
})
