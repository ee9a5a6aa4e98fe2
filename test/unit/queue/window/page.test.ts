import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { responseBytesMax } from '../../../../src/queue/limits.ts'
import { assemblePage, countThatFit } from '../../../../src/queue/window/page.ts'
import { sourceOf } from '../../../support/producers/page-source.ts'

test('the sum of 50 and the text length of each update stays below 4 MiB', () => {
  const half = responseBytesMax / 2 - 50
  assert.equal(countThatFit([half, half - 1], 100), 2)
  assert.equal(countThatFit([half, half], 100), 1)
  assert.equal(countThatFit([half - 51, 0, half], 100), 3)
  assert.equal(countThatFit([half - 50, 0, half], 100), 2)
})

test('a first update alone always fits', () => {
  assert.equal(countThatFit([responseBytesMax - 51], 100), 1)
  assert.equal(countThatFit([responseBytesMax - 50], 100), 1)
  assert.equal(countThatFit([responseBytesMax * 2, 0], 100), 1)
})

test('the limit holds, and no updates make an empty list', () => {
  assert.equal(countThatFit(new Int32Array(500), 100), 100)
  assert.equal(countThatFit(new Int32Array(500), 1), 1)
  assert.equal(countThatFit([], 100), 0)
  assert.equal(assemblePage(sourceOf([])).body.toString(), '{"ok":true,"result":[]}')
})

test('a body contains the updates, however the pieces are cut', () => {
  const texts = fc.array(
    fc.integer({ min: 0, max: 30 }).map((length) => `"poll":{"a":"${'x'.repeat(length)}"}`),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(
      texts,
      fc.integer({ min: 1, max: 14 }),
      fc.array(fc.nat()),
      (updates, limit, cuts) => {
        const { body, updates: count } = assemblePage(sourceOf(updates, { limit, cuts }))
        const expected = updates
          .slice(0, limit)
          .map((text, nth) => `{"update_id":${nth + 7},${text}}`)
        assert.equal(count, expected.length)
        assert.equal(body.toString(), `{"ok":true,"result":[${expected.join(',')}]}`)
      },
    ),
  )
})

test('pieces that are too short never expose other memory', () => {
  const source = sourceOf(['"poll":{}', '"poll":{}'])
  const short = source.pieces.map((piece) => piece.subarray(0, -1))
  assert.throws(() => assemblePage({ ...source, pieces: short }), /fewer bytes/)
})
