import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatAgo,
  formatBoth,
  formatExact,
  formatAge,
  formatBytes,
  formatCount,
  formatRate,
  formatTime,
} from '../../../../src/page/elements/format.ts'
import { showZone, unixSecondsOf } from '../../../../src/page/elements/browser-clock.ts'

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

test('moments are shown and read in the zone that is chosen', (t) => {
  t.after(() => showZone('local'))
  const atS = 1_800_000_000
  const local = [formatTime(atS), formatExact(atS)]
  showZone('utc')
  assert.deepEqual([formatTime(atS), formatExact(atS)], ['08:00:00', '15 Jan 2027, 08:00:00 UTC'])
  assert.equal(unixSecondsOf('2027-01-15T08:00'), atS)
  assert.equal(unixSecondsOf(''), undefined)
  const both = formatBoth(atS).split('\n')
  assert.deepEqual([both[0], both.at(-1)], [formatExact(atS), local[1]])
  showZone('local')
  assert.deepEqual([formatTime(atS), formatExact(atS)], local)
})
