import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { queueIdOf, updateIdOfKey } from '../../../src/shard/records/record-keys.ts'
import { LevelStore } from '../../../src/store/level/level-store.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import type { Operation } from '../../../src/shard/operations.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { reopenWaitMs } from '../../../src/shard/shard-recovery.ts'
import { ShardLife, whileTimePasses } from '../../support/store/shard-life.ts'
import {
  bot,
  freshState,
  openShard,
  push,
  queue,
  reread,
  storedIds,
  waited,
} from '../../support/store/shard-records.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

test('committed operations survive a power loss', async () => {
  const { clock, store, shard } = await openShard(new MemoryStore())
  await shard.commit([push(1_000), push(1_001)], waited)
  await shard.commit([{ kind: 'bot', queue, record: bot }], waited)
  await shard.commit([{ kind: 'settings', queue, record: { allowedTypes: 3 } }], waited)
  void shard.commit(
    [
      {
        kind: 'confirm',
        queue,
        from: 1_000,
        floor: 1_001,
        removedCount: 1,
        removedBytes: 20,
      },
    ],
    { waited: false },
  )
  await clock.advance(20)
  store.loseUnsynced()
  await shard.close()
  const stored = await reread(store)
  assert.deepEqual(stored, {
    state: { ...freshState(), nextId: 1_002, floor: 1_001, liveCount: 1, liveBytes: 20 },
    settings: { allowedTypes: 3 },
    bot,
  })
})

test('removed settings and bots are gone, and a queue keeps its numbers', async () => {
  const { store, shard } = await openShard(new MemoryStore())
  await shard.commit([{ kind: 'bot', queue, record: bot }, push(1_000)], waited)
  await shard.commit([{ kind: 'settings', queue, record: { allowedTypes: 3 } }], waited)
  await shard.commit([{ kind: 'bot', queue, record: null }], waited)
  await shard.commit([{ kind: 'settings', queue, record: null }], waited)
  await shard.close()
  const stored = await reread(store)
  assert.deepEqual(stored.settings, {})
  assert.equal(stored.bot, undefined)
  assert.equal(stored.state?.nextId, 1_001)
})

test('an operation of a queue that is not tracked is a bug that loses nothing silently', async () => {
  const { shard, life } = await openShard(new MemoryStore())
  const failed = shard.commit([push(5, { queue: 999 })], waited)
  await assert.rejects(failed, { code: 'OUTCOME_UNKNOWN' })
  assert.equal(shard.status, 'poisoned')
  assert.equal(life.logged.length, 1)
  await shard.close()
})

test('after a failed write nothing is written until the disk works again, and then everything is read again', async () => {
  const store = new FaultyStore(new MemoryStore(), { lieAfterFailure: true })
  const { clock, life, shard } = await openShard(store)
  await shard.commit([push(1_000)], waited)
  store.failNextWrite('ENOSPC')
  const first = shard.commit([push(1_001)], waited)
  await settle()
  await assert.rejects(first, { code: 'OUTCOME_UNKNOWN' })
  assert.equal(shard.status, 'poisoned')
  const writes = store.writes.length
  await assert.rejects(shard.commit([push(1_002)], waited), { code: 'STORE_UNAVAILABLE' })
  await shard.commit([push(1_002)], { waited: false })
  await assert.rejects(shard.removeBucket({ minute: 1, queue }), { code: 'STORE_UNAVAILABLE' })
  await assert.rejects(shard.clearUpdates(queue), { code: 'STORE_UNAVAILABLE' })
  assert.equal((await shard.readUpdates({ queue, from: 0, to: 9_999, limit: 9 })).updates.length, 1)
  life.isDiskWell = false
  await clock.advance(5_000)
  assert.equal(shard.status, 'poisoned')
  assert.equal(store.writes.length, writes)
  assert.equal(store.opens, 1)
  life.isDiskWell = true
  await clock.advance(1_000)
  assert.equal(shard.status, 'serving')
  assert.equal(life.resets, 1)
  assert.equal(store.opens, 2)
  const [stored] = await shard.load([queue])
  assert.equal(stored?.state?.nextId, 1_001)
  shard.track(queue, stored?.state ?? freshState(0))
  await shard.commit([push(1_001)], waited)
  assert.equal(store.lost, 0, 'nothing was written through the handle that lies')
  assert.deepEqual(await storedIds(store), [1_000, 1_001])
  await shard.close()
})

test('what throws when it is told of a stored group is logged; the group counts, and the shard goes on', async () => {
  const { store, life, shard } = await openShard(new MemoryStore())
  life.onCommitted = () => {
    throw new TypeError('a module has a bug')
  }
  await shard.commit([push(1_000)], waited)
  life.onCommitted = () => undefined
  await shard.commit([push(1_001)], waited)
  assert.equal(shard.status, 'serving')
  assert.deepEqual(await storedIds(store), [1_000, 1_001])
  assert.deepEqual(life.logged, ['a stored group could not be followed'])
  assert.match(String(life.details[0]?.['cause']), /TypeError: a module has a bug\n +at /)
  await shard.close()
})

test('a failed write outside the groups poisons the shard, too', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { shard } = await openShard(store)
  await shard.commit([push(1_000)], waited)
  store.failNextWrite('EIO')
  await assert.rejects(shard.clearUpdates(queue), { code: 'STORE_UNAVAILABLE' })
  assert.equal(shard.status, 'poisoned')
  await shard.close()
})

test('a probe or a reopening that fails is repeated', async () => {
  let failures = 2
  const memory = new MemoryStore({
    openFailure: () => (failures-- > 0 && failures < 1 ? new Error('no') : undefined),
  })
  const store = new FaultyStore(memory)
  failures = 0
  const { clock, life, shard } = await openShard(store)
  failures = 2
  store.failNextWrite('EIO')
  await assert.rejects(shard.commit([push(1_000)], waited))
  await clock.advance(3_000)
  assert.equal(shard.status, 'serving')
  assert.equal(life.resets, 1)
  await shard.close()
})

test('a read waits while the database is opened again, and is refused if that takes too long or the shard is closed', async () => {
  let isBroken = false
  const memory = new MemoryStore({ openFailure: () => (isBroken ? new Error('no') : undefined) })
  const store = new FaultyStore(memory)
  const { clock, shard } = await openShard(store)
  await shard.commit([push(1_000)], waited)
  const read = () => shard.readUpdates({ queue, from: 0, to: 9_999, limit: 9 })
  const ids = async () => (await read()).updates.map(({ updateId }) => updateId)
  isBroken = true
  store.failNextWrite('ENOSPC')
  await assert.rejects(shard.commit([push(1_001)], waited))
  assert.equal(shard.reopened(), undefined)
  await clock.advance(2_000)
  assert.notEqual(shard.reopened(), undefined)
  const found = ids()
  isBroken = false
  await clock.advance(1_000)
  assert.equal(shard.status, 'serving')
  assert.deepEqual(await found, [1_000])

  isBroken = true
  store.failNextWrite('ENOSPC')
  shard.track(queue, freshState(1_001))
  await assert.rejects(shard.commit([push(1_001)], waited))
  await clock.advance(2_000)
  const late = assert.rejects(ids(), { code: 'STORE_UNAVAILABLE' })
  await clock.advance(reopenWaitMs)
  await late
  const last = assert.rejects(ids(), { code: 'STORE_UNAVAILABLE' })
  await shard.close()
  await last
  assert.equal(clock.timers, 0)
})

test('closing a poisoned shard does not wait for its recovery', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { clock, life, shard } = await openShard(store)
  store.failNextWrite('EIO')
  await assert.rejects(shard.commit([push(1_000)], waited))
  await shard.close()
  assert.equal(shard.status, 'closed')
  assert.equal(clock.timers, 0)
  assert.equal(life.resets, 0)
})

test('closing writes what is in progress and accepts nothing more', async () => {
  const { store, shard, clock } = await openShard(new MemoryStore())
  const last = shard.commit([push(1_000)], { waited: false })
  const closed = shard.close()
  await assert.rejects(shard.commit([push(1_001)], waited), { code: 'STORE_UNAVAILABLE' })
  await closed
  await last
  await assert.rejects(shard.load([queue]), { code: 'STORE_UNAVAILABLE' })
  assert.equal(clock.timers, 0)
  await store.open()
  assert.deepEqual(await storedIds(store), [1_000])
})

test('a shard whose last write fails is still closed', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { shard, clock } = await openShard(store)
  store.failNextWrite('EIO')
  const last = assert.rejects(shard.commit([push(1_000)], { waited: false }))
  await shard.close()
  await last
  assert.equal(shard.status, 'closed')
  assert.equal(clock.timers, 0)
})

test('dead records are deleted along with groups, and separately if no group comes', async () => {
  const { clock, store, shard } = await openShard(new MemoryStore())
  await shard.commit(
    Array.from({ length: 2_500 }, (_, at) => push(1_000 + at)),
    waited,
  )
  const confirm = { kind: 'confirm', queue, from: 1_000, removedBytes: 0 } as const
  await shard.commit([{ ...confirm, floor: 3_400, removedCount: 2_400 }], waited)
  assert.equal((await storedIds(store)).length, 2_500)
  await shard.commit([push(3_500)], waited)
  assert.equal((await storedIds(store)).length, 1_501)
  await clock.advance(100)
  assert.equal((await storedIds(store)).length, 501)
  await clock.advance(1_000)
  assert.equal((await storedIds(store))[0], 3_400)
  assert.equal(clock.timers, 0)
})

test('a group deletes as many dead records as it stores', async () => {
  const { store, shard } = await openShard(new MemoryStore())
  await shard.commit(
    Array.from({ length: 3_000 }, (_, at) => push(1_000 + at)),
    waited,
  )
  const confirm = { kind: 'confirm', queue, from: 1_000, removedBytes: 0 } as const
  await shard.commit([{ ...confirm, floor: 4_000, removedCount: 3_000 }], waited)
  await shard.commit(
    Array.from({ length: 3_000 }, (_, at) => push(4_000 + at)),
    waited,
  )
  assert.equal((await storedIds(store))[0], 4_000)
})

test('leftovers of a crash below the floor are found, and those above it stay', async () => {
  const { store, shard } = await openShard(new MemoryStore())
  await shard.commit([push(1_000)], waited)
  const dead = Array.from({ length: 2_100 }, (_, at) => ({
    type: 'put' as const,
    key: kinds.update.key(queue, at * 7),
    value: Buffer.from('old'),
  }))
  await store.write(
    dead.filter(({ key }) => !key.equals(kinds.update.key(queue, 1_001))),
    { sync: true },
  )
  const before = await storedIds(store)
  await shard.reclaimLeftovers(queue)
  assert.deepEqual(
    await storedIds(store),
    before.filter((id) => id >= 1_000),
  )
  shard.forget(queue)
  await shard.reclaimLeftovers(queue)
  await shard.reclaimLeftovers(queueIdOf(777, true))
})

test('a long range of dead records is passed once and not once per deleted slice', async () => {
  const store = new MemoryStore()
  const { shard } = await openShard(store)
  const other = queueIdOf(124, false)
  shard.track(other, freshState(9_000))
  const dead = Array.from({ length: 3_000 }, (_, at) => kinds.update.key(other, 1_000 + at))
  await store.write(
    dead.map((key) => ({ type: 'put', key, value: Buffer.from('old') })),
    { sync: true },
  )
  const froms: number[] = []
  const range = store.range.bind(store)
  store.range = (options) => {
    if (options.gte[0] === dead[0]?.[0]) froms.push(updateIdOfKey(options.gte))
    return range(options)
  }
  await shard.reclaimLeftovers(other)
  assert.deepEqual(froms, [0, 1_000, 2_000, 3_000, 4_000])
  assert.equal(store.size, 0)
})

test('no record is reclaimed before the floor above it is durable', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { shard } = await openShard(store)
  await shard.commit([push(1_000)], waited)
  store.holdWrites()
  const confirm = { kind: 'confirm', queue, from: 1_000, removedBytes: 0 } as const
  const confirmed = shard.commit([{ ...confirm, floor: 1_001, removedCount: 1 }], waited)
  await store.waitForHeld()
  const reclaimed = shard.reclaimLeftovers(queue)
  await settle()
  assert.equal(store.held.length, 1)
  await store.releaseAll()
  await confirmed
  await reclaimed
  assert.deepEqual(await storedIds(store), [])
})

test('a range that deliveries have thinned out is searched and not deleted id by id', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { shard } = await openShard(store)
  await shard.commit([push(1_000), push(900_000)], waited)
  const before = store.writes.length
  await shard.commit(
    [
      {
        kind: 'drop',
        queue,
        from: 1_000,
        floor: 900_001,
        removedCount: 2,
        removedBytes: 0,
      },
    ],
    waited,
  )
  await settle()
  await settle()
  assert.deepEqual(await storedIds(store), [])
  const deletions = store.writes.slice(before).flatMap(({ operations }) => operations)
  assert(deletions.length < 10)
})

test('an expiry bucket is written once for many updates, and again after it was removed', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { shard } = await openShard(store)
  await shard.commit([push(1_000), push(1_001)], waited)
  const minute = 1_800_000_060 / 60
  const bucket = { minute, queue }
  assert.equal(store.writes[0]?.operations.length, 4)
  assert.deepEqual(await shard.dueQueues({ minute: minute - 1, limit: 9 }), [])
  assert.deepEqual(await shard.dueQueues({ minute, limit: 9 }), [bucket])
  assert.deepEqual(await shard.dueQueues({ minute, limit: 9, after: bucket }), [])
  await shard.removeBucket(bucket)
  assert.deepEqual(await shard.dueQueues({ minute, limit: 9 }), [])
  await shard.commit([push(1_002, { expiresAtS: 1_800_000_001 })], waited)
  assert.deepEqual(await shard.dueQueues({ minute, limit: 9 }), [bucket])
})

test('bots and settings are listed in pages, in the order of their ids', async () => {
  const { shard } = await openShard(new MemoryStore())
  const ids = [100, 2 ** 40, 2 ** 52 - 1]
  await shard.commit(
    ids.map((id): Operation => ({ kind: 'bot', queue: id, record: bot })),
    waited,
  )
  const first = await shard.list('b', { after: 0, limit: 2 })
  assert.deepEqual(
    first.map((entry) => entry.queue),
    ids.slice(0, 2),
  )
  const rest = await shard.list('b', { after: 2 ** 40, limit: 2 })
  assert.deepEqual(
    rest.map((entry) => entry.queue),
    ids.slice(2),
  )
})

test('a shard on LevelDB keeps its records when it is reopened', async (t) => {
  const directory = temporaryDirectory(t)
  const clock = new FakeClock()
  for (let life = 0; life < 2; life++) {
    const store = new LevelStore({ directory, clock: systemClock, lockWaitMs: 0 })
    const { shard } = new ShardLife(store, clock)
    await shard.open()
    const [stored] = await shard.load([queue])
    shard.track(queue, stored?.state ?? freshState())
    const next = stored?.state?.nextId ?? 1_000
    await shard.commit([push(next), { kind: 'bot', queue, record: bot }], waited)
    const { updates } = await shard.readUpdates({ queue, from: 0, to: 9_999, limit: 10 })
    assert.equal(updates.length, life + 1)
    assert.equal(updates[life]?.text.toString(), `"message":{"n":${1_000 + life}}`)
    assert.deepEqual(await shard.readNewestIds({ queue, from: 0, to: 9_999, limit: 1 }), [next])
    assert.equal((await shard.list('b', { after: 0, limit: 9 })).length, 1)
    await whileTimePasses(clock, shard.close())
  }
})
