import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { byteaArray } from '../../../../src/nodes/postgres/named-statement.ts'

/** Reads the format of `array_recv` in PostgreSQL's arrayfuncs.c. */
function elementsOf(array: Buffer): Buffer[] {
  const [dimensions, hasNulls, elementType] = [0, 4, 8].map((at) => array.readInt32BE(at))
  assert.equal(hasNulls, 0)
  assert.equal(elementType, 17)
  if (dimensions === 0) {
    assert.equal(array.length, 12)
    return []
  }
  assert.equal(dimensions, 1)
  const [count, lowerBound] = [12, 16].map((at) => array.readInt32BE(at))
  assert.equal(lowerBound, 1)
  const elements: Buffer[] = []
  let at = 20
  while (at < array.length) {
    const end = at + 4 + array.readInt32BE(at)
    elements.push(array.subarray(at + 4, end))
    at = end
  }
  assert.equal(at, array.length)
  assert.equal(elements.length, count)
  return elements
}

test('an array of two elements has the bytes of the binary format', () => {
  assert.equal(
    byteaArray([Buffer.from('ab'), Buffer.from([0xff])]).toString('hex'),
    ['00000001', '00000000', '00000011', '00000002', '00000001']
      .concat('00000002', '6162', '00000001', 'ff')
      .join(''),
  )
})

test('an empty array has no dimensions', () => {
  assert.equal(byteaArray([]).toString('hex'), '000000000000000000000011')
})

test('an empty element is there, and is not null', () => {
  const array = byteaArray([Buffer.alloc(0)])
  assert.equal(array.subarray(20).toString('hex'), '00000000')
  assert.deepEqual(elementsOf(array), [Buffer.alloc(0)])
})

test('every list of elements can be read back, whatever its bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 50 }), (elements) => {
      assert.deepEqual(
        elementsOf(byteaArray(elements)),
        elements.map((element) => Buffer.from(element)),
      )
    }),
  )
})

test('an array does not share memory with its elements', () => {
  const element = Buffer.from('before')
  const array = byteaArray([element])
  element.fill('x')
  assert.deepEqual(elementsOf(array), [Buffer.from('before')])
})
