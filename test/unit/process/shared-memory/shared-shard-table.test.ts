import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  SharedShardTable,
  shardTableWords,
} from '../../../../src/process/shared-memory/shared-shard-table.ts'

function newTable(shards: number): SharedShardTable {
  return new SharedShardTable(new Int32Array(new SharedArrayBuffer(shardTableWords * 4)), shards)
}

test('a shard has no owner until one is assigned, and an owner is never removed', () => {
  const table = newTable(8)
  assert.equal(table.owner(0), undefined)
  table.assign(0, { worker: 2, generation: 5 })
  assert.deepEqual(table.owner(0), { worker: 2, generation: 5 })
  assert.equal(table.owner(1), undefined)
  table.assign(0, undefined)
  assert.equal(table.owner(0), undefined)
})

test('the first and the last worker and generation are read as they were written', () => {
  const table = newTable(256)
  for (const worker of [0, 255]) {
    for (const generation of [0, 1, 2 ** 23 - 1]) {
      table.assign(255, { worker, generation })
      assert.deepEqual(table.owner(255), { worker, generation })
      table.markServing(255, generation)
      assert.equal(table.isServed(255), true)
    }
  }
})

test('a shard is served after its owner has opened it, and no longer after the next assignment', () => {
  const table = newTable(1)
  assert.equal(table.isServed(0), false)
  table.markServing(0, 0)
  assert.equal(table.isServed(0), false, 'nobody owns it')
  table.markServing(0, 1)
  table.assign(0, { worker: 0, generation: 1 })
  assert.equal(table.isServed(0), true)
  table.assign(0, { worker: 0, generation: 2 })
  assert.equal(table.isServed(0), false, 'the successor has not opened it')
  table.markServing(0, 2)
  assert.equal(table.isServed(0), true)
  table.assign(0, undefined)
  assert.equal(table.isServed(0), false)
})

test('all shards are served only when the last one is', () => {
  const table = newTable(3)
  const allServed = (): boolean => [0, 1, 2].every((shard) => table.isServed(shard))
  for (const shard of [0, 1, 2]) {
    assert.equal(allServed(), false)
    table.assign(shard, { worker: 0, generation: 0 })
    table.markServing(shard, 0)
  }
  assert.equal(allServed(), true)
})

test('a shard, a worker or a generation out of range is a RangeError', () => {
  const table = newTable(4)
  assert.throws(() => table.owner(4), RangeError)
  assert.throws(() => table.owner(-1), RangeError)
  assert.throws(() => table.markServing(4, 0), RangeError)
  assert.throws(() => table.assign(4, { worker: 0, generation: 0 }), RangeError)
  assert.throws(() => table.assign(0, { worker: -1, generation: 0 }), RangeError)
  assert.throws(() => table.assign(0, { worker: 511, generation: 0 }), RangeError)
  assert.throws(() => table.assign(0, { worker: 0, generation: 2 ** 23 }), RangeError)
})
