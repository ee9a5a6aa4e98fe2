/** When a bot that nobody uses leaves memory. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { botSweepSliceMax } from '../../../src/bots/bot-cache.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { pendingUpdates } from '../../support/producers/pending-updates.ts'

const minutesMs = 60_000

test('an idle bot is dropped from memory after two minutes and read again when it is used', async () => {
  const bots = await BotsLife.open()
  const token = await bots.register(100)
  await bots.push(bots.request(100))
  await bots.clock.advance(2 * minutesMs)
  assert(bots.registry.bots.loaded(100))
  await bots.clock.advance(minutesMs)
  assert.equal(bots.registry.bots.loaded(100), undefined)
  assert.equal(bots.counters.counts.bots_loaded, 0)
  assert.equal((await bots.queueOf(token)).updates.pendingCount, 1)
})

test('a waiting poll, a verification and a poisoned shard keep a bot in memory', async () => {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store })
  const tokens = [await bots.register(100), await bots.register(101)]
  const tokenOf102 = await bots.register(102)
  const polling = await bots.queueOf(tokens[0]!)
  void polling.poller.poll(
    { offset: 0, limit: 1, timeoutMs: 10 * minutesMs, allowedTypes: undefined },
    { onGone: undefined },
  )
  const verifying = await bots.queueOf(tokens[1]!)
  bots.webhooks.isHolding = true
  const webhook = { url: 'https://example.com', maxConnections: 1 }
  const set = verifying.webhook.set({ webhook, allowedTypes: 1, dropsPending: false })
  await bots.clock.advance(5 * minutesMs)
  assert(bots.registry.bots.loaded(100))
  assert(bots.registry.bots.loaded(101))
  bots.webhooks.held[0]?.succeed()
  await set
  await bots.push(bots.request(102))
  store.failNextWrite('EIO')
  bots.lives[0]!.isDiskWell = false
  assert.deepEqual(await bots.push(bots.request(101)), ['OUTCOME_UNKNOWN'])
  const { updates } = await bots.queueOf(tokenOf102)
  assert.equal(updates.advance(updates.nextId, 'confirm'), undefined)
  await bots.clock.advance(5 * minutesMs)
  assert(bots.registry.bots.loaded(101))
  assert.equal(bots.registry.bots.loaded(102)?.main.updates.pendingCount, 0)
})

test('idle bots are dropped even if bots that were loaded before them are busy', async () => {
  const bots = await BotsLife.open()
  for (let botId = 100; botId < 120; botId++) await bots.register(botId)
  for (let minute = 0; minute < 4; minute++) {
    await bots.clock.advance(minutesMs)
    await bots.push(...Array.from({ length: 10 }, (_, at) => bots.request(100 + at, { ttlS: 1 })))
  }
  const loaded = Array.from(
    { length: 20 },
    (_, at) => bots.registry.bots.loaded(100 + at) !== undefined,
  )
  assert.deepEqual(
    loaded,
    loaded.map((_, at) => at < 10),
  )
})

test('many idle bots are dropped a few per turn, so that other work runs in between', async () => {
  const bots = await BotsLife.open()
  const ids = Array.from({ length: botSweepSliceMax * 2 + 10 }, (_, at) => 100 + at)
  await Promise.all(ids.map((botId) => bots.register(botId)))
  const leftAfter: number[] = []
  const sweeping = bots.clock.advance(4 * minutesMs)
  for (let before = ids.length; before > 0; ) {
    await new Promise((resolve) => setImmediate(resolve))
    const left = bots.counters.counts.bots_loaded ?? 0
    if (left !== before) leftAfter.push(left)
    before = left
  }
  await sweeping
  assert.deepEqual(leftAfter, [botSweepSliceMax + 10, 10, 0])
})

test('an idle webhook is dropped with its dispatcher and started again by the next push', async () => {
  const bots = await BotsLife.open()
  const token = await bots.register(100)
  const queue = await bots.queueOf(token)
  const webhook = { url: 'https://example.com', maxConnections: 1 }
  await queue.webhook.set({ webhook, allowedTypes: 1, dropsPending: false })
  await bots.push(bots.request(100))
  const [first] = bots.webhooks.dispatchers
  await first!.request.source.pendingAfter(0, 10)
  first!.request.source.remove(pendingUpdates([queue.updates.oldestId]))
  await bots.clock.advance(4 * minutesMs)
  assert.equal(bots.registry.bots.loaded(100), undefined)
  assert.equal(first!.calls.at(-1), 'stop')
  await bots.push(bots.request(100))
  assert.equal(bots.webhooks.dispatchers.length, 2)
  assert.deepEqual(bots.webhooks.last.calls, ['start 0', 'wake'])
})

test('a poll of a shard that is opened again gets what is there, also if it began before that', async () => {
  let isBroken = false
  const store = new FaultyStore(
    new MemoryStore({ openFailure: () => (isBroken ? new Error('no room') : undefined) }),
  )
  const bots = await BotsLife.open({ store: () => store })
  const token = await bots.register(100)
  await bots.push(bots.request(100))
  // Nothing of it is in memory.
  await bots.clock.advance(5 * minutesMs)
  const before = await bots.queueOf(token)
  isBroken = true
  store.failNextWrite('ENOSPC')
  assert.deepEqual(await bots.push(bots.request(100)), ['OUTCOME_UNKNOWN'])
  await bots.clock.advance(2_000)
  const request = { offset: 0, limit: 10, timeoutMs: 0, allowedTypes: undefined }
  const begun = Promise.resolve(before.poller.poll(request, { onGone: undefined }))
  const authorized = bots.queueOf(token)
  isBroken = false
  await bots.clock.advance(1_000)
  assert.equal((await begun).length, 1)
  const after = await authorized
  assert.notEqual(after, before)
  assert.equal((await after.poller.poll(request, { onGone: undefined })).length, 1)
})
