import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionLimit, workerConnectionLimit } from '../../../src/process/connection-limit.ts'

const limits = `Limit                     Soft Limit           Hard Limit           Units
Max processes             63203                63203                processes
Max open files            1024                 524288               files
`

test('a quarter of the descriptors, and 64 more, are kept for uses other than connections', () => {
  assert.equal(
    connectionLimit(() => limits),
    704,
  )
  assert.equal(
    workerConnectionLimit(() => limits),
    640,
  )
})

test('a few connections are always accepted', () => {
  assert.equal(
    connectionLimit(() => limits.replace('1024', '50')),
    16,
  )
  assert.equal(
    workerConnectionLimit(() => limits.replace('1024', '170')),
    16,
  )
})

test('without a known number of descriptors there is no limit', () => {
  assert.equal(
    connectionLimit(() => ''),
    Infinity,
  )
  assert.equal(
    connectionLimit(() => limits.replace('1024     ', 'unlimited')),
    Infinity,
  )
})

test('the limits of this process can be read', () => {
  assert.ok(connectionLimit() > 0)
})
