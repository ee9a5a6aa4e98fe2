import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExpirySweeper } from '../../../src/bots/expiry-sweeper.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../src/shard/records/record-keys.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { BotsLife, neverPolled } from '../../support/queue/bots-life.ts'
import { settle } from '../../support/kit/fake-clock.ts'

async function open() {
  const store = new MemoryStore()
  const bots = await BotsLife.open({ store: () => store })
  const logged: string[] = []
  const sweeper = new ExpirySweeper({
    clock: bots.clock,
    bots: bots.registry.bots,
    log: { error: (_details, message) => void logged.push(message) },
  })
  return { bots, store, sweeper, logged }
}

test('every minute expired updates are removed, of bots in memory and of others', async () => {
  const { bots, sweeper, logged } = await open()
  for (const botId of [100, 101]) await bots.register(botId)
  await bots.push(bots.request(100, { ttlS: 400 }), bots.request(101, { ttlS: 10 }))
  await bots.push(bots.request(101, { isTest: true, ttlS: 10 }), bots.request(101, { ttlS: 90 }))
  await bots.clock.advance(60_000)
  assert.equal(bots.counters.counts.updates_expired, 2)
  await bots.clock.advance(60_000)
  assert.equal(bots.counters.counts.updates_expired, 3)
  await bots.clock.advance(200_000)
  assert.equal(bots.registry.bots.loaded(100), undefined)
  await bots.clock.advance(180_000)
  assert.equal(bots.counters.counts.updates_expired, 4)
  const { shard } = bots.lives[0]!
  assert.deepEqual(await shard.dueQueues({ minute: 2 ** 31, limit: 9 }), [])
  assert.deepEqual(logged, [])
  sweeper.close()
})

test('more buckets than one read returns are swept in one sweep', async () => {
  const { bots, sweeper } = await open()
  for (let botId = 100; botId < 700; botId++) {
    await bots.register(botId)
    await bots.push(bots.request(botId, { ttlS: 10 }))
  }
  await bots.clock.advance(60_000)
  await settle()
  for (let turn = 0; turn < 200 && bots.counters.counts.updates_expired !== 600; turn++) {
    await settle()
  }
  assert.equal(bots.counters.counts.updates_expired, 600)
  sweeper.close()
})

test('a queue with many due minutes is read once and not once per minute', async () => {
  const { bots, sweeper, store } = await open()
  await bots.register(100)
  for (let minute = 1; minute <= 5; minute++) {
    await bots.push(bots.request(100, { ttlS: minute * 60 }))
  }
  sweeper.close()
  // As after a stop of that duration.
  bots.clock.jump(10 * 60_000)
  let reads = 0
  const range = store.range.bind(store)
  store.range = (options) => {
    if (options.gte.equals(kinds.update.key(100, 0))) reads += 1
    return range(options)
  }
  const later = new ExpirySweeper({
    clock: bots.clock,
    bots: bots.registry.bots,
    log: { error: () => assert.fail('expected a sweep') },
  })
  await bots.wait(later.sweep())
  later.close()
  assert.equal(bots.counters.counts.updates_expired, 5)
  assert.equal(reads, 1, 'its dead records are looked for once')
  assert.deepEqual(await bots.lives[0]!.shard.dueQueues({ minute: 2 ** 31, limit: 9 }), [])
})

test('one queue that cannot be read does not stop the others', async () => {
  const { bots, store, sweeper, logged } = await open()
  for (const botId of [100, 101]) {
    await bots.register(botId)
    await bots.push(bots.request(botId, { ttlS: 400 }))
  }
  await bots.clock.advance(240_000)
  assert.equal(bots.registry.bots.loaded(100), undefined)
  await store.write([{ type: 'put', key: kinds.bot.key(100), value: Buffer.from('broken') }], {
    sync: true,
  })
  await bots.clock.advance(300_000)
  assert.equal(bots.counters.counts.updates_expired, 1)
  assert(logged.length > 0)
  const [left] = await bots.lives[0]!.shard.dueQueues({ minute: 2 ** 31, limit: 9 })
  assert.equal(left?.queue, 100, 'it is tried again')
  sweeper.close()
})

test('updates that a webhook is sending when they expire are swept again until it has finished', async () => {
  const { bots, sweeper } = await open()
  await bots.register(100)
  await bots.push(bots.request(100, { ttlS: 10 }))
  const updates = bots.registry.bots.loaded(100)!.main.updates
  updates.heldBy({
    holds: () => true,
    release: () => false,
    abandon: () => false,
    giveUpExpired: () => undefined,
    renumbered: () => undefined,
  })
  await bots.clock.advance(180_000)
  assert.equal(updates.pendingCount, 1)
  const { shard } = bots.lives[0]!
  assert.equal((await shard.dueQueues({ minute: 2 ** 31, limit: 9 })).length, 1)
  updates.heldBy(undefined)
  await bots.clock.advance(60_000)
  assert.equal(bots.counters.counts.updates_expired, 1)
  assert.deepEqual(await shard.dueQueues({ minute: 2 ** 31, limit: 9 }), [])
  sweeper.close()
})

test('a sweep ends despite any number of queues that cannot be read', async () => {
  const { bots, store, sweeper, logged } = await open()
  for (let botId = 100; botId < 700; botId++) {
    await store.write(
      [
        { type: 'put', key: kinds.expiry.key(1, botId), value: Buffer.alloc(0) },
        { type: 'put', key: kinds.bot.key(botId), value: Buffer.from('broken') },
      ],
      { sync: true },
    )
  }
  await sweeper.sweep()
  assert.equal(logged.length, 600)
  sweeper.close()
  await bots.close()
})

test('dead records that a crash has left are removed with their bucket, also those of a removed bot', async () => {
  const { bots, store, sweeper } = await open()
  await bots.register(100)
  const [id] = await bots.push(bots.request(100, { ttlS: 100 }))
  await bots.registry.remove(100)
  await bots.clock.advance(1_000)
  const key = kinds.update.key(queueIdOf(100, false), Number(id))
  await store.write([{ type: 'put', key, value: Buffer.from('dead') }], { sync: true })
  await bots.clock.advance(180_000)
  assert.deepEqual(await store.getMany([key]), [undefined])
  sweeper.close()
})

test('a stopped sweeper does nothing and logs nothing', async () => {
  const { bots, sweeper, logged } = await open()
  await bots.register(100)
  await bots.push(bots.request(100, { ttlS: 1 }))
  sweeper.close()
  await bots.clock.advance(120_000)
  await bots.close()
  await sweeper.sweep()
  assert.equal(bots.counters.counts.updates_expired, undefined)
  assert.deepEqual(logged, [])
})

test('updates that a webhook loses by the sweep count among its deliveries, as on /metrics', async () => {
  const { bots, sweeper } = await open()
  const queue = await bots.queueOf(await bots.register(100))
  await queue.webhook.set({
    webhook: { url: 'https://example.com/a', maxConnections: 40 },
    allowedTypes: 1,
    dropsPending: false,
  })
  await bots.push(bots.request(100, { ttlS: 10 }), bots.request(100, { ttlS: 10 }))
  await bots.clock.advance(120_000)
  assert.equal(bots.counters.counts.webhook_expired, 2)
  assert.equal((await queue.report({ polls: neverPolled })).webhook.deliveries.expired, 2)
  sweeper.close()
})

test('updates that nobody fetches in time are counted for their bot and reported', async () => {
  const { bots, sweeper } = await open()
  const queue = await bots.queueOf(await bots.register(100))
  await bots.push(bots.request(100, { ttlS: 10 }), bots.request(100, { ttlS: 10 }))
  await bots.clock.advance(120_000)
  assert.equal(bots.counters.counts.updates_expired, 2)
  assert.equal((await queue.report({ polls: neverPolled })).webhook.deliveries.expired, 2)
  const expired = bots.events.filter(({ type }) => type === 'updates.expired')
  assert.deepEqual(
    expired.map(({ botId, isTest, count }) => [botId, isTest, count]),
    [[100, false, 2]],
  )
  sweeper.close()
})

test('a bot whose updates expire before anybody polls is unpolled, also when nothing waits any more', async () => {
  const { bots, sweeper } = await open()
  const queue = await bots.queueOf(await bots.register(100))
  await bots.push(bots.request(100, { ttlS: 10 }))
  await bots.clock.advance(120_000)
  const polls = { isWaiting: false, lastBeforeMs: undefined, knownForMs: 120_000 }
  const { webhook, pendingCount } = await queue.report({ polls })
  assert.equal(pendingCount, 0)
  assert.equal(webhook.health, 'unpolled')
  assert.match(webhook.healthReason, /^nobody polls; .*; the last update expired \d+ s ago$/)
  sweeper.close()
})
