import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkBatch, checkRows, setChecked } from '../../../../src/queue/check/check-batch.ts'
import { setAddedTypes } from '../../../../src/kit/update-types.ts'
import { allOf, uncheckedRows, verdictOf } from '../../../support/queue/pushed-rows.ts'

const updates = [
  '{"message":{"chat":{"id":12345678901234567890}}}',
  ' { "poll":{"id":"é"}} ',
  '{"update_id":1}',
  '{"poll":{}}',
  '',
  '{"business_message":{"business_connection_id":"b","chat":{"id":-5}}}',
].map((text) => Buffer.from(text))

const verdicts = [
  {
    typeNumber: 0,
    text: '"message":{"chat":{"id":12345678901234567890}}',
    derivedKey: 'm12345678901234567890',
  },
  { typeNumber: 15, text: Buffer.from('"poll":{"id":"é"}').toString('latin1'), derivedKey: 'pé' },
  'Bad update: expected no update_id, which the server assigns, at byte 1',
  { typeNumber: 15, text: '"poll":{}', derivedKey: '' },
  'Bad update: expected an object at byte 0, got the end',
  {
    typeNumber: 4,
    text: '"business_message":{"business_connection_id":"b","chat":{"id":-5}}',
    derivedKey: 'bb/-5',
  },
]

test('types that are set again replace those that the native code knows', (t) => {
  t.after(() => setAddedTypes([]))
  const ping = [Buffer.from('{"ping":{}}')]
  const isRefused = (): boolean => {
    const rows = uncheckedRows(ping)
    checkRows(rows)
    return rows.refusalOf(0) !== undefined
  }
  // The next check loads the native code.
  setAddedTypes([{ name: 'ping' }])
  assert(!isRefused())
  setAddedTypes([])
  assert(isRefused())
})

test('rows are checked update by update, and a bad one fails alone', () => {
  const rows = uncheckedRows(updates)
  checkRows(rows)
  assert.deepEqual(
    allOf(rows).map((nth) => verdictOf(rows, nth)),
    verdicts,
  )
})

test('the results of a batch in other memory are put into rows in any order', () => {
  const { bytes, numbers } = uncheckedRows(updates)
  const memory = new SharedArrayBuffer(bytes.length + 37)
  new Uint8Array(memory).set(bytes)
  const checked = checkBatch({ memory, numbers })
  const rows = uncheckedRows([Buffer.from('{}'), ...updates.toReversed()])
  for (const nth of updates.keys()) setChecked(checked, nth, rows, updates.length - nth)
  assert.deepEqual(
    updates.map((_, nth) => verdictOf(rows, updates.length - nth)),
    verdicts,
  )
})

test('rows that are checked, or that another worker checks, stay as they are', () => {
  const rows = uncheckedRows(updates)
  rows.setNotOurs(0)
  rows.setText(3, 7, 1, 2)
  const { numbers } = rows
  const before = numbers.slice()
  checkRows(rows)
  for (const nth of [0, 3]) {
    assert.deepEqual(
      numbers.subarray(nth * 16, nth * 16 + 16),
      before.subarray(nth * 16, nth * 16 + 16),
    )
  }
})
