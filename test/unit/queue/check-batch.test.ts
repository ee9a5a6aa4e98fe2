import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PostboteError } from '../../../src/errors.ts'
import {
  checkBatch,
  checkedUpdateOf,
  rowsOf,
  type UpdateBatch,
  type UpdateRange,
} from '../../../src/queue/check-batch.ts'

const updates = [
  '{"message":{"chat":{"id":12345678901234567890}}}',
  ' { "poll":{"id":"é"}} ',
  '{"update_id":1}',
  '{"poll":{}}',
  '',
].map((text) => Buffer.from(text))

function batchOf(spareBytes: number): UpdateBatch {
  const ranges: UpdateRange[] = []
  let at = 5
  for (const { length } of updates) {
    ranges.push({ updateStart: at, end: at + length })
    at += length + 1
  }
  const memory = new SharedArrayBuffer(at + spareBytes)
  const bytes = new Uint8Array(memory)
  for (const [nth, update] of updates.entries()) bytes.set(update, ranges[nth]?.updateStart)
  return { memory, rows: rowsOf(ranges) }
}

for (const spareBytes of [0, 37]) {
  test(`a batch is checked update by update, and a bad one fails alone (${spareBytes} spare bytes in its memory)`, () => {
    const checked = checkBatch(batchOf(spareBytes))
    const results = updates.map((update, nth) => {
      const result = checkedUpdateOf(checked, nth, update, 0)
      if (result instanceof PostboteError) return result.message
      return [result.typeNumber, result.text.toString(), result.derivedKey]
    })
    assert.deepEqual(results, [
      [0, '"message":{"chat":{"id":12345678901234567890}}', 'm12345678901234567890'],
      [15, '"poll":{"id":"é"}', 'pé'],
      'Bad update: expected no update_id, which the server assigns, at byte 1',
      [15, '"poll":{}', ''],
      'Bad update: expected an object at byte 0, got the end',
    ])
  })
}

test('the text of a checked update is a view of its own bytes', () => {
  const checked = checkBatch(batchOf(0))
  const [update] = updates
  assert.ok(update !== undefined)
  const result = checkedUpdateOf(checked, 0, update, 0)
  assert.ok(!(result instanceof PostboteError))
  assert.equal(result.text.buffer, update.buffer)
})
