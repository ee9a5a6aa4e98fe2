import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdempotencyKeySweeper } from '../../../../src/bots/idempotency-key-sweeper.ts'
import {
  type HeldKey,
  idempotencySweepKeys,
  KeyClaim,
} from '../../../../src/shard/idempotency/idempotency-keys.ts'
import { startOf as placeOf } from '../../../../src/shard/idempotency/idempotency-key-filter.ts'
import { hash128 } from '../../../../src/shard/idempotency/key-hashes.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { halfDayOf } from '../../../../src/shard/records/record-keys.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { IdempotencyFact } from '../../../../src/shard/operations.ts'
import { encodeKey } from '../../../../src/shard/records/record.ts'
import type { Shard } from '../../../../src/shard/shard.ts'
import { settle } from '../../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import { keyHashesOf, noOptions, rowsOf } from '../../../support/queue/pushed-rows.ts'
import { openShard, push, queue, reread, waited } from '../../../support/store/shard-records.ts'

const nowMs = 1_800_000_000_000
const halfDayMs = 43_200_000

function fact(key: string, acceptedAtMs = nowMs): IdempotencyFact {
  return { keyHash: hash128(key), textHash: hash128('text'), acceptedAtMs }
}

async function priorOf(shard: Shard, key: string, atMs = nowMs) {
  const held = shard.idempotency.hold(queue, keyHashesOf(key), 0)
  await shard.idempotency.read(atMs)
  try {
    return shard.idempotency.priorOf(held, atMs)
  } finally {
    shard.idempotency.release(held)
  }
}

async function halfDaysIn(store: MemoryStore | FaultyStore): Promise<number[]> {
  const range = {
    gte: kinds.idempotencyKey.start(),
    lt: kinds.idempotencyKey.range().lt,
    limit: 100_000,
    keysOnly: true,
  }
  return (await store.range(range)).map(({ key }) => kinds.idempotencyKey.fields(key).halfDay)
}

test('a key is written with its update, and counted in the state of its queue by UTC day', async () => {
  const { store, shard } = await openShard(new FaultyStore(new MemoryStore()))
  await shard.commit([push(1_000, { idempotency: fact('a') }), push(1_001)], waited)
  assert.deepEqual(
    store.writes[0]?.operations.map(({ key }) => String.fromCharCode(key[0]!)).join(''),
    'uixus',
  )
  assert.deepEqual(await priorOf(shard, 'a'), {
    updateId: 1_000,
    acceptedAtMs: nowMs,
    textHash: hash128('text'),
  })
  assert.equal(await priorOf(shard, 'b'), undefined)
  await shard.commit([push(1_002, { idempotency: fact('b', nowMs + 1) })], waited)
  await shard.close()
  const memory = new MemoryStore()
  await memory.open()
  for (const { operations } of store.writes) await memory.write(operations, { sync: true })
  await memory.close()
  const { state } = await reread(memory)
  assert.equal(state?.idempotencyDay, Math.floor(nowMs / 86_400_000))
  assert.equal(state.idempotencyCount, 2)
})

/** docs/inside/storage.md shows these bytes. They are stored permanently. */
test('a key has its documented bytes', async () => {
  const { store, shard } = await openShard(new MemoryStore())
  const text = Buffer.from('"message":{"text":"hello"}')
  const idempotency = {
    keyHash: hash128('order-42'),
    textHash: hash128(text),
    acceptedAtMs: 1_800_000_123_456,
  }
  await shard.commit([push(29_090_072, { text, idempotency })], waited)
  const [entry] = await store.range({
    gte: kinds.idempotencyKey.start(),
    lt: kinds.idempotencyKey.range().lt,
    limit: 1,
  })
  assert.equal(
    entry?.key.toString('hex'),
    '690000a2c2000000000000007b3bf8b157c4238eefe5ae4a66eca81c6b',
  )
  assert.equal(
    entry.value.toString('hex'),
    '0201bbe11801a3185e3240972a5e94c01f476af3d4522884f775ce9f572f83',
  )
})

test('the count starts again with each day', async () => {
  const { store, shard } = await openShard(new MemoryStore())
  await shard.commit([push(1_000, { idempotency: fact('a') })], waited)
  await shard.commit([push(1_001, { idempotency: fact('b', nowMs + 86_400_000) })], waited)
  await shard.close()
  const { state } = await reread(store)
  assert.equal(state?.idempotencyCount, 1)
  assert.equal(state.idempotencyDay, Math.floor(nowMs / 86_400_000) + 1)
})

test('a damaged record is ignored and logged', async () => {
  const { store, life, shard } = await openShard(new MemoryStore())
  const key = kinds.idempotencyKey.key(halfDayOf(nowMs), queue, hash128('a'))
  const value = encodeKey(key, { updateId: 5, acceptedAtMs: nowMs, textHash: hash128('text') })
  value[7]! ^= 1
  await store.write([{ type: 'put', key, value }], { sync: true })
  assert.equal(await priorOf(shard, 'a'), undefined)
  assert.equal(life.logged.length, 1)
})

test('of two records of a key in two half-days the newer one counts', async () => {
  const { store, shard } = await openShard(new MemoryStore())
  const write = (acceptedAtMs: number, updateId: number): Promise<void> => {
    const key = kinds.idempotencyKey.key(halfDayOf(acceptedAtMs), queue, hash128('a'))
    const value = encodeKey(key, { updateId, acceptedAtMs, textHash: hash128('text') })
    return store.write([{ type: 'put', key, value }], { sync: true })
  }
  await write(nowMs - 86_400_000, 7)
  await write(nowMs - 1, 8)
  assert.equal((await priorOf(shard, 'a'))?.updateId, 8)
})

test('a machine whose clock begins in 1970 finds the keys that it has stored, and sweeps none', async () => {
  const { shard } = await openShard(new MemoryStore())
  const earlyMs = 5_000
  await shard.commit([push(1_000, { idempotency: fact('a', earlyMs) })], waited)
  assert.equal((await priorOf(shard, 'a', earlyMs))?.updateId, 1_000)
  assert.equal(await shard.idempotency.removeOld(earlyMs), undefined)
  assert.equal((await priorOf(shard, 'a', earlyMs))?.updateId, 1_000)
})

test('keys that are held at the same time are read together, and during a read the next ones wait', async () => {
  const store = new MemoryStore()
  const { shard } = await openShard(store)
  await shard.commit([push(1_000, { idempotency: fact('a') })], waited)
  const reads: number[] = []
  const getMany = store.getMany.bind(store)
  store.getMany = (wanted) => {
    reads.push(wanted.length)
    return getMany(wanted)
  }
  // The stored keys are never read completely, so every key is looked up.
  const range = store.range.bind(store)
  store.range = (options) => (options.limit === 1 ? range(options) : new Promise(() => undefined))
  const held: HeldKey[] = []
  const hold = (key: string): Promise<void> => {
    held.push(shard.idempotency.hold(queue, keyHashesOf(key), 0))
    return shard.idempotency.read(nowMs)
  }
  await Promise.all([hold('a'), hold('b'), hold('a')])
  assert.deepEqual(reads, [2])
  const first = hold('c')
  await Promise.resolve()
  await Promise.all([first, hold('d'), hold('e'), hold('c')])
  assert.deepEqual(reads, [2, 1, 2])
  assert.deepEqual(
    held.map(({ state }) => state),
    held.map(() => 'known'),
  )
  for (const key of held) shard.idempotency.release(key)
})

test('once the stored keys were read, a new key is known without a look-up, and a stored one is looked up where it is', async () => {
  const store = new MemoryStore()
  const { shard, clock } = await openShard(store)
  const old = fact('old', nowMs - halfDayMs)
  await shard.commit([push(1_000, { idempotency: old })], waited)
  await shard.commit([push(1_001, { idempotency: fact('a') })], waited)
  const places: string[] = []
  const getMany = store.getMany.bind(store)
  store.getMany = (wanted) => {
    places.push(
      ...wanted.map((key) => `${kinds.idempotencyKey.fields(key).halfDay - halfDayOf(nowMs)}`),
    )
    return getMany(wanted)
  }
  assert.equal(await priorOf(shard, 'new'), undefined)
  assert.deepEqual(places, ['-1', '0'])
  await clock.advance(100)
  places.length = 0
  const held = shard.idempotency.hold(queue, keyHashesOf('new'), 0)
  assert.equal(held.state, 'known')
  shard.idempotency.release(held)
  assert.equal((await priorOf(shard, 'a'))?.updateId, 1_001)
  assert.equal((await priorOf(shard, 'old'))?.updateId, 1_000)
  assert.deepEqual(places, ['0', '-1'])
})

test('a key that was claimed after the stored keys were read is found after its last holder has gone', async () => {
  const { shard, clock } = await openShard(new MemoryStore())
  await priorOf(shard, 'other')
  await clock.advance(100)
  const held = shard.idempotency.hold(queue, keyHashesOf('a'), 0)
  const claim = new KeyClaim(keyHashesOf('a'), nowMs)
  shard.idempotency.claim(held, claim, 0, 1_000)
  await shard.commit([push(1_000, { idempotency: fact('a') })], waited)
  shard.idempotency.settle(claim, undefined)
  assert.equal((await priorOf(shard, 'a'))?.updateId, 1_000)
})

test('a key that another owner stored before the shard was opened again is found', async () => {
  const { store, shard, clock } = await openShard(new MemoryStore())
  await priorOf(shard, 'other')
  await clock.advance(100)
  const key = kinds.idempotencyKey.key(halfDayOf(nowMs), queue, hash128('a'))
  const value = encodeKey(key, { updateId: 5, acceptedAtMs: nowMs, textHash: hash128('text') })
  await store.write([{ type: 'put', key, value }], { sync: true })
  shard.idempotency.reset()
  assert.equal((await priorOf(shard, 'a'))?.updateId, 5)
})

test('a read of the stored keys that failed is repeated by the next sweep', async () => {
  const store = new MemoryStore()
  const { shard, clock } = await openShard(store)
  await shard.commit([push(1_000, { idempotency: fact('a') })], waited)
  const range = store.range.bind(store)
  store.range = (options) =>
    options.limit === 1 ? range(options) : Promise.reject(new Error('EIO'))
  await priorOf(shard, 'b')
  await clock.advance(100)
  store.range = range
  const isKnown = (key: string): boolean => {
    const held = shard.idempotency.hold(queue, keyHashesOf(key), 0)
    const isNew = held.state === 'known'
    shard.idempotency.release(held)
    return isNew
  }
  assert.equal(isKnown('c'), false)
  await shard.idempotency.removeOld(nowMs)
  await clock.advance(100)
  assert.equal(isKnown('d'), true)
})

test('a failed read is repeated for the next caller', async () => {
  const store = new MemoryStore()
  const { shard } = await openShard(store)
  await shard.commit([push(1_000, { idempotency: fact('a') })], waited)
  const range = store.range.bind(store)
  store.range = () => Promise.reject(new Error('EIO'))
  const held = shard.idempotency.hold(queue, keyHashesOf('a'), 0)
  await shard.idempotency.read(nowMs)
  assert.throws(() => shard.idempotency.priorOf(held, nowMs), { code: 'STORE_UNAVAILABLE' })
  store.range = range
  assert.equal((await priorOf(shard, 'a'))?.updateId, 1_000)
  shard.idempotency.release(held)
})

test('a key is in memory only while a caller holds it', async () => {
  const { shard } = await openShard(new MemoryStore())
  const { idempotency } = shard
  const [first, second] = [
    idempotency.hold(queue, keyHashesOf('a'), 0),
    idempotency.hold(queue, keyHashesOf('a'), 0),
  ]
  assert.equal(first, second)
  await idempotency.read(nowMs)
  const claim = new KeyClaim(keyHashesOf('a'), nowMs)
  idempotency.claim(first, claim, 0, 1_000)
  assert.equal(second.claim, claim)
  idempotency.settle(claim, undefined)
  assert.equal(await claim.settled, undefined)
  assert.equal(idempotency.hold(queue, keyHashesOf('a'), 0), second)
  idempotency.release(second)
  idempotency.release(second)
  const third = idempotency.hold(queue, keyHashesOf('a'), 0)
  assert.notEqual(third, second)
  idempotency.release(third)
})

test('a key stands for the text of the push that claimed it, whoever held it first', async () => {
  const { shard } = await openShard(new MemoryStore())
  const { idempotency } = shard
  const update = Buffer.from('{"message":{}}')
  const keyed = (key: string) => ({ ...noOptions, botId: 1, update, idempotencyKey: key })
  const { keyHashes } = rowsOf([keyed('other'), keyed('a')])
  const held = idempotency.hold(queue, keyHashesOf('a', 'refused'), 0)
  assert.equal(idempotency.hold(queue, keyHashes, 1), held)
  await idempotency.read(nowMs)
  const claim = new KeyClaim(keyHashes, nowMs)
  idempotency.claim(held, claim, 1, 1_000)
  const textHash = hash128('"message":{}')
  const expected = { updateId: 1_000, acceptedAtMs: nowMs, textHash }
  assert.deepEqual(idempotency.priorOf(held, nowMs), expected)
  idempotency.settle(claim, undefined)
  assert.deepEqual(idempotency.priorOf(held, nowMs), expected)
  assert.equal(idempotency.hold(queue, keyHashesOf('a'), 0), held)
  idempotency.release(held)
  idempotency.release(held)
})

test('a key that is claimed again after 24 hours while it is still being written stands for the later push', async () => {
  const { shard } = await openShard(new MemoryStore())
  const { idempotency } = shard
  const laterMs = nowMs + 86_400_000
  const [held, , third] = Array.from({ length: 3 }, () =>
    idempotency.hold(queue, keyHashesOf('a'), 0),
  )
  assert.ok(held !== undefined && held === third)
  await idempotency.read(nowMs)
  const [claim, later] = [nowMs, laterMs].map((atMs) => new KeyClaim(keyHashesOf('a'), atMs))
  assert.ok(claim !== undefined && later !== undefined)
  idempotency.claim(held, claim, 0, 1_000)
  assert.equal(idempotency.priorOf(held, laterMs), undefined)
  idempotency.claim(held, later, 0, 1_001)
  for (const each of [claim, later]) {
    idempotency.settle(each, undefined)
    assert.deepEqual(idempotency.priorOf(held, laterMs), {
      updateId: 1_001,
      acceptedAtMs: laterMs,
      textHash: hash128('text'),
    })
  }
  idempotency.release(held)
})

test('keys of several queues at one place are held apart, whichever is released first', async () => {
  const { shard } = await openShard(new MemoryStore())
  const { idempotency } = shard
  const names = ['a', 'b', 'c'] as const
  const first = placeOf(queue, keyHashesOf('a').word(0, 0))
  // The multiplier is odd, so that each key has a queue that brings it to the place of the first one.
  const inverse = 0x0e8b2f51
  assert.equal(Math.imul(inverse, placeOf(1, 0)), 1)
  const queues = names.map((name) => Math.imul(first ^ keyHashesOf(name).word(0, 0), inverse) >>> 0)
  const hold = (nth: number): HeldKey =>
    idempotency.hold(queues[nth] ?? 0, keyHashesOf(names[nth] ?? ''), 0)
  for (const order of [
    [0, 1, 2],
    [1, 2, 0],
    [2, 0, 1],
    [1, 0, 2],
  ]) {
    const held = [hold(0), hold(1), hold(2)]
    assert.equal(new Set(held.map(({ start }) => start)).size, 1)
    assert.equal(new Set(held).size, 3)
    for (const [at, nth] of order.entries()) {
      const key = held[nth]
      assert.ok(key !== undefined)
      idempotency.release(key)
      for (const left of order.slice(at + 1)) {
        const again = hold(left)
        assert.equal(again, held[left])
        idempotency.release(again)
      }
      const anew = hold(nth)
      assert.notEqual(anew, key)
      idempotency.release(anew)
    }
  }
  const held = [hold(0), hold(1)]
  idempotency.reset()
  assert.deepEqual(
    held.map(({ state }) => state),
    ['void', 'void'],
  )
})

async function openOld(count: number) {
  const opened = await openShard(new FaultyStore(new MemoryStore()))
  const { store, shard, clock } = opened
  const now = halfDayOf(clock.nowMs())
  const value = Buffer.alloc(1)
  const puts = (halfDay: number, keys: number) =>
    Array.from({ length: keys }, (_, index) => ({
      type: 'put' as const,
      key: kinds.idempotencyKey.key(halfDay, queue, hash128(String(index))),
      value,
    }))
  await store.write(
    [
      ...puts(now - 9, count),
      ...puts(now - 4, 1),
      ...[-3, -2, -1, 0, 1].flatMap((by) => puts(now + by, 1)),
    ],
    { sync: true },
  )
  store.writes.length = 0
  const logged: string[] = []
  const log = { error: (_details: object, message: string) => void logged.push(message) }
  const sweeper = new IdempotencyKeySweeper({ clock, bots: { shards: [shard] }, log })
  return { ...opened, now, sweeper, logged }
}

test('half-days that have passed are removed in slices with pauses between them, except the last four', async () => {
  const { clock, store, now, sweeper } = await openOld(2 * idempotencySweepKeys + 5)
  await clock.advance(60_000)
  assert.deepEqual(
    store.writes.map(({ operations, sync }) => [operations.length, sync]),
    [[idempotencySweepKeys, false]],
  )
  await clock.advance(9)
  assert.equal(store.writes.length, 1)
  await clock.advance(1)
  assert.equal(store.writes.length, 2)
  await clock.advance(10)
  assert.deepEqual(store.writes[2]?.operations.length, 6)
  assert.deepEqual(await halfDaysIn(store), [now - 3, now - 2, now - 1, now, now + 1])
  // There is nothing left to delete, so the deleted range is not read again until a half-day has passed.
  let ranges = 0
  const range = store.range.bind(store)
  store.range = (options) => {
    ranges += 1
    return range(options)
  }
  await clock.advance(600_000)
  assert.equal(ranges, 0)
  await clock.advance(halfDayMs)
  assert.deepEqual(await halfDaysIn(store), [now - 2, now - 1, now, now + 1])
  sweeper.close()
})

test('a failed sweep is reported and repeated, and a stopped one ends after its slice', async () => {
  const { clock, store, sweeper, logged } = await openOld(3 * idempotencySweepKeys)
  const range = store.range.bind(store)
  store.range = () => Promise.reject(new Error('EIO'))
  await clock.advance(60_000)
  assert.equal(logged.length, 1)
  store.range = range
  await clock.advance(60_000)
  assert.equal(store.writes.length, 1)
  sweeper.close()
  await clock.advance(120_000)
  await settle()
  assert.equal(store.writes.length, 1)
  assert.equal(logged.length, 1)
})
