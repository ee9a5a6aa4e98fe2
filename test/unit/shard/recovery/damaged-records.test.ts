import assert from 'node:assert/strict'
import { test } from 'node:test'
import { updateIdFirstMax } from '../../../../src/kit/limits.ts'
import { copyKey, kinds } from '../../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../../src/shard/records/record-keys.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { Operation } from '../../../../src/shard/operations.ts'
import {
  bot,
  freshState,
  openShard,
  push,
  queue,
  waited,
} from '../../../support/store/shard-records.ts'

test('a damaged record of a bot affects only that bot and is named once', async () => {
  const { store, shard, life } = await openShard(new MemoryStore())
  const other = queueIdOf(124, false)
  await shard.commit(
    [queue, other].map((id): Operation => ({ kind: 'bot', queue: id, record: bot })),
    waited,
  )
  const key = kinds.bot.key(other)
  await store.write([{ type: 'put', key, value: Buffer.from('broken') }], { sync: true })
  for (let round = 0; round < 2; round++) {
    const [good, bad] = await shard.load([queue, other])
    assert.deepEqual(good?.bot, bot)
    assert.deepEqual(bad, { state: undefined, settings: {}, bot: undefined, isDamaged: true })
  }
  const listed = await shard.list('b', { after: 0, limit: 2 })
  assert.deepEqual(
    listed.map((entry) => entry.queue),
    [queue],
  )
  assert.deepEqual(
    life.details.map(({ record, botId, isTest }) => [record, botId, isTest]),
    [['bot', 124, false]],
  )
})

test('a queue whose ids and counts cannot be read is counted again, above every id that it can have used', async () => {
  const { store, shard, life } = await openShard(new MemoryStore())
  await shard.commit([push(1_000), push(1_001)], waited)
  shard.forget(queue)
  const key = kinds.state.key(queue)
  const broken = Buffer.from('broken')
  await store.write([{ type: 'put', key, value: broken }], { sync: true })
  const [stored] = await shard.load([queue])
  const { nextId, floor, liveCount } = stored?.state ?? freshState(0)
  assert.deepEqual([floor, liveCount], [1_000, 2])
  assert(nextId > updateIdFirstMax, `the next id is ${nextId}`)
  assert.deepEqual(life.details[0]?.['record'], 'ids and counts')
  assert.deepEqual(await store.getMany([Buffer.concat([Buffer.from('q'), key])]), [broken])
  const [again] = await shard.load([queue])
  assert.equal(again?.state?.nextId, nextId)
})

test('a queue whose settings cannot be read continues without them and reports it', async () => {
  const { store, shard, life } = await openShard(new MemoryStore())
  await shard.commit([{ kind: 'bot', queue, record: bot }, push(1_000)], waited)
  const key = kinds.settings.key(queue)
  await store.write([{ type: 'put', key, value: Buffer.from('broken') }], { sync: true })
  const [stored] = await shard.load([queue])
  assert.deepEqual([stored?.settings, stored?.areSettingsLost], [{}, true])
  assert.equal(stored?.bot?.username, 'a_bot')
  assert.equal(life.details[0]?.['record'], 'settings')
})

test('a damaged update is named and copied, its neighbors are read, and a confirm leaves the copy', async () => {
  const { store, shard, life } = await openShard(new MemoryStore())
  await shard.commit([push(1_000), push(1_001), push(1_002)], waited)
  const key = kinds.update.key(queue, 1_001)
  const [value] = await store.getMany([key])
  value![20]! ^= 1
  await store.write([{ type: 'put', key, value: value! }], { sync: true })
  for (let round = 0; round < 2; round++) {
    const { updates } = await shard.readUpdates({ queue, from: 0, to: 2_000, limit: 10 })
    assert.deepEqual(
      updates.map(({ updateId }) => updateId),
      [1_000, 1_002],
    )
  }
  const [details, ...more] = life.details
  assert.deepEqual(more, [])
  assert.deepEqual(
    [details?.['record'], details?.['botId'], details?.['updateId']],
    ['update', 123, 1_001],
  )
  await shard.clearUpdates(queue)
  assert.deepEqual(await store.getMany([Buffer.concat([Buffer.from('q'), key])]), [value])
})

test('an update under the key of another one is damage and not that update', async () => {
  const { store, shard, life } = await openShard(new MemoryStore())
  await shard.commit([push(1_000)], waited)
  const [value] = await store.getMany([kinds.update.key(queue, 1_000)])
  const elsewhere = kinds.update.key(queue, 1_000 ^ 64)
  await store.write([{ type: 'put', key: elsewhere, value: value! }], { sync: true })
  const { updates } = await shard.readUpdates({ queue, from: 0, to: 2_000, limit: 10 })
  assert.equal(updates.length, 1)
  assert.equal(life.details[0]?.['updateId'], 1_000 ^ 64)
})

test('a damaged expiry record is named, and its queue is still searched', async () => {
  const { store, shard, life } = await openShard(new MemoryStore())
  const value = Buffer.from('broken')
  await store.write([{ type: 'put', key: kinds.expiry.key(7, queue), value }], { sync: true })
  assert.deepEqual(await shard.dueQueues({ minute: 9, limit: 10 }), [{ queue, minute: 7 }])
  assert.deepEqual([life.details[0]?.['record'], life.details[0]?.['botId']], ['expiry', 123])
})

test('damaged updates of a queue and the copies of damaged records are erased, and nothing of another queue', async () => {
  const { store, shard } = await openShard(new MemoryStore())
  const other = queueIdOf(124, false)
  const broken = [queue, other].flatMap((id) => [
    kinds.update.key(id, 7),
    kinds.deadLetter.key(id, 8),
  ])
  const puts = broken.map((key) => ({ type: 'put', key, value: Buffer.from('broken') }) as const)
  await store.write(puts, { sync: true })
  await shard.commit([push(1_000)], waited)
  for (const id of [queue, other]) {
    const all = { queue: id, from: 0, to: 2_000, limit: 9 }
    await shard.readUpdates(all)
    await shard.readDeadLetters(all)
  }
  // The copy of a record that is gone by now.
  const gone = copyKey(kinds.update.key(queue, 6))
  await store.write([{ type: 'put', key: gone, value: Buffer.from('broken') }], { sync: true })
  assert.equal(await shard.eraseDamaged([queue]), 3)
  assert.equal(await shard.eraseDamaged([queue]), 0)
  const [update = gone, dead = gone, ...stay] = broken
  const erased = [update, dead, copyKey(update), copyKey(dead), gone]
  assert.deepEqual(
    await store.getMany(erased),
    erased.map(() => undefined),
  )
  const left = await store.getMany([
    ...stay,
    ...stay.map((key) => copyKey(key)),
    kinds.update.key(queue, 1_000),
  ])
  assert(left.every((value) => value !== undefined))
})
