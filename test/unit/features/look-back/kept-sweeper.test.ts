import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeptSweeper } from '../../../../src/features/look-back/kept-sweeper.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'

const textBytes = '"message":{}'.length
const retention = { ms: 600_000, bytes: 1_000_000 }

async function open(bytesMax = 1_000_000) {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store, retention })
  const disk = { isNearlyLow: false }
  const sweeper = new KeptSweeper({
    clock: bots.clock,
    bots: bots.registry.bots,
    log: { error: (details) => assert.fail(JSON.stringify(details)) },
    retention,
    bytesMax,
    shardCount: 1,
    isNearlyLow: () => disk.isNearlyLow,
  })
  const { shard } = bots.lives[0]!
  /** Pushes an update to a bot, which confirms it. */
  const keep = async (botId: number): Promise<void> => {
    await bots.push(bots.request(botId))
    const { updates } = await bots.registry.queueOf(botId, false)
    await updates.advance(updates.nextId, 'confirm')
    await bots.clock.advance(50)
  }
  return { bots, store, disk, sweeper, shard, keep }
}

test('what is older than the retention of its queue is deleted, of bots in memory and of others', async () => {
  const { bots, sweeper, shard, keep } = await open()
  for (const botId of [100, 101]) {
    await bots.register(botId)
    await keep(botId)
  }
  const { main } = bots.registry.bots.loaded(101)!
  await bots.wait(main.setRetention({ ms: 60_000 }))
  await bots.clock.advance(150_000)
  assert.deepEqual([shard.kept.of(100).count, shard.kept.of(101).count], [1, 0])
  await bots.clock.advance(600_000)
  assert.equal(bots.registry.bots.loaded(100), undefined)
  assert.equal(shard.kept.of(100).count, 0)
  sweeper.close()
})

test('a sweep of queues of which nothing is due reads nothing', async () => {
  const { bots, store, sweeper, keep } = await open()
  for (let botId = 100; botId < 200; botId++) {
    await bots.register(botId)
    await keep(botId)
  }
  // The second one looks at those that came after the first.
  await bots.clock.advance(180_000)
  let reads = 0
  const [range, getMany] = [store.range.bind(store), store.getMany.bind(store)]
  store.range = (options) => {
    reads += 1
    return range(options)
  }
  store.getMany = (keys) => {
    reads += 1
    return getMany(keys)
  }
  await bots.clock.advance(180_000)
  assert.equal(reads, 0)
  sweeper.close()
})

test('the bound of the server is held by what left first, of all queues', async () => {
  const { bots, sweeper, shard, keep } = await open(10 * textBytes)
  for (const botId of [100, 101]) await bots.register(botId)
  for (let round = 0; round < 20; round++) {
    await keep(100 + (round % 2))
    await bots.clock.advance(10_000)
  }
  assert(shard.kept.bytes <= 11 * textBytes, String(shard.kept.bytes / textBytes))
  assert(shard.kept.of(100).count > 2 && shard.kept.of(101).count > 2)
  sweeper.close()
})

test('while the disk is nearly low, the oldest goes step by step, and its room is freed', async () => {
  const { bots, store, disk, sweeper, shard, keep } = await open()
  await bots.register(100)
  for (let round = 0; round < 10; round++) {
    await keep(100)
    await bots.clock.advance(10_000)
  }
  disk.isNearlyLow = true
  await bots.clock.advance(5_000)
  const { count } = shard.kept.of(100)
  assert(count > 0 && count < 10, String(count))
  assert(store.freed > 0)
  await bots.clock.advance(60_000)
  assert.equal(shard.kept.of(100).count, 0)
  sweeper.close()
})

test('the removal of a bot deletes what its queues kept, and a sweep what is left of a bot that is gone', async () => {
  const { bots, store, sweeper, shard, keep } = await open()
  for (const botId of [100, 101]) {
    await bots.register(botId)
    await keep(botId)
  }
  // The first sweep is over.
  await bots.clock.advance(2_000)
  await bots.push(bots.request(100))
  await bots.wait(bots.registry.remove(100))
  await bots.clock.advance(1_000)
  const letters = async (): Promise<string> => {
    const all = { gte: Buffer.from('a'), lt: Buffer.from('z'), limit: 999 }
    const entries = await store.range(all)
    const own = entries.filter(({ key }) => 'ulvn'.includes(String.fromCharCode(key[0] ?? 0)))
    return own.map(({ key }) => String.fromCharCode(key[0] ?? 0)).join('')
  }
  assert.equal(await letters(), 'lnu')
  // As after a crash in the middle of the removal.
  const gone = { queue: 101, record: null } as const
  const operations = [
    { kind: 'bot', ...gone },
    { kind: 'settings', ...gone },
  ] as const
  await bots.wait(shard.commit(operations, { waited: true }))
  await bots.clock.advance(70_000)
  assert.equal(await letters(), '')
  sweeper.close()
})

test('a bot whose removal fails keeps what it kept', async () => {
  const { bots, store, sweeper, shard, keep } = await open()
  const token = await bots.register(100)
  await keep(100)
  // The first sweep is over.
  await bots.clock.advance(2_000)
  store.holdWrites()
  const removing = assert.rejects(bots.registry.remove(100))
  for (let isFailed = false; !isFailed; ) {
    await bots.clock.advance(5)
    const [held] = store.held
    isFailed = held?.operations.some(({ key }) => key.equals(kinds.bot.key(100))) === true
    await (isFailed ? held?.fail('EIO') : held?.release())
  }
  await store.releaseAll()
  await removing
  await bots.clock.advance(5_000)
  assert.equal(shard.status, 'serving')
  const { updates } = await bots.queueOf(token)
  const page = await bots.wait(updates.lookBack.find({}, { after: 0, limit: 9 }))
  assert.deepEqual(
    page.updates.map(({ state }) => state),
    ['confirmed'],
  )
  sweeper.close()
})

test('a bot that is registered again has nothing of what an earlier one kept, although its removal was cut off', async () => {
  const { bots, store, sweeper, shard, keep } = await open()
  sweeper.close()
  await bots.register(100)
  await keep(100)
  await bots.clock.advance(2_000)
  // The commit is written, and nothing after it.
  store.holdWrites()
  const removing = bots.registry.remove(100)
  await bots.clock.advance(50)
  await store.held[0]?.release()
  await bots.clock.advance(50)
  await store.held[0]?.fail('EIO')
  await store.releaseAll()
  await bots.wait(removing)
  await bots.clock.advance(5_000)
  assert.equal(shard.status, 'serving')
  const token = await bots.wait(bots.register(100))
  const { updates } = await bots.queueOf(token)
  const page = await bots.wait(updates.lookBack.find({}, { after: 0, limit: 9 }))
  assert.deepEqual([page.updates.length, shard.kept.of(100).count], [0, 0])
})

test('while the settings of a queue are damaged, nothing of it goes for its age, until its retention is set again', async () => {
  const { bots, store, sweeper, shard, keep } = await open()
  const ownMs = 2 * retention.ms
  for (const botId of [100, 101]) {
    await bots.register(botId)
    const { main } = bots.registry.bots.loaded(botId)!
    await bots.wait(main.setRetention({ ms: ownMs }))
    await keep(botId)
  }
  const value = Buffer.from('broken')
  await store.write([{ type: 'put', key: kinds.settings.key(100), value }], { sync: true })
  // The bots are no more in memory then.
  await bots.clock.advance(ownMs + 120_000)
  assert.deepEqual([shard.kept.of(100).count, shard.kept.of(101).count], [1, 0])
  const queueOf = () => bots.wait(bots.registry.queueOf(100, false))
  await bots.wait((await queueOf()).setDeliveryLimit(1))
  await bots.clock.advance(retention.ms + 120_000)
  assert.equal(shard.kept.of(100).count, 1)
  await bots.wait((await queueOf()).setRetention({}))
  await bots.clock.advance(120_000)
  assert.equal(shard.kept.of(100).count, 0)
  assert.equal(bots.lives[0]!.details[0]?.['record'], 'settings')
  sweeper.close()
})

test('what is kept of a bot whose record may be lost stays', async () => {
  const { bots, store, sweeper, shard, keep } = await open()
  await bots.register(100)
  await keep(100)
  await bots.clock.advance(2_000)
  await store.write([{ type: 'del', key: kinds.bot.key(100) }], { sync: true })
  bots.registry.bots.doubt(0)
  await bots.clock.advance(120_000)
  assert.equal(shard.kept.of(100).count, 1)
  sweeper.close()
})
