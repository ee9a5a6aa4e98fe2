import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FleetQuery, stuckAfterMs } from '../../../../src/features/fleet/fleet-status.ts'
import {
  fleetFillWaitMs,
  fleetGaugeReadsMax,
  fleetGaugesPeriodMs,
} from '../../../../src/features/fleet/fleet.ts'
import { findRetryMs } from '../../../../src/bots/bot-finder.ts'
import { lastPollsPeriodMs } from '../../../../src/features/fleet/fleet-memory.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { RangeOptions, StoreEntry } from '../../../../src/store/store.ts'
import { BotsLife, type BotsLifeOptions } from '../../../support/queue/bots-life.ts'
import { fleetSums } from '../../../support/server/fleet-sums.ts'

const poll = { offset: 0, limit: 100, timeoutMs: 0, allowedTypes: undefined }
const presence = { onGone: undefined }
const skip = (): void => undefined

/** Bots whose fleet is started, as a worker starts it. */
async function open(options: BotsLifeOptions = {}): Promise<BotsLife> {
  const bots = await BotsLife.open(options)
  bots.startFleet()
  return bots
}

async function select(bots: BotsLife, query: Partial<FleetQuery>): Promise<number[]> {
  const list = await bots.fleet.list({ after: 0, limit: 100, ...query })
  return list.bots.map(({ botId }) => botId)
}

async function setWebhook(bots: BotsLife, token: string): Promise<void> {
  const queue = await bots.queueOf(token)
  const webhook = { url: 'https://example.com/', maxConnections: 1 }
  await queue.webhook.set({ webhook, allowedTypes: 'default', dropsPending: false })
}

/** Times that outlive a worker, as their files do. */
function keptTimes(): NonNullable<BotsLifeOptions['times']> {
  const kept = new Map<string, Map<number, number>>()
  return {
    read: async (kind, shard) => kept.get(`${kind}/${shard}`) ?? new Map<number, number>(),
    async write(kind, shard, times) {
      kept.set(`${kind}/${shard}`, new Map(times))
    },
  }
}

/** Writes an attempt into the log of a bot's webhook. */
function attempt(bots: BotsLife, botId: number, error: string | undefined): void {
  const log = bots.webhooks.attempts.of(botId)
  const atMs = bots.clock.nowMs()
  const one = { atMs, updateId: 1, status: 0, durationMs: 1, nextRetryMs: 0, address: undefined }
  log.add({ ...one, error }, error === undefined ? 'delivered' : 'connection_failed')
}

test('bots are sorted by pending updates or by the age of the oldest one, ties by id', async () => {
  const bots = await open({ shards: 2 })
  for (const botId of [104, 103, 102, 101, 100]) await bots.register(botId)
  await bots.push(bots.request(102))
  await bots.clock.advance(5_000)
  await bots.push(bots.request(101), bots.request(101), bots.request(103), bots.request(104))
  assert.deepEqual(await select(bots, { sort: 'pending', limit: 4 }), [101, 102, 103, 104])
  assert.deepEqual(await select(bots, { sort: 'oldest_age' }), [102, 101, 103, 104, 100])
  assert.deepEqual(await select(bots, { sort: 'oldest_age', limit: 1 }), [102])
})

test('a list by state is in pages by id', async () => {
  const bots = await open()
  for (let botId = 100; botId < 120; botId++) await bots.register(botId)
  await bots.push(bots.request(101))
  const ids: number[] = []
  for (;;) {
    const page = await select(bots, { state: 'idle', after: ids.at(-1) ?? 0, limit: 7 })
    if (page.length === 0) break
    ids.push(...page)
  }
  assert.equal(ids.length, 19)
  assert.deepEqual(
    ids,
    ids.toSorted((a, b) => a - b),
  )
  assert(!ids.includes(101))
})

test('a bot is stuck while its oldest update is older than a minute and nothing leaves its queue', async () => {
  const bots = await open()
  const token = await bots.register(100)
  await bots.push(bots.request(100), bots.request(100))
  const queue = await bots.queueOf(token)
  const [first] = await queue.poller.poll(poll, presence)
  await bots.clock.advance(stuckAfterMs)
  assert.deepEqual(await select(bots, { state: 'stuck' }), [])
  await bots.clock.advance(1_000)
  assert.deepEqual(await select(bots, { state: 'stuck' }), [100])
  await queue.poller.poll({ ...poll, offset: first!.updateId + 1 }, presence)
  assert.deepEqual(await select(bots, { state: 'stuck' }), [], 'it has confirmed one')
  await bots.clock.advance(stuckAfterMs)
  assert.deepEqual(await select(bots, { state: 'stuck' }), [])
  await bots.clock.advance(1)
  assert.deepEqual(await select(bots, { state: 'stuck' }), [100])
  await queue.updates.advance(queue.updates.nextId, 'confirm')
  assert.deepEqual(await select(bots, { state: 'stuck' }), [])
})

test('a delivery counts as taken, and an expiry does not', async () => {
  const bots = await open()
  const token = await bots.register(100)
  await setWebhook(bots, token)
  await bots.push(bots.request(100), bots.request(100), bots.request(100, { ttlS: 90 }))
  const { updates } = await bots.queueOf(token)
  const [first] = await updates.pendingAfter(0, 10)
  await bots.clock.advance(stuckAfterMs + 1_000)
  assert.deepEqual(await select(bots, { state: 'stuck' }), [100])
  updates.remove([first!])
  assert.deepEqual(await select(bots, { state: 'stuck' }), [])
  await bots.clock.advance(stuckAfterMs + 1_000)
  await updates.removeExpired()
  assert.deepEqual(await select(bots, { state: 'stuck' }), [100])
})

test('a bot is idle without pending updates and without a waiting poll', async () => {
  const bots = await open()
  const token = await bots.register(100)
  await bots.register(101)
  await bots.push(bots.request(101))
  assert.deepEqual(await select(bots, { state: 'idle' }), [100])
  const queue = await bots.queueOf(token)
  const waiting = queue.poller.poll({ ...poll, timeoutMs: 5_000 }, presence)
  await bots.clock.advance(1)
  assert.deepEqual(await select(bots, { state: 'idle' }), [])
  await bots.clock.advance(5_000)
  await waiting
  assert.deepEqual(await select(bots, { state: 'idle' }), [100])
})

test('the health of a webhook selects its bot, also when the bot has left memory', async () => {
  const bots = await open()
  const tokens = new Map<number, string>()
  for (const botId of [100, 101, 102, 103, 104]) tokens.set(botId, await bots.register(botId))
  for (const botId of [100, 101, 102, 103]) await setWebhook(bots, tokens.get(botId)!)
  for (let times = 0; times < 3; times++) attempt(bots, 100, 'Connection refused')
  attempt(bots, 101, 'Connection refused')
  attempt(bots, 102, undefined)
  for (const botId of [103, 104]) {
    const queue = await bots.queueOf(tokens.get(botId)!)
    await queue.webhook.setPaused(true)
  }
  for (const isLoaded of [true, false]) {
    assert.equal(bots.registry.bots.loaded(100) !== undefined, isLoaded)
    assert.deepEqual(await select(bots, { state: 'failing' }), [100])
    assert.deepEqual(await select(bots, { state: 'degraded' }), [101])
    assert.deepEqual(await select(bots, { state: 'healthy' }), [102])
    assert.deepEqual(await select(bots, { state: 'paused' }), [103, 104], 'with or without webhook')
    const { counts } = await fleetSums(bots.fleet)
    const { behind, unpolled, ...others } = counts.health
    assert.deepEqual(others, { healthy: 1, degraded: 1, failing: 1, paused: 1 })
    assert.deepEqual([behind, unpolled], [0, 0])
    assert.deepEqual([counts.polling, counts.webhook, counts.paused], [1, 4, 2])
    const all = { after: 0, limit: 9 }
    for (const list of [await bots.fleet.page(all), await bots.fleet.list(all)]) {
      const [failing, degraded, ...rest] = list.bots.map(({ status }) => status?.healthReason)
      assert.match(failing ?? '', /Connection refused/)
      assert.match(degraded ?? '', /attempt/)
      assert.deepEqual(rest, [undefined, undefined, undefined])
    }
    await bots.clock.advance(200_000)
  }
})

test('a bot whom nobody polls is unpolled, also when it has left memory, and is no more when it polls', async () => {
  const bots = await open()
  const token = await bots.register(100)
  await bots.register(101)
  const queue = await bots.queueOf(token)
  await queue.poller.poll(poll, presence)
  await bots.clock.advance(30_000)
  await bots.push(bots.request(100))
  await bots.clock.advance(30_000)
  assert.deepEqual(await select(bots, { state: 'unpolled' }), [])
  await bots.clock.advance(200_000)
  assert.equal(bots.registry.bots.loaded(100), undefined)
  assert.deepEqual(await select(bots, { state: 'unpolled' }), [100])
  const reasonOf = async () => (await bots.registry.report(100)).queue.webhook.healthReason
  assert.equal(
    await reasonOf(),
    'nobody polls; last polled 4 min ago; 1 update waits, the oldest for 3 min',
    'not since the start',
  )
  const { counts } = await fleetSums(bots.fleet)
  assert.deepEqual([counts.health.unpolled, counts.polling, counts.webhook], [1, 2, 0])
  const again = await bots.queueOf(token)
  await again.poller.poll(poll, presence)
  assert.deepEqual(await select(bots, { state: 'unpolled' }), [])
  assert.equal(await reasonOf(), 'last polled 0 s ago; 1 update waits, the oldest for 3 min')
})

test('a bot that gets the same updates for minutes is degraded and reported, and three that behave are not', async () => {
  const bots = await open()
  const stuck = await bots.register(100)
  const others = [await bots.register(101), await bots.register(102), await bots.register(103)]
  const fetch = async (token: string, offset: number): Promise<number> => {
    const page = await (await bots.queueOf(token)).poller.poll({ ...poll, offset }, presence)
    return page.at(-1)?.updateId ?? 0
  }
  await bots.push(bots.request(100))
  for (let round = 0; round < 22; round++) {
    await bots.push(bots.request(101), bots.request(102), bots.request(103))
    await fetch(stuck, 0)
    // Each confirms what it got at once.
    for (const token of others) await fetch(token, (await fetch(token, 0)) + 1)
    await bots.clock.advance(15_000)
  }
  assert.deepEqual(await select(bots, { state: 'degraded' }), [100])
  const { queue } = await bots.registry.report(100)
  assert.match(
    queue.webhook.healthReason,
    /^polls confirm nothing; they get the same updates since /,
  )
  const reports = bots.events.filter(({ type }) => type.startsWith('bot.'))
  assert.deepEqual(
    reports.map(({ type, botId }) => [type, botId]),
    [['bot.degraded', 100]],
  )
  assert.match(reports[0]?.reason ?? '', /^polls confirm nothing; /)
})

test('a webhook whose oldest update gets older is behind, until it works off its backlog', async () => {
  const bots = await open()
  await setWebhook(bots, await bots.register(100))
  await bots.push(bots.request(100))
  await bots.clock.advance(2 * 60_000)
  assert.deepEqual(await select(bots, { state: 'behind' }), [])
  await bots.clock.advance(2 * 60_000)
  assert.deepEqual(await select(bots, { state: 'behind' }), [100])
  const { queue } = await bots.registry.report(100)
  assert.match(queue.webhook.healthReason, /^updates are 4 min late, and get later; 1 update waits/)
  assert.equal((await fleetSums(bots.fleet)).counts.health.behind, 1)
})

test('the next attempt of a webhook is in the list', async () => {
  const bots = await open()
  await setWebhook(bots, await bots.register(100))
  await bots.push(bots.request(100))
  const nextAttemptMs = bots.clock.nowMs() + 4_000
  bots.webhooks.last.toldWaiting = {
    parkedKeys: 1,
    nextAttemptMs,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
  }
  const { bots: listed } = await bots.fleet.page({ after: 0, limit: 10 })
  assert.equal(listed[0]?.status?.nextAttemptMs, nextAttemptMs)
})

test('a list says which chats wait for a retry', async () => {
  const bots = await open()
  await setWebhook(bots, await bots.register(100))
  await bots.push(bots.request(100))
  for (let nth = 0; nth < 3; nth++) attempt(bots, 100, 'Connection refused')
  const { last } = bots.webhooks
  last.toldWaiting = { ...last.toldWaiting, parkedKeys: 2 }
  last.toldKeys = ['m-1001', 'm-1002']
  const { bots: listed } = await bots.fleet.list({ after: 0, limit: 10, state: 'failing' })
  assert.match(listed[0]?.status?.healthReason ?? '', /; 2 chats wait$/)
})

test('a prefix is the beginning of the id or of the username in any case', async () => {
  const bots = await open()
  const names = new Map([
    [1_234, 'Shop_bot'],
    [12_999, 'echo_bot'],
    [5_123, 'shopping'],
  ])
  for (const [botId, username] of names) {
    await bots.registry.register({ botId, firstName: 'A', username })
  }
  assert.deepEqual(await select(bots, { prefix: '12' }), [1_234, 12_999])
  assert.deepEqual(await select(bots, { prefix: 'SHOP' }), [1_234, 5_123])
  assert.deepEqual(await select(bots, { prefix: 'hop' }), [])
  assert.deepEqual(await select(bots, { prefix: '12', state: 'stuck' }), [])
})

test('what waits is counted minute by minute while a bot is in trouble, and not of others', async () => {
  const bots = await open()
  const token = await bots.register(100)
  await bots.register(101)
  await setWebhook(bots, token)
  await bots.push(bots.request(100), bots.request(101))
  attempt(bots, 100, 'Connection refused')
  await bots.clock.advance(60_000)
  for (let nth = 0; nth < 2; nth++) attempt(bots, 100, 'Connection refused')
  await bots.push(bots.request(100))
  await bots.clock.advance(60_000)
  const queue = await bots.registry.queueOf(100, false)
  const curve = bots.registry.pendingOf(queue)
  assert.equal(curve.length, 60)
  assert.deepEqual(curve.filter((count) => count !== undefined).slice(0, 3), [1, 2, 2])
  const other = bots.registry.pendingOf(await bots.registry.queueOf(101, false))
  assert.equal(other[0], undefined)
})

test('a search finds the id, the username, and each word of the first name', async () => {
  const bots = await open({ shards: 2 })
  const names = new Map([
    [1_234, ['Corner Shop', 'a_bot']],
    [12_999, ['Écho', 'shop_bot']],
    [5_123, ['Workshop', 'b_bot']],
  ] as const)
  for (const [botId, [firstName, username]] of names) {
    await bots.registry.register({ botId, firstName, username })
  }
  assert.deepEqual(await select(bots, { search: '12' }), [1_234, 12_999])
  assert.deepEqual(await select(bots, { search: 'SHOP' }), [1_234, 12_999])
  assert.deepEqual(await select(bots, { search: 'éc' }), [12_999])
  assert.deepEqual(await select(bots, { search: 'work' }), [5_123])
  assert.deepEqual(await select(bots, { search: 'shop', prefix: 'shop' }), [12_999])
  assert.deepEqual(await select(bots, { search: 'shop', after: 1_234 }), [12_999])
  await bots.registry.remove(1_234)
  assert.deepEqual(await select(bots, { search: 'corner' }), [])
})

test('a search finds a word of the host of a webhook, as long as the bot has that', async () => {
  const bots = await open({ shards: 2 })
  const token = await bots.register(100)
  await bots.register(101)
  await setWebhook(bots, token)
  assert.deepEqual(await select(bots, { search: 'EXAMPLE' }), [100])
  assert.deepEqual(await select(bots, { search: 'xample' }), [])
  await bots.registry.remove(100)
  assert.deepEqual(await select(bots, { search: 'example' }), [])
})

test('the sums cover both queues of all bots, and dead letters', async () => {
  const bots = await open({ shards: 2 })
  const token = await bots.register(100)
  await bots.register(101)
  await setWebhook(bots, token)
  await bots.push(bots.request(100, { ttlS: 2 }))
  await bots.clock.advance(1_000)
  await bots.push(bots.request(101), bots.request(101, { isTest: true }))
  const before = (await fleetSums(bots.fleet)).counts
  assert.deepEqual(before.oldest, { botId: 100, isTest: false, ageS: 1 })
  assert.equal(before.pending, 3)
  assert.equal(before.pendingBytes, 3 * '"message":{}'.length)
  await bots.clock.advance(2_000)
  const { updates } = await bots.queueOf(token)
  await updates.removeExpired()
  await bots.clock.advance(1_000)
  const { counts } = await fleetSums(bots.fleet)
  assert.deepEqual([counts.pending, counts.deadLetters], [2, 1])
  assert.deepEqual(counts.oldest, { botId: 101, isTest: false, ageS: 3 })
  await bots.registry.remove(101)
  const after = (await fleetSums(bots.fleet)).counts
  assert.deepEqual([after.pending, after.polling, after.oldest], [0, 0, undefined])
})

test('what was stored before the start is known, without reading a bot into memory', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  await before.register(100)
  await before.register(101)
  await before.push(before.request(100), before.request(100))
  await before.close()
  await before.clock.advance(9_000)
  const bots = await open({ store: () => store, clock: before.clock })
  const { bots: listed } = await bots.fleet.list({ after: 0, limit: 9, sort: 'pending' })
  assert.deepEqual(
    listed.map(({ botId, status }) => [botId, status?.pendingCount, status?.mode]),
    [
      [100, 2, 'polling'],
      [101, 0, 'polling'],
    ],
  )
  assert(Number(listed[0]?.status?.oldestAgeS) >= 9)
  assert.equal(bots.registry.bots.loaded(100), undefined)
})

test('the gauges read few oldest updates at a time from disk, and all of them in time', async () => {
  let reads = 0
  class CountingStore extends MemoryStore {
    override range(options: RangeOptions): Promise<readonly StoreEntry[]> {
      if (options.gte.toString('latin1', 0, 1) === 'u') reads += 1
      return super.range(options)
    }
  }
  const store = new CountingStore()
  const before = await BotsLife.open({ store: () => store })
  // The last one has the oldest update.
  for (let botId = 100 + fleetGaugeReadsMax + 1; botId >= 100; botId--) {
    await before.register(botId)
    await before.push(before.request(botId))
    await before.clock.advance(1_000)
  }
  await before.close()
  reads = 0
  const bots = await open({ store: () => store, clock: before.clock })
  const { counts } = bots.counters
  await bots.clock.advance(fleetGaugesPeriodMs)
  assert.equal(reads, fleetGaugeReadsMax)
  const early = counts.updates_oldest_age_seconds
  await bots.clock.advance(fleetGaugesPeriodMs)
  assert.equal(reads, fleetGaugeReadsMax + 2)
  const periodS = fleetGaugesPeriodMs / 1_000
  assert.equal(counts.updates_oldest_age_seconds, Number(early) + 2 + periodS)
})

test('a question reads nothing of a bot that it does not return', async () => {
  let reads = 0
  class CountingStore extends MemoryStore {
    override range(options: RangeOptions): Promise<readonly StoreEntry[]> {
      reads += 1
      return super.range(options)
    }
  }
  const bots = await open({ store: () => new CountingStore() })
  for (let botId = 100; botId < 150; botId++) {
    await bots.register(botId)
    await bots.push(bots.request(botId))
  }
  await bots.fleet.summary()
  reads = 0
  await bots.fleet.summary()
  await select(bots, { state: 'idle' })
  await select(bots, { sort: 'oldest_age', limit: 3 })
  assert.equal(reads, 0)
})

test('a shard that cannot be read is left out, and found again later', async () => {
  let isBroken = true
  class BrokenStore extends MemoryStore {
    override range(options: RangeOptions): Promise<readonly StoreEntry[]> {
      return isBroken ? Promise.reject(new Error('EIO')) : super.range(options)
    }
  }
  const bots = await open({
    shards: 2,
    store: (shard) => (shard === 1 ? new BrokenStore() : new MemoryStore()),
  })
  for (const botId of [100, 101]) await bots.register(botId)
  const list = bots.fleet.list({ after: 0, limit: 9, state: 'idle' })
  assert.deepEqual((await bots.wait(list)).shards, [0])
  assert.deepEqual((await bots.wait(fleetSums(bots.fleet))).shards, [0])
  const plain = await bots.fleet.page({ after: 0, limit: 9 })
  assert.deepEqual(plain.shards, [0])
  isBroken = false
  await bots.clock.advance(findRetryMs)
  assert.deepEqual(await select(bots, { state: 'idle' }), [100, 101])
})

test('a question waits for a shard that was just opened, but not forever', async () => {
  let release = skip
  const gate = new Promise<void>((resolve) => {
    release = resolve
  })
  class SlowStore extends MemoryStore {
    override async range(options: RangeOptions): Promise<readonly StoreEntry[]> {
      await gate
      return super.range(options)
    }
  }
  const bots = await open({ store: () => new SlowStore() })
  await bots.register(100)
  const early = fleetSums(bots.fleet)
  await bots.clock.advance(fleetFillWaitMs)
  assert.deepEqual((await early).shards, [])
  const late = fleetSums(bots.fleet)
  release()
  assert.deepEqual((await late).shards, [0])
})

test('each shard has its own sums', async () => {
  const bots = await open({ shards: 2 })
  for (const botId of [100, 101, 103]) await bots.register(botId)
  await bots.push(bots.request(101), bots.request(103))
  const sums = await bots.fleet.summary()
  assert.deepEqual(
    sums.map(({ shard, counts }) => [shard, counts.polling, counts.pending]),
    [
      [0, 1, 0],
      [1, 2, 2],
    ],
  )
})

test('a shard that has left, or was read anew, is counted once', async () => {
  const bots = await open({ shards: 2 })
  for (const botId of [100, 101]) await bots.register(botId)
  await bots.push(bots.request(100), bots.request(101))
  const [even, odd] = bots.lives
  bots.startFleet([even!.shard])
  bots.fleet.forget(odd!.shard)
  const { counts, shards } = await fleetSums(bots.fleet)
  assert.deepEqual(shards, [0])
  assert.deepEqual([counts.pending, counts.polling], [1, 1])
  bots.fleet.close()
  assert.deepEqual((await fleetSums(bots.fleet)).shards, [])
})

test('the gauges follow the bots, and stand still after the end', async () => {
  const bots = await open()
  const { counts } = bots.counters
  const token = await bots.register(100)
  await bots.push(bots.request(100), bots.request(100))
  await bots.clock.advance(2 * fleetGaugesPeriodMs)
  assert.equal(counts.updates_pending, 2)
  assert.equal(counts.updates_oldest_age_seconds, (2 * fleetGaugesPeriodMs) / 1_000)
  assert.equal(counts.bots_polling, 1)
  await setWebhook(bots, token)
  for (let times = 0; times < 3; times++) attempt(bots, 100, 'Connection refused')
  await bots.clock.advance(fleetGaugesPeriodMs)
  assert.deepEqual([counts.bots_polling, counts.bots_failing], [0, 1])
  bots.fleet.close()
  await bots.registry.remove(100)
  await bots.clock.advance(fleetGaugesPeriodMs)
  assert.equal(counts.bots_failing, 1)
})

test('the last poll of a bot is known after a restart, and nobody is unpolled before a minute is over', async () => {
  const times = keptTimes()
  const store = new MemoryStore()
  const clock = new FakeClock()
  const before = await open({ clock, store: () => store, times })
  const queue = await before.queueOf(await before.register(100))
  await queue.poller.poll(poll, presence)
  await before.push(before.request(100))
  await before.clock.advance(lastPollsPeriodMs + fleetGaugesPeriodMs)
  await before.close()
  const after = await open({ clock, store: () => store, times })
  assert.deepEqual(await select(after, { state: 'unpolled' }), [])
  const { queue: report } = await after.registry.report(100)
  assert.match(report.webhook.healthReason, /^last polled 6\d s/)
  await after.clock.advance(120_000)
  assert.deepEqual(await select(after, { state: 'unpolled' }), [100])
  await after.close()
})

test('a time of a poll that is later than now is not believed', async () => {
  const times = keptTimes()
  const clock = new FakeClock()
  const store = new MemoryStore()
  const before = await open({ clock, store: () => store, times })
  await before.register(100)
  await before.push(before.request(100))
  await before.close()
  await times.write('last-polls', 0, [[100, clock.nowMs() / 1_000 + 86_400]])
  const after = await open({ clock, store: () => store, times })
  await after.clock.advance(120_000)
  assert.deepEqual(await select(after, { state: 'unpolled' }), [100])
  await after.close()
})

test('a trouble that was reported before a restart is not reported again, and its end is', async () => {
  const times = keptTimes()
  const clock = new FakeClock()
  const store = new MemoryStore()
  const before = await open({ clock, store: () => store, times })
  const token = await before.register(100)
  await before.push(before.request(100))
  await before.clock.advance(10 * 60_000)
  assert.deepEqual(typesOf(before), ['bot.unpolled'])
  await before.close()
  const after = await open({ clock, store: () => store, times })
  await after.clock.advance(10 * 60_000)
  assert.deepEqual(typesOf(after), [])
  await (await after.queueOf(token)).poller.poll(poll, presence)
  await after.clock.advance(60_000)
  assert.deepEqual(typesOf(after), ['bot.polled'])
  await after.close()
  const last = await open({ clock, store: () => store, times })
  await last.clock.advance(60_000)
  assert.deepEqual(typesOf(last), [])
  await last.close()
})

function typesOf({ events }: BotsLife): readonly string[] {
  return events.map(({ type }) => type).filter((type) => type.startsWith('bot.'))
}

test('a polled bot whose updates are half an hour old is behind, and not while nobody polls it', async () => {
  const bots = await open()
  const token = await bots.register(100)
  await bots.push(bots.request(100))
  await bots.clock.advance(40 * 60_000)
  assert.deepEqual(await select(bots, { state: 'unpolled' }), [100])
  const queue = await bots.queueOf(token)
  await queue.poller.poll(poll, presence)
  await bots.clock.advance(15_000)
  assert.deepEqual(await select(bots, { state: 'behind' }), [])
  for (let minute = 0; minute < 3; minute++) {
    await queue.poller.poll(poll, presence)
    await bots.clock.advance(50_000)
  }
  assert.deepEqual(await select(bots, { state: 'behind' }), [100])
  const { queue: report } = await bots.registry.report(100)
  assert.match(report.webhook.healthReason, /^updates are 42 min late, and get later; last polled/)
})
