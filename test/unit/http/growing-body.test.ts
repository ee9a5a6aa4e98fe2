import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { GrowingBody, growingBodyBytesMin } from '../../../src/http/growing-body.ts'

const yes = (): boolean => true

test('a body has the same bytes however it is split, in at most twice the memory', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ minLength: 1, maxLength: 9_000 }), { maxLength: 30 }),
      fc.boolean(),
      (pieces, isDeclared) => {
        const whole = Buffer.concat(pieces)
        let held = 0
        const body = new GrowingBody(isDeclared ? whole.length : 1_000_000, (bytes) => {
          assert(bytes > held, 'no more than before')
          held = bytes
          return true
        })
        let sent = 0
        for (const piece of pieces) {
          assert(body.add(Buffer.from(piece)))
          sent += piece.length
          assert(held >= sent)
          assert(held <= Math.max(2 * sent, growingBodyBytesMin))
          if (isDeclared) assert(held <= whole.length)
        }
        assert.deepEqual(body.bytes(), whole)
      },
    ),
  )
})

test('memory is taken for bytes that have arrived, not for the announced length', () => {
  const asked: number[] = []
  const body = new GrowingBody(4 << 20, (bytes) => asked.push(bytes) > 0)
  for (let nth = 0; nth < growingBodyBytesMin + 1; nth++) body.add(Buffer.of(nth))
  assert.deepEqual(asked, [1, growingBodyBytesMin, 2 * growingBodyBytesMin])
})

test('a body of one piece is that piece and not a copy', () => {
  const body = new GrowingBody(100, yes)
  const piece = Buffer.from('{"a":1}')
  body.add(piece)
  assert.equal(body.bytes(), piece)
})

test('a body that may not grow releases its memory', () => {
  const body = new GrowingBody(100_000, (bytes) => bytes < 10_000)
  assert(body.add(Buffer.alloc(9_000)))
  assert.equal(body.add(Buffer.alloc(2_000)), false)
  assert.equal(body.bytes().length, 0)
})
