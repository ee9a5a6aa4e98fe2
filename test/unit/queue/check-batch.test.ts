import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Piscina } from 'piscina'
import { checkBatch, type CheckedBatch, type UpdateBatch } from '../../../src/queue/check-batch.ts'

const lines = [
  '{"message":{"chat":{"id":12345678901234567890}}}',
  ' { "poll":{"id":"é"}} ',
  '{"update_id":1}',
  '{"poll":{}}',
  '',
]

function batchOf(texts: readonly string[]): UpdateBatch {
  const starts: number[] = []
  const ends: number[] = []
  let at = 5
  for (const text of texts) {
    starts.push(at)
    at += Buffer.byteLength(text)
    ends.push(at)
    at += 1
  }
  const bytes = new Uint8Array(at)
  for (const [nth, text] of texts.entries()) bytes.set(Buffer.from(text), starts[nth])
  return { bytes, starts: Int32Array.from(starts), ends: Int32Array.from(ends) }
}

function assertChecked({ bytes, ...checked }: CheckedBatch): void {
  const texts = lines.map((_, nth) =>
    Buffer.from(bytes.slice(checked.textStarts[nth], checked.textEnds[nth])).toString(),
  )
  assert.deepEqual(texts, [
    '"message":{"chat":{"id":12345678901234567890}}',
    '"poll":{"id":"é"}',
    '',
    '"poll":{}',
    '',
  ])
  assert.deepEqual([...checked.typeNumbers], [0, 15, -1, 15, -1])
  assert.deepEqual(checked.orderingKeys, ['m12345678901234567890', 'pé', '', '', ''])
  assert.deepEqual(
    [...checked.refusals],
    [
      [2, 'expected no update_id, which the server gives itself, at byte 1'],
      [4, 'expected an object at byte 0'],
    ],
  )
}

test('a batch is checked update by update, and a bad one fails alone', () => {
  assertChecked(checkBatch(batchOf(lines)))
})

test('bytes that lie within a larger memory have offsets of their own', () => {
  const { bytes, starts, ends } = batchOf(lines)
  const larger = new Uint8Array(bytes.length + 100)
  larger.set(bytes, 37)
  assertChecked(checkBatch({ bytes: larger.subarray(37, 37 + bytes.length), starts, ends }))
})

test('a thread says the same, and the bytes are handed over and back', async (t) => {
  const filename = new URL('../../../workers/check-updates.js', import.meta.url).href
  const piscina = new Piscina<UpdateBatch, CheckedBatch>({ filename, minThreads: 0, maxThreads: 1 })
  t.after(() => piscina.destroy())
  const batch = batchOf(lines)
  const { buffer } = batch.bytes
  assert.ok(buffer instanceof ArrayBuffer)
  const checked = piscina.run(batch, { transferList: [buffer] })
  assertChecked(await checked)
  assert.equal(buffer.byteLength, 0)
})
