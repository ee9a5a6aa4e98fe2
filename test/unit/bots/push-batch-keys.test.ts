import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BotsLifeOptions } from '../../support/queue/bots-life.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import type { Store } from '../../../src/store/store.ts'

const dayMs = 86_400_000

/** A registry with bot 100 and helpers for its pushes with keys. */
async function open(options: BotsLifeOptions = {}) {
  const bots = await BotsLife.open(options)
  await bots.register(100)
  const keyed = (idempotencyKey: string, text = '{"message":{}}', isTest = false) =>
    bots.request(100, { idempotencyKey, update: Buffer.from(text), isTest })
  const pending = async (isTest = false): Promise<number> =>
    (await bots.registry.queueOf(100, isTest)).updates.pendingCount
  return { bots, keyed, pending }
}

/** Delays reads until the returned function is called. */
function delayReads(store: MemoryStore): () => void {
  let go!: () => void
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const range = store.range.bind(store)
  store.range = async (options) => {
    await gate
    return range(options)
  }
  return go
}

/** Starts a later process on the same store. */
async function reopened(before: BotsLife, store: Store): Promise<BotsLife> {
  await before.close()
  return BotsLife.open({ store: () => store, clock: before.clock })
}

test('a repeated key returns the first update and stores nothing, and other bots and namespaces have separate keys', async () => {
  const { bots, keyed, pending } = await open()
  await bots.register(101)
  const [first] = await bots.push(keyed('k'))
  assert.equal(typeof first, 'number')
  assert.deepEqual(await bots.push(keyed('k')), [`duplicate of ${first}`])
  assert.deepEqual(await bots.push(keyed('k2')), [Number(first) + 1])
  assert.equal(await pending(), 2)
  const others = await bots.push(
    bots.request(101, { idempotencyKey: 'k' }),
    keyed('k', '{"message":{}}', true),
  )
  assert.deepEqual(others, [first, first])
  assert.equal(bots.counters.counts.updates_duplicate, 1)
  assert.equal(bots.counters.counts.updates_refused, undefined)
})

test('a batch of repetitions writes nothing', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { bots, keyed } = await open({ store: () => store })
  const [first] = await bots.push(keyed('k'))
  const { length } = store.writes
  assert.deepEqual(await bots.push(keyed('k'), keyed('k', '{"poll":{}}')), [
    `duplicate of ${first}`,
    'IDEMPOTENCY_MISMATCH',
  ])
  assert.equal(store.writes.length, length)
})

test('keys of a queue whose hashes begin alike are different keys', async () => {
  const { bots, keyed } = await open()
  // Both hashes begin with 189442ef.
  const [one, other] = [keyed('order-19537'), keyed('order-32133')]
  const results = await bots.push(one, other, other, one)
  const first = Number(results[0])
  assert.deepEqual(results, [
    first,
    first + 1,
    `duplicate of ${first + 1}`,
    `duplicate of ${first}`,
  ])
})

test('a repeated key with another update is refused, but white space around it, ordering key and ttl may differ', async () => {
  const { bots, keyed, pending } = await open()
  const [first] = await bots.push(keyed('k'))
  const again = { ...keyed('k', ' { "message":{} }\r'), orderingKey: 'other', ttlS: 5 }
  assert.deepEqual(
    await bots.push(keyed('k', '{"message":{"a":1}}'), again, keyed('k', '{"poll":')),
    ['IDEMPOTENCY_MISMATCH', `duplicate of ${first}`, 'BAD_UPDATE'],
  )
  assert.equal(await pending(), 1)
})

test('within a batch the first update of a key is stored, in the order of the requests', async () => {
  const { bots, keyed } = await open()
  const results = await bots.push(
    keyed('a'),
    bots.request(100),
    keyed('b'),
    keyed('a'),
    keyed('b', '{"poll":{}}'),
    bots.request(100),
  )
  const first = Number(results[0])
  assert.deepEqual(results, [
    first,
    first + 1,
    first + 2,
    `duplicate of ${first}`,
    'IDEMPOTENCY_MISMATCH',
    first + 3,
  ])
})

test('a key survives a restart and is free 24 hours after its push and not earlier', async () => {
  const store = new MemoryStore()
  const { bots, keyed } = await open({ store: () => store })
  const pushedMs = bots.clock.nowMs()
  const [first] = await bots.push(keyed('k'))
  const second = await reopened(bots, store)
  const pushAfter = (ageMs: number): Promise<(string | number)[]> => {
    second.clock.jump(pushedMs + ageMs - second.clock.nowMs())
    return second.push(keyed('k'))
  }
  assert.deepEqual(await pushAfter(10), [`duplicate of ${first}`])
  assert.deepEqual(await pushAfter(dayMs / 2), [`duplicate of ${first}`])
  assert.deepEqual(await pushAfter(dayMs - 1), [`duplicate of ${first}`])
  assert.deepEqual(await pushAfter(dayMs), [Number(first) + 1])
  assert.deepEqual(await pushAfter(dayMs), [`duplicate of ${Number(first) + 1}`])
  // Both the expired record and its successor are on disk.
  const third = await reopened(second, store)
  assert.deepEqual(await third.push(keyed('k')), [`duplicate of ${Number(first) + 1}`])
})

test('a clock that is put back by 12 hours forgets no key, neither those found nor those expired', async () => {
  const store = new MemoryStore()
  const { bots, keyed } = await open({ store: () => store })
  const [first] = await bots.push(keyed('k'))
  bots.clock.jump(-1)
  assert.deepEqual(await bots.push(keyed('k')), [`duplicate of ${first}`])
  bots.clock.jump(1 - dayMs / 2)
  assert.deepEqual(await bots.push(keyed('k')), [`duplicate of ${first}`])
  const second = await reopened(bots, store)
  assert.deepEqual(await second.push(keyed('k')), [`duplicate of ${first}`])
  // Half-days are looked up when the key's has passed, and then the clock is put back.
  second.clock.jump(2 * dayMs - 1_000)
  const third = await reopened(second, store)
  assert.equal(typeof (await third.push(keyed('other')))[0], 'number')
  third.clock.jump(-dayMs / 2)
  assert.deepEqual(await third.push(keyed('k')), [`duplicate of ${first}`])
})

test('filtered and refused pushes are not remembered', async () => {
  const { bots, keyed, pending } = await open()
  assert.deepEqual(await bots.push(keyed('f', '{"chat_member":{}}')), ['filtered'])
  assert.equal(typeof (await bots.push(keyed('f')))[0], 'number')
  await bots.push(...Array.from({ length: 4 }, () => bots.request(100)))
  assert.deepEqual(await bots.push(keyed('q')), ['QUEUE_FULL'])
  assert.match(String(await bots.push(keyed('f'))), /duplicate/)
  const { updates } = await bots.registry.queueOf(100, false)
  await updates.advance(updates.nextId, 'drop')
  assert.equal(typeof (await bots.push(keyed('q', '{"poll":{}}')))[0], 'number')
  assert.equal(await pending(), 1)
})

test('a repeated push gets its id even if new ones are refused, as on a full disk or for an unwanted type', async () => {
  const { bots, keyed } = await open()
  const [first] = await bots.push(keyed('k'))
  bots.isDiskLow = () => true
  assert.deepEqual(await bots.push(keyed('k'), keyed('n'), keyed('k', '{"poll":{}}')), [
    `duplicate of ${first}`,
    'DISK_LOW',
    'IDEMPOTENCY_MISMATCH',
  ])
})

test('two batches at once share one result, and the later one waits for the write of the earlier one', async () => {
  const store = new FaultyStore(new MemoryStore())
  const { bots, keyed, pending } = await open({ store: () => store })
  store.holdWrites()
  const first = bots.push(keyed('k'))
  const write = await store.waitForHeld()
  const log: string[] = []
  const second = bots.push(keyed('k'), keyed('k', '{"poll":{}}')).then((results) => {
    log.push('answered')
    return results
  })
  await settle()
  assert.deepEqual(log, [])
  await write.release()
  const [updateId] = await first
  assert.deepEqual(await second, [`duplicate of ${updateId}`, 'IDEMPOTENCY_MISMATCH'])
  assert.equal(await pending(), 1)
})

test('two batches whose look-ups overlap store one update', async () => {
  const { bots, keyed, pending } = await open()
  const results = await Promise.all([bots.push(keyed('k')), bots.push(keyed('k'))])
  assert.deepEqual(results.flat(), [results[0][0], `duplicate of ${results[0][0]}`])
  assert.equal(await pending(), 1)
})

test('a batch that looked a key up before another batch stored it still sees it', async () => {
  const slow = new MemoryStore()
  const { bots, keyed } = await open({
    shards: 2,
    store: (shard) => (shard === 0 ? new MemoryStore() : slow),
  })
  await bots.register(101)
  // The look-up in the other shard holds the batch after its own look-up is done.
  const go = delayReads(slow)
  const held = bots.push(keyed('k'), bots.request(101, { idempotencyKey: 'k' }))
  await settle()
  const [first] = await bots.push(keyed('k'))
  go()
  const [again] = await held
  assert.equal(again, `duplicate of ${first}`)
})

test('a write that fails fails all who share it, and afterwards the key is what the disk says', async () => {
  for (const applied of [false, true]) {
    const store = new FaultyStore(new MemoryStore())
    const { bots, keyed } = await open({ store: () => store })
    store.holdWrites()
    const first = bots.push(keyed('k'))
    await store.waitForHeld()
    const second = bots.push(keyed('k'), keyed('k', '{"poll":{}}'))
    await settle()
    store.failNextWrite('EIO', { applied })
    await store.releaseAll()
    assert.deepEqual(await first, ['OUTCOME_UNKNOWN'])
    assert.deepEqual(await second, ['OUTCOME_UNKNOWN', 'OUTCOME_UNKNOWN'])
    assert.deepEqual(await bots.push(keyed('k')), ['STORE_UNAVAILABLE'])
    await bots.clock.advance(1_000)
    const [after] = await bots.push(keyed('k'))
    assert.match(String(after), applied ? /^duplicate of \d+$/ : /^\d+$/)
    assert.equal((await bots.registry.queueOf(100, false)).updates.pendingCount, 1)
  }
})

test('a look-up from before the shard was read again is not used', async () => {
  const store = new FaultyStore(new MemoryStore())
  const slow = new MemoryStore()
  const { bots, keyed } = await open({ shards: 2, store: (shard) => (shard === 0 ? store : slow) })
  await bots.register(101)
  const go = delayReads(slow)
  const held = bots.push(keyed('k'), bots.request(100), bots.request(101, { idempotencyKey: 'k' }))
  await settle()
  store.failNextWrite('EIO', { applied: true })
  assert.deepEqual(await bots.push(keyed('k')), ['OUTCOME_UNKNOWN'])
  await bots.clock.advance(1_000)
  go()
  const results = await held
  assert.deepEqual(results.slice(0, 2), ['STORE_UNAVAILABLE', 'STORE_UNAVAILABLE'])
  assert.equal(typeof results[2], 'number')
  assert.match(String(await bots.push(keyed('k'))), /duplicate/)
})

test('a read through a handle whose write failed is not used after the shard was read again', async () => {
  const store = new FaultyStore(new MemoryStore(), { lieAfterFailure: true })
  const slow = new MemoryStore()
  const { bots, keyed } = await open({ shards: 2, store: (shard) => (shard === 0 ? store : slow) })
  await bots.register(101)
  const go = delayReads(slow)
  store.failNextWrite('EIO', { applied: true })
  assert.deepEqual(await bots.push(keyed('k')), ['OUTCOME_UNKNOWN'])
  // The key can be read now, and is gone after the next start.
  const held = bots.push(keyed('k'), bots.request(101, { idempotencyKey: 'k' }))
  await bots.clock.advance(1_000)
  await bots.registry.queueOf(100, false)
  go()
  assert.equal((await held)[0], 'STORE_UNAVAILABLE')
  assert.equal(typeof (await bots.push(keyed('k')))[0], 'number')
})

test('past the daily limit new keys are refused and known ones accepted until midnight, even after a restart', async () => {
  const store = new MemoryStore()
  const options = { store: () => store, idempotencyKeysPerDayMax: 3 }
  const { bots, keyed } = await open(options)
  const results = await bots.push(keyed('1'), keyed('2'), keyed('1'), keyed('3'), keyed('4'))
  assert.deepEqual([typeof results[3], results[4]], ['number', 'TOO_MANY_KEYS'])
  assert.match(String(results[2]), /duplicate/)
  assert.equal(typeof (await bots.push(bots.request(100)))[0], 'number')
  assert.equal(typeof (await bots.push(keyed('4', '{"message":{}}', true)))[0], 'number')
  await bots.close()
  const second = await BotsLife.open({ ...options, clock: bots.clock })
  assert.deepEqual(await second.push(keyed('4')), ['TOO_MANY_KEYS'])
  const [result] = await second.receipt([keyed('4')]).results
  const untilMidnightS = (dayMs - (second.clock.nowMs() % dayMs)) / 1000
  assert.equal((result as { retryAfterS?: number }).retryAfterS, Math.ceil(untilMidnightS))
  second.clock.jump(untilMidnightS * 1000 - 1)
  assert.deepEqual(await second.push(keyed('4')), ['TOO_MANY_KEYS'])
  second.clock.jump(1)
  assert.equal(typeof (await second.push(keyed('4')))[0], 'number')
})

test('keys outlive the unloading of their queue and the removal of their bot, as its numbers do', async () => {
  const { bots, keyed } = await open()
  const [first] = await bots.push(keyed('k'))
  await bots.clock.advance(200_000)
  assert.equal(bots.registry.bots.loaded(100), undefined)
  assert.deepEqual(await bots.push(keyed('k')), [`duplicate of ${first}`])
  await bots.wait(bots.registry.remove(100))
  assert.deepEqual(await bots.push(keyed('k')), ['UNKNOWN_BOT'])
  await bots.register(100)
  assert.deepEqual(await bots.push(keyed('k')), [`duplicate of ${first}`])
})

test('a batch without keys reads nothing from the store, and one with keys reads once per shard', async () => {
  const store = new MemoryStore()
  let reads = 0
  const { bots, keyed } = await open({ store: () => store })
  const getMany = store.getMany.bind(store)
  store.getMany = (wanted) => {
    reads += 1
    return getMany(wanted)
  }
  await bots.push(bots.request(100), bots.request(100))
  assert.equal(reads, 0)
  await bots.push(keyed('1'), keyed('2'))
  // The shard had no keys at all.
  assert.equal(reads, 0)
  await bots.push(keyed('1'), keyed('2'), keyed('2'))
  assert.equal(reads, 1)
})

test('a push is refused if its shard was elsewhere while its batch waited, because its key may have been taken there', async () => {
  const stores = [new MemoryStore(), new MemoryStore()] as const
  const { bots, keyed, pending } = await open({ shards: 2, store: (index) => stores[index]! })
  await bots.register(101)
  const go = delayReads(stores[1])
  const waiting = bots.push(keyed('k'), bots.request(101, { idempotencyKey: 'k' }))
  await settle()
  await bots.dropShard(0)
  await bots.addShard(0, stores[0])
  const [first] = await bots.push(keyed('k'))
  go()
  const [refused, other] = await waiting
  assert.equal(refused, 'STORE_UNAVAILABLE')
  assert.equal(typeof other, 'number')
  assert.equal(await pending(), 1)
  assert.deepEqual(await bots.push(keyed('k')), [`duplicate of ${first}`])
})

test('a shard that is dropped while a batch waits for its keys costs the batch only the pushes to this shard', async () => {
  const stores = [new MemoryStore(), new MemoryStore()] as const
  const { bots, keyed } = await open({ shards: 2, store: (index) => stores[index]! })
  await bots.register(101)
  const go = delayReads(stores[0])
  const waiting = bots.push(keyed('k'), bots.request(101))
  await settle()
  await bots.dropShard(0)
  go()
  const [refused, stored] = await waiting
  assert.equal(refused, 'STORE_UNAVAILABLE')
  assert.equal(typeof stored, 'number')
})

test('a batch names the pushes that are left to the next owner of their shard, and does not count them', async () => {
  const stores = [new MemoryStore(), new MemoryStore()] as const
  const { bots, keyed } = await open({ shards: 2, store: (index) => stores[index]! })
  await bots.register(101)
  const go = delayReads(stores[0])
  const requests = [bots.request(101), keyed('k'), bots.request(100)]
  const { accepted, results } = bots.receipt(requests, (botId) => botId === 100)
  await settle()
  await bots.dropShard(0)
  go()
  assert.deepEqual([...(await accepted)], [1, 2])
  assert.equal(typeof (await results)[0], 'number')
  assert.equal(bots.counters.counts.updates_refused, undefined)
})
