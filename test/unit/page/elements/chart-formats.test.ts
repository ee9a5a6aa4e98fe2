import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  chartRows,
  chartRowsMax,
  durationSteps,
  durationStepText,
  namePlaces,
} from '../../../../src/page/elements/chart-formats.ts'
import { formatMs } from '../../../../src/page/elements/format.ts'

test('a time is said in the unit that people have for it', () => {
  assert.deepEqual([0, 0.42, 9, 812.4, 1_234, 42_000, 3_226_235, 9e6, null].map(formatMs), [
    '0 ms',
    '0.4 ms',
    '9 ms',
    '812 ms',
    '1.2 s',
    '42 s',
    '53 min',
    '2 h',
    '–',
  ])
})

test('an axis of durations has all values between steps that people have words for', () => {
  assert.deepEqual(durationSteps(2, 3_226_235).map(durationStepText), [
    '1 ms',
    '10 ms',
    '100 ms',
    '1 s',
    '10 s',
    '1 min',
    '10 min',
    '1 h',
  ])
  assert.deepEqual(durationSteps(0, 0), [1, 10])
  assert.deepEqual(durationSteps(10, 10), [10, 100])
  assert.deepEqual(durationSteps(1e12, 1e12), [86_400_000, 864_000_000], 'longer than anything')
})

test('the names of lines that end together stand apart, and none is outside', () => {
  const fit = { gap: 10, bottom: 100 }
  assert.deepEqual(namePlaces([50, 20], fit), [50, 20])
  assert.deepEqual(namePlaces([50, 50, 51], fit), [50, 60, 70])
  assert.deepEqual(namePlaces([100, 99, 98], fit), [100, 90, 80])
  assert.deepEqual(namePlaces([], fit), [])
})

test('the table of a chart has the newest time first, and leaves out what is not known', () => {
  const rows = chartRows(
    [60, 120, 180],
    [
      [1, null, null],
      [null, null, 7],
    ],
  )
  assert.deepEqual(rows, [
    { timeS: 180, values: [null, 7] },
    { timeS: 60, values: [1, null] },
  ])
  assert.deepEqual(chartRows([], []), [])
})

test('a table of a whole day has a row for some minutes each, with the worst of them', () => {
  const times = Array.from({ length: 1_440 }, (_, nth) => nth * 60)
  const rows = chartRows(times, [times.map((_, nth) => (nth === 7 ? 99 : 1))])
  assert.equal(rows.length, chartRowsMax)
  assert.deepEqual(rows.at(-1), { timeS: 0, values: [99] })
})
