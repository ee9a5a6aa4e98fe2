import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedScratch } from '../../../src/queue/shared-scratch.ts'

test('returned memory is lent again if it is large enough, to one borrower at a time', () => {
  const scratch = new SharedScratch({ bytesMin: 64, keptBytesMax: 1024 })
  const small = scratch.take(10)
  const large = scratch.take(65)
  assert.deepEqual([small.byteLength, large.byteLength], [64, 128])
  scratch.give(small)
  scratch.give(large)
  assert.equal(scratch.keptBytes, 192)
  assert.equal(scratch.take(100), large)
  assert.equal(scratch.take(64), small)
  assert.equal(scratch.keptBytes, 0)
  assert.notEqual(scratch.take(64), small)
})

test('no more shared memory is made than is kept, because V8 hardly collects it', () => {
  const scratch = new SharedScratch({ bytesMin: 64, keptBytesMax: 150 })
  const seen = new Set<ArrayBuffer | SharedArrayBuffer>()
  for (let round = 0; round < 10; round++) {
    const lent = [1, 1, 65, 1000].map((bytes) => {
      const memory = scratch.take(bytes)
      assert(memory.byteLength >= bytes)
      return memory
    })
    for (const memory of lent) {
      if (memory instanceof SharedArrayBuffer) seen.add(memory)
      scratch.give(memory)
    }
    assert.equal(scratch.keptBytes, 128)
  }
  assert.equal(seen.size, 2)
})

test('smaller memory makes room for larger, once', () => {
  const scratch = new SharedScratch({ bytesMin: 64, keptBytesMax: 150 })
  for (const memory of [scratch.take(1), scratch.take(1)]) scratch.give(memory)
  const large = scratch.take(65)
  assert(large instanceof SharedArrayBuffer)
  scratch.give(large)
  assert.equal(scratch.keptBytes, 128)
  assert.equal(scratch.take(1), large)
})
