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

test('no more memory is kept than the limit', () => {
  const scratch = new SharedScratch({ bytesMin: 64, keptBytesMax: 150 })
  const lent = [scratch.take(1), scratch.take(1), scratch.take(1)]
  for (const memory of lent) scratch.give(memory)
  assert.equal(scratch.keptBytes, 128)
})
