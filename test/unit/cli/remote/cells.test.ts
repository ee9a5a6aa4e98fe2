import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import {
  age,
  bytes,
  duration,
  list,
  ms,
  name,
  orNull,
  perSecond,
  time,
  traceparent,
  shown,
} from '../../../../src/api/words.ts'
import {
  bytesText,
  cell,
  fieldCell,
  fieldPairs,
  listLines,
} from '../../../../src/cli/remote/cells.ts'
import { plainView, View, type ViewParts } from '../../../../src/cli/output/view.ts'
import { isoText } from '../../../../src/kit/clock.ts'
import { apiOperations } from '../../../../src/modules/api-operations.ts'

test('an age is shown in the largest unit that leaves it at least two', () => {
  const seconds = orNull(age('Of something.'))
  const ages = [0, 119, 120, 7_199, 7_200, 172_799, 172_800, null].map((ageS) =>
    fieldCell(seconds, ageS),
  )
  assert.deepEqual(ages, ['0 s', '119 s', '2 min', '119 min', '2 h', '47 h', '2 d', '-'])
})

test('a duration that somebody has chosen is shown exactly, also in a list', () => {
  const delay = duration({ minimum: 0, maximum: 9_999 })
  assert.deepEqual(
    [90, 3_600, 5_430].map((each) => fieldCell(delay, each)),
    ['90s', '1h', '5430s'],
  )
  assert.equal(fieldCell(orNull(list(delay)), [10, 120]), '10s,2m')
})

test('bytes are shown in the largest unit that leaves them at least one', () => {
  const texts = [0, 1_023, 1_024, 1_048_576, 1_610_612_736].map((each) => bytesText(each))
  assert.deepEqual(texts, ['0 B', '1023 B', '1.0 KiB', '1.0 MiB', '1.5 GiB'])
  assert.equal(fieldCell(bytes('Of something.'), 2_048), '2.0 KiB')
})

test('what is unknown is a dash, or the word that the field has for it', () => {
  assert.deepEqual(
    [cell(null), cell(''), cell(undefined), fieldCell(orNull(time('When.')), null)],
    ['-', '-', '-', '-'],
  )
  assert.deepEqual([cell(true), cell(false), cell(0), cell('x')], ['yes', 'no', '0', 'x'])
  const bots = orNull(Type.Array(Type.Integer()), 'all')
  assert.deepEqual(
    [null, [], [5, 6]].map((each) => fieldCell(bots, each)),
    ['all', 'none', '5,6'],
  )
})

test('a table has the unit in its head, and no column of what no item has', () => {
  const item = Type.Object({
    duration_ms: ms('How long.'),
    updates_per_second: orNull(perSecond('How often.')),
    traceparent: traceparent('Where.'),
  })
  const columns = ['duration_ms', 'updates_per_second', 'traceparent']
  const items = [{ duration_ms: 5, updates_per_second: 7, later: 'x' }]
  const linesIn = (parts: Partial<ViewParts>): readonly string[] =>
    listLines({ item, items, columns }, new View({ ...plainView, ...parts }))
  assert.deepEqual(linesIn({}), ['ms  updates/s', ' 5          7'])
  assert.deepEqual(linesIn({ isWide: true }), ['ms  updates/s  later', ' 5          7  x'])
  assert.deepEqual(linesIn({ columns: ['later', 'duration_ms'] }), ['later  ms', 'x       5'])
  assert.deepEqual(linesIn({ form: 'csv' }), ['duration_ms,updates_per_second,traceparent', '5,7,'])
})

const timed = Type.Object({
  made: time('When.'),
  next: orNull(time('When.')),
  name: name(),
  bots: orNull(Type.Array(Type.Integer()), 'all'),
  since: Type.Object({ at: orNull(time('When.')), count: Type.Integer() }),
})
const things = [{ made: 0, next: 130, name: 'a', bots: null, since: { at: null, count: 0 } }]

test('people at a terminal read ages, and everybody else reads dates', () => {
  const columns = ['made', 'next', 'name']
  const linesIn = (parts: Partial<ViewParts>): readonly string[] =>
    listLines({ item: timed, items: things, columns }, new View({ ...plainView, ...parts }))
  assert.deepEqual(linesIn({ nowMs: 10_000 }), [
    'made      next      name',
    '10 s ago  in 2 min  a',
  ])
  const dates = '1970-01-01T00:00:00Z  1970-01-01T00:02:10Z  a'
  assert.equal(linesIn({})[1], dates)
  assert.equal(linesIn({ nowMs: 10_000, isWide: true })[1], `${dates}     all   at -, count 0`)
  assert.equal(
    linesIn({ nowMs: 10_000, form: 'csv' })[1],
    '1970-01-01T00:00:00Z,1970-01-01T00:02:10Z,a,,"{""at"":null,""count"":0}"',
  )
})

test('what has no place at the terminal is named, by the names that --columns takes', () => {
  const view = new View({ ...plainView, nowMs: 10_000, width: 20 })
  listLines({ item: timed, items: things, columns: ['made', 'next', 'name'] }, view)
  assert.deepEqual(view.hints, ['--wide also shows name'])
})

test('one thing has a date beside its ages, and at a terminal no line for what is null', () => {
  assert.deepEqual(fieldPairs(timed, { ...things[0], next: null }, { nowMs: 10_000 }), [
    ['made', '10 s ago (1970-01-01 00:00:00Z)'],
    ['name', 'a'],
    ['bots', 'all'],
    ['since', 'count 0'],
  ])
  assert.deepEqual(fieldPairs(timed, { ...things[0], next: null }, { nowMs: undefined })[1], [
    'next',
    '-',
  ])
})

test('an object of objects has a line for each of these, and another object one line', () => {
  const p50 = shown('ms', Type.Number())
  const inner = Type.Object({ p50_ms: p50 })
  const schema = Type.Object({ delivery: Type.Object({ polling: inner }), counts: Type.Object({}) })
  const value = { delivery: { polling: { p50_ms: 1 } }, counts: { a: 1, b: 2 }, later: [{}] }
  assert.deepEqual(fieldPairs(schema, value, { nowMs: undefined }), [
    ['delivery polling', 'p50 1 ms'],
    ['counts', 'a 1, b 2'],
    ['later', '[{}]'],
  ])
})

test('each field of a result that is described as a time is shown as one', () => {
  let times = 0
  for (const { result } of apiOperations) {
    for (const schema of fieldsIn(result?.())) {
      if (!/In Unix seconds/.test('description' in schema ? String(schema.description) : ''))
        continue
      times++
      assert.equal(fieldCell(schema, 0), isoText(0), JSON.stringify(schema))
    }
  }
  assert(times >= 40, `${times}`)
})

/** Returns a schema and all within it. */
function fieldsIn(schema: unknown): readonly object[] {
  if (typeof schema !== 'object' || schema === null) return []
  return [schema, ...Object.values(schema).flatMap((each) => fieldsIn(each))]
}
