import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recountSkippedIds } from '../../../../src/shard/recovery/recount.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { settle } from '../../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import { freshState, openShard, push, queue, waited } from '../../../support/store/shard-records.ts'

/** Opens a shard whose only queue has two updates and has lost its `s` record. */
async function openDamaged() {
  const opened = await openShard(new FaultyStore(new MemoryStore()))
  const { shard, store } = opened
  await shard.commit([push(1_000), push(1_001)], waited)
  await store.write([{ type: 'del', key: kinds.state.key(queue) }], { sync: true })
  shard.forget(queue)
  shard.distrust()
  return opened
}

const counted = {
  ...freshState(1_002 + recountSkippedIds),
  floor: 1_000,
  liveCount: 2,
  liveBytes: 40,
}

test('a lost record is computed from the remaining updates, and its ids skip ahead', async () => {
  const { shard } = await openDamaged()
  const [stored] = await shard.load([queue])
  assert.deepEqual(stored?.state, counted)
})

test('a queue is counted once, because its ids would otherwise skip ahead with every load', async () => {
  const { shard, store } = await openDamaged()
  await shard.load([queue])
  const writes = store.writes.length
  const [again] = await shard.load([queue])
  assert.deepEqual(again?.state, counted)
  assert.equal(store.writes.length, writes)
})

test('a second load waits for the count that the first has begun', async () => {
  const { shard, store } = await openDamaged()
  store.holdWrites()
  const first = shard.load([queue])
  await store.waitForHeld()
  let isLoaded = false
  const second = shard.load([queueIdOf(999, false), queue]).finally(() => {
    isLoaded = true
  })
  await settle()
  assert.equal(isLoaded, false, 'it would give numbers that are not counted')
  await store.releaseAll()
  const [[one], [, two]] = await Promise.all([first, second])
  assert.deepEqual(one?.state, counted)
  assert.deepEqual(two?.state, counted)
})

test('a count that could not be written poisons the shard and is repeated by the next load', async () => {
  const { shard, store, clock } = await openDamaged()
  store.failNextWrite('EIO')
  await assert.rejects(shard.load([queue]), { code: 'STORE_UNAVAILABLE' })
  assert.equal(shard.status, 'poisoned')
  const writes = store.writes.length
  await assert.rejects(shard.load([queue]), { code: 'STORE_UNAVAILABLE' })
  assert.equal(store.writes.length, writes, 'nothing more is written through this handle')
  await clock.advance(1_000)
  const [stored] = await shard.load([queue])
  assert.deepEqual(stored?.state, counted)
  await shard.close()
})

test('queues are listed in pages, main and test, whether their bots exist or not', async () => {
  const { shard } = await openShard(new MemoryStore())
  const queues = [queue, queueIdOf(124, false), queueIdOf(100, true)]
  for (const id of queues) shard.track(id, freshState())
  await shard.commit(
    queues.map((id) => push(1_000, { queue: id })),
    waited,
  )
  assert.deepEqual(await shard.listQueues({ after: 0, limit: 2 }), queues.slice(0, 2))
  assert.deepEqual(await shard.listQueues({ after: 124, limit: 2 }), queues.slice(2))
  assert.deepEqual(await shard.listQueues({ after: queueIdOf(100, true), limit: 2 }), [])
})
