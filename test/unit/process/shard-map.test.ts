import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  defaultShards,
  defaultWorkers,
  ShardMap,
  shardSlotsRememberedMax,
  slotOfBot,
} from '../../../src/process/shard-map.ts'

test('the slot of a bot never changes', () => {
  const vectors = [
    [100, 2773],
    [101, 365],
    [123_456_789, 350],
    [4_503_599_627_370_495, 1075],
  ] as const
  for (const [botId, slot] of vectors) assert.equal(slotOfBot(botId), slot)
})

test('the shard is the slot modulo the number of shards, remembered or not', () => {
  for (const shards of [1, 8, 256]) {
    const map = new ShardMap({ shards, workers: 1 })
    for (const botId of [100, 101, 100]) assert.equal(map.shardOf(botId), slotOfBot(botId) % shards)
  }
})

test('workers own contiguous ranges that cover every shard once', () => {
  for (const shards of [1, 2, 8, 64, 256]) {
    for (let workers = 1; workers <= shards; workers += workers < 9 ? 1 : 13) {
      const map = new ShardMap({ shards, workers })
      const owned: number[] = []
      for (let worker = 0; worker < workers; worker++) {
        const range = map.shardsOf(worker)
        assert.ok(range.length > 0)
        for (const shard of range) assert.equal(map.workerOf(shard), worker)
        owned.push(...range)
      }
      assert.deepEqual(
        owned,
        Array.from({ length: shards }, (_, shard) => shard),
      )
    }
  }
})

test('an impossible number of shards or workers is refused', () => {
  for (const shards of [0, 3, 512, 1.5]) {
    assert.throws(() => new ShardMap({ shards, workers: 1 }), /--shards to be a power of two/)
  }
  for (const workers of [0, 9, 1.5]) {
    assert.throws(() => new ShardMap({ shards: 8, workers }), /--workers from 1 to/)
  }
})

test('the default is 8 shards, or the next power of two for more CPUs', () => {
  assert.deepEqual([1, 8, 9, 64, 65, 1_000].map(defaultShards), [8, 8, 16, 64, 128, 256])
})

test('the number of remembered slots is bounded', () => {
  const map = new ShardMap({ shards: 8, workers: 1 })
  for (let botId = 0; botId < shardSlotsRememberedMax + 10; botId++) map.shardOf(botId)
  assert.equal(map.remembered, 10)
})

test('the number of workers is the number of CPUs, within the shards and 1 to 256', () => {
  assert.equal(defaultWorkers(3, 8), 3)
  assert.equal(defaultWorkers(0, 8), 1)
  assert.equal(defaultWorkers(999, 256), 256)
  assert.equal(defaultWorkers(8, 2), 2)
})
