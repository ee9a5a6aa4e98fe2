import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatAgo,
  formatAge,
  formatBytes,
  formatCount,
  formatRate,
  formatTime,
} from '../../../../src/page/elements/format.ts'

test('numbers are shown in the unit that fits them', () => {
  assert.deepEqual([0, 119, 120, 7_199, 7_200, 172_800].map(formatAge), [
    '0 s',
    '119 s',
    '2 min',
    '119 min',
    '2 h',
    '2 d',
  ])
  assert.deepEqual([0, 1_023, 1_536, 20_480, 3 * 2 ** 20].map(formatBytes), [
    '0 B',
    '1023 B',
    '1.5 KiB',
    '20 KiB',
    '3.0 MiB',
  ])
  assert.deepEqual([0.04, 9.96, 1_234.5].map(formatRate), ['0.0', '10.0', '1,235'])
  assert.equal(formatCount(100_000), '100,000')
})

test('a moment is said as people say it', () => {
  const nowS = 100_000
  assert.deepEqual(
    [nowS, nowS - 3, nowS - 200, nowS + 41, nowS - 7_200].map((at) => formatAgo(at, nowS)),
    ['now', '3 s ago', '3 min ago', 'in 41 s', '2 h ago'],
  )
})

test('what the server does not know is a dash', () => {
  for (const format of [formatAge, formatBytes, formatCount, formatRate, formatTime]) {
    assert.equal(format(null), '–')
    assert.equal(format(undefined), '–')
  }
})
