import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PairSplitter } from '../../../../src/features/ingest/pair-splitter.ts'
import { pairHeaderBytesMax } from '../../../../src/api/limits.ts'
import {
  headerTooLargeFlag,
  type UpdateRows,
  updateTooLargeFlag,
} from '../../../../src/shard/update-rows.ts'
import { allOf } from '../../../support/queue/pushed-rows.ts'
import { drawnRuns } from '../../../support/kit/drawn-runs.ts'

const updateLineBytesMax = 10_000

function splitter(): PairSplitter {
  return new PairSplitter({ updateLineBytesMax })
}

type Plain = [string, string] | { tooLarge: string } | 'half'

function plain(rows: UpdateRows | 'half'): Plain[] {
  if (rows === 'half') return ['half']
  return allOf(rows).map((nth) => {
    const flags = rows.flagsOf(nth)
    if ((flags & headerTooLargeFlag) !== 0) return { tooLarge: 'header' }
    if ((flags & updateTooLargeFlag) !== 0) return { tooLarge: 'update' }
    return [rows.headerOf(nth).toString(), rows.updateOf(nth).toString()]
  })
}

/** Splits a stream that ends after these chunks. */
function split(...chunks: readonly (string | Buffer)[]): Plain[] {
  const pairs = splitter()
  const found: Plain[] = []
  for (const chunk of chunks) {
    // A chunk ends with its memory, where scripts/sanitize-native sees a read beyond it.
    const bytes = Buffer.from(chunk)
    const alone = Buffer.allocUnsafeSlow(bytes.length)
    bytes.copy(alone)
    found.push(...pairs.feed(alone).flatMap(plain))
  }
  const last = pairs.end()
  if (last !== undefined) found.push(...plain(last))
  return found
}

test('pairs are returned in order, and a last line needs no line end', () => {
  assert.deepEqual(split('a\nb\nc\nd\n'), [
    ['a', 'b'],
    ['c', 'd'],
  ])
  assert.deepEqual(split('a\nb\nc\nd'), [
    ['a', 'b'],
    ['c', 'd'],
  ])
  assert.deepEqual(split(), [])
})

test('a byte order mark before the first pair is skipped, also in pieces, and none elsewhere', () => {
  const bytes = Buffer.from('\ufeffa\nb\n\ufeffc\nd')
  for (let at = 0; at <= bytes.length; at++) {
    assert.deepEqual(split(bytes.subarray(0, at), bytes.subarray(at)), [
      ['a', 'b'],
      ['\ufeffc', 'd'],
    ])
  }
  assert.deepEqual(split('\ufeff'), [])
  assert.deepEqual(split(Buffer.of(0xef, 0xbb)), ['half'])
})

test('lines may end in \\r\\n', () => {
  assert.deepEqual(split('a\r\nb\r\n\r\nc\r\nd\r'), [
    ['a', 'b'],
    ['c', 'd'],
  ])
  assert.deepEqual(split('a\r', '\nb', '\r', '\n'), [['a', 'b']])
})

test('empty lines between pairs are skipped', () => {
  assert.deepEqual(split('\n\n\na\nb\n\n\r\n\nc\nd\n\n'), [
    ['a', 'b'],
    ['c', 'd'],
  ])
})

test('an empty line after a header is its update, so that the next pair stays a pair', () => {
  assert.deepEqual(split('a\n\nc\nd\n'), [
    ['a', ''],
    ['c', 'd'],
  ])
})

test('half a pair at the end is reported', () => {
  assert.deepEqual(split('a\nb\nc\n'), [['a', 'b'], 'half'])
  assert.deepEqual(split('a\nb\nc'), [['a', 'b'], 'half'])
  assert.deepEqual(split('x'.repeat(pairHeaderBytesMax + 1)), ['half'])
})

test('a pair within one chunk is not copied', () => {
  const chunk = Buffer.from('head\nupdate\n')
  const [pair] = splitter().feed(chunk)
  assert.equal(pair?.bytes, chunk)
})

test('a large pair that spans chunks is gathered in a buffer of its exact size, which V8 counts as garbage', () => {
  const pairs = new PairSplitter({ updateLineBytesMax: 100_000 })
  const update = Buffer.alloc(100_000, 'x')
  pairs.feed(Buffer.from('a\n'))
  assert.ok(pairs.carriedBytes < 2_000)
  for (let at = 0; at < update.length; at += 10_000) pairs.feed(update.subarray(at, at + 10_000))
  assert.ok(pairs.carriedBytes < 100_000 + pairHeaderBytesMax + 10)
  const [pair] = pairs.feed(Buffer.from('\n'))
  assert.ok(pair?.bytes.buffer instanceof ArrayBuffer)
  assert.equal(pair.updateBytes(0), 100_000)
  assert.equal(pairs.carriedBytes, 0)
})

test('a gathered line is not overwritten by later ones', () => {
  const pairs = splitter()
  pairs.feed(Buffer.from('he'))
  pairs.feed(Buffer.from('ad\nupd'))
  const [first] = pairs.feed(Buffer.from('ate\nHE'))
  pairs.feed(Buffer.from('AD\nUPD'))
  pairs.feed(Buffer.from('ATE\n'))
  assert.deepEqual(first && plain(first), [['head', 'update']])
})

test('a line of exactly its limit passes, with either line end, and one byte more fails its pair', () => {
  const header = 'h'.repeat(pairHeaderBytesMax)
  const update = 'u'.repeat(updateLineBytesMax)
  for (const lineEnd of ['\n', '\r\n']) {
    const stream = [
      `${header}${lineEnd}${update}${lineEnd}`,
      `${header}x${lineEnd}${update}${lineEnd}`,
      `a${lineEnd}${update}x${lineEnd}`,
      `c${lineEnd}d${lineEnd}`,
    ].join('')
    const expected = [[header, update], { tooLarge: 'header' }, { tooLarge: 'update' }, ['c', 'd']]
    assert.deepEqual(split(stream), expected)
    for (const size of [1, 7, 1000, 4097]) {
      const chunks = Array.from({ length: Math.ceil(stream.length / size) }, (_, nth) =>
        stream.slice(nth * size, (nth + 1) * size),
      )
      assert.deepEqual(split(...chunks), expected, `in chunks of ${size}`)
    }
  }
})

test('the update after a header that is too large is skipped with it, whatever its size', () => {
  const header = 'h'.repeat(pairHeaderBytesMax + 1)
  for (const update of ['', 'u', 'uu', 'u'.repeat(updateLineBytesMax * 2)]) {
    assert.deepEqual(split(`${header}\n${update}\na\nb\n`), [{ tooLarge: 'header' }, ['a', 'b']])
  }
})

test('an endless line takes no memory', () => {
  const pairs = splitter()
  const chunk = Buffer.alloc(65_536, 'x')
  pairs.feed(Buffer.from('a\n'))
  const before = process.memoryUsage().arrayBuffers
  for (let nth = 0; nth < 2_000; nth++) assert.deepEqual(pairs.feed(chunk), [])
  assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000)
  assert.deepEqual(pairs.feed(Buffer.from('\nc\nd\n')).flatMap(plain), [
    { tooLarge: 'update' },
    ['c', 'd'],
  ])
})

test('a stream has the same pairs however it is split', () => {
  const line = fc.oneof(
    fc.constantFrom('', '\r', 'a', 'x'.repeat(5_000), 'y'.repeat(10_001), 'z'.repeat(10_000)),
    fc.string({ maxLength: 20 }).map((text) => text.replaceAll('\n', '')),
  )
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 12 }),
      fc.constantFrom('\n', '\r\n'),
      fc.array(fc.nat(), { maxLength: 10 }),
      (lines, lineEnd, cuts) => {
        const stream = Buffer.from(lines.join(lineEnd))
        const at = [0, ...cuts.map((cut) => cut % (stream.length + 1)), stream.length].toSorted(
          (a, b) => a - b,
        )
        const chunks = at.slice(1).map((end, nth) => stream.subarray(at[nth], end))
        assert.deepEqual(split(...chunks), split(stream))
      },
    ),
    { numRuns: drawnRuns(1_000) },
  )
})
