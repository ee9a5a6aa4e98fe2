import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deadLetterLifeMs } from '../../../../src/kit/limits.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { Operation } from '../../../../src/shard/operations.ts'
import type { StoredDeadLetter } from '../../../../src/shard/records/stored-records.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import {
  freshState,
  openShard,
  push,
  queue,
  storedIds,
  waited,
} from '../../../support/store/shard-records.ts'

const nowMs = 1_800_000_000_000
const minutesPerDay = 24 * 60

function deadLetter(updateId: number, more: Partial<StoredDeadLetter> = {}): StoredDeadLetter {
  return {
    updateId,
    typeNumber: 7,
    reason: 'refused',
    leftAtMs: nowMs,
    acceptedAtS: nowMs / 1000 - 60,
    attempts: 3,
    lastError: 'Connection refused',
    orderingKey: 'm5',
    text: Buffer.from('"message":{}'),
    ...more,
  }
}

function all(of = queue) {
  return { queue: of, from: 0, to: 2 ** 32 - 1, limit: 100 }
}

test('a burial and its deletion are one write, and so are a replay and its push', async () => {
  const { store, shard } = await openShard(new FaultyStore(new MemoryStore()))
  await shard.commit([push(1_000)], waited)
  const removal: Operation = {
    kind: 'delete',
    queue,
    updateIds: [1_000],
    removedBytes: 20,
    floor: 1_001,
  }
  await shard.commit(
    [removal, { kind: 'addDeadLetters', queue, deadLetters: [deadLetter(1_000)] }],
    waited,
  )
  assert.deepEqual(await storedIds(store), [])
  assert.deepEqual((await shard.readDeadLetters(all())).deadLetters, [deadLetter(1_000)])
  await shard.commit(
    [push(1_001), { kind: 'removeDeadLetters', queue, updateIds: [1_000] }],
    waited,
  )
  assert.deepEqual(await storedIds(store), [1_001])
  assert.deepEqual((await shard.readDeadLetters(all())).deadLetters, [])
  assert.equal(store.writes.length, 3)
})

test('dead letters do not change the ids and counts of their queue, and need none in memory', async () => {
  const { store, shard } = await openShard(new MemoryStore())
  const other = queueIdOf(999, true)
  await shard.commit(
    [{ kind: 'addDeadLetters', queue: other, deadLetters: [deadLetter(5)] }],
    waited,
  )
  await shard.commit([{ kind: 'removeDeadLetters', queue: other, updateIds: [6] }], waited)
  assert.equal((await shard.readDeadLetters(all(other))).deadLetters.length, 1)
  assert.deepEqual(await shard.listQueues({ after: 0, limit: 9 }), [])
  assert.equal(store.size, 2, 'the letter and when to look at it')
})

test('a queue is searched once for all dead letters of a day, after the seven days of all of them', async () => {
  const { shard } = await openShard(new MemoryStore())
  for (const botId of [123, 100 + minutesPerDay, 4711]) {
    const own = queueIdOf(botId, botId === 4711)
    const deadLetters = [0, 1, 3_600_000, 22 * 3_600_000].map((laterMs, index) =>
      deadLetter(index + 1, { leftAtMs: nowMs + laterMs }),
    )
    shard.track(own, freshState(9))
    for (const one of deadLetters) {
      await shard.commit([{ kind: 'addDeadLetters', queue: own, deadLetters: [one] }], waited)
    }
    const due = await shard.dueQueues({ minute: 2 ** 31, limit: 9 })
    const minutes = due.filter((bucket) => bucket.queue === own).map(({ minute }) => minute)
    assert(minutes.length >= 1 && minutes.length <= 2, `${minutes.length} buckets`)
    for (const one of deadLetters) {
      const endMs = one.leftAtMs + deadLetterLifeMs
      const looked = minutes.find((minute) => minute * 60_000 >= endMs)
      assert(looked !== undefined && looked * 60_000 - endMs < (minutesPerDay + 1) * 60_000)
    }
    assert.deepEqual(
      [...new Set(minutes.map((minute) => minute % minutesPerDay))],
      [botId % minutesPerDay],
    )
    for (const bucket of due) await shard.removeBucket(bucket)
  }
})

test('a damaged dead letter is reported, left out, and skipped', async () => {
  const { store, shard, life } = await openShard(new MemoryStore())
  await shard.commit(
    [{ kind: 'addDeadLetters', queue, deadLetters: [deadLetter(1), deadLetter(2), deadLetter(3)] }],
    waited,
  )
  const key = kinds.deadLetter.key(queue, 2)
  const [value] = await store.getMany([key])
  value![9]! ^= 1
  await store.write([{ type: 'put', key, value: value! }], { sync: true })
  const read = await shard.readDeadLetters(all())
  assert.deepEqual(
    read.deadLetters.map(({ updateId }) => updateId),
    [1, 3],
  )
  assert.deepEqual(read.damagedIds, [2])
  assert.equal(life.logged.length, 1)
})

test('dead letters are read in pages, by count and by bytes, of one queue', async () => {
  const { shard } = await openShard(new MemoryStore())
  const deadLetters = [1, 2, 3].map((id) => deadLetter(id, { text: Buffer.alloc(1_000, 'x') }))
  await shard.commit([{ kind: 'addDeadLetters', queue, deadLetters }], waited)
  await shard.commit(
    [{ kind: 'addDeadLetters', queue: queueIdOf(124, false), deadLetters }],
    waited,
  )
  const two = await shard.readDeadLetters({ ...all(), limit: 2 })
  assert.deepEqual([two.deadLetters.length, two.next], [2, 3])
  const one = await shard.readDeadLetters({ ...all(), from: two.next, bytesMax: 10 })
  assert.deepEqual([one.deadLetters.length, one.next], [1, 4])
  const none = await shard.readDeadLetters({ ...all(), from: 4 })
  assert.deepEqual(none, { deadLetters: [], damagedIds: [], next: 2 ** 32 - 1 })
})
