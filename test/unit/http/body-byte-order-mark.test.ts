import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ByteOrderMarkSkipper, withoutByteOrderMark } from '../../../src/http/body.ts'

const mark = '\ufeff'

function skipped(chunks: readonly Buffer[]): string {
  const skipper = new ByteOrderMarkSkipper()
  const kept = chunks.map((chunk) => Buffer.from(skipper.skip(chunk)))
  return Buffer.concat([...kept, skipper.rest()]).toString('latin1')
}

test('one byte order mark at the beginning is skipped, however a stream is split', () => {
  const beginnings = [
    mark,
    `${mark}a`,
    `${mark}${mark}a`,
    `a${mark}`,
    '',
    'a',
    '\uff00',
    '\ufebf',
    'é',
  ]
  const all = beginnings.map((text) => Buffer.from(text))
  for (const bytes of [
    ...all,
    Buffer.of(0xef),
    Buffer.of(0xef, 0xbb),
    Buffer.of(0xef, 0xef, 0xbb, 0xbf),
  ]) {
    const expected = bytes.toString('latin1').replace(/^\xef\xbb\xbf/, '')
    assert.equal(withoutByteOrderMark(bytes).toString('latin1'), expected)
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        const ends = [
          bytes.subarray(0, first),
          bytes.subarray(first, second),
          bytes.subarray(second),
        ]
        assert.equal(skipped(ends), expected)
      }
    }
  }
})
