import { randomBytes } from 'node:crypto'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeToken, parseToken, type Token } from '../../../src/api/token.ts'
import type { PostboteError } from '../../../src/kit/errors.ts'
import { webhooksStartedMax } from '../../../src/bots/bot-cache.ts'
import { queueIdOf } from '../../../src/shard/records/record-keys.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'

const unknownToken = { code: 'UNKNOWN_TOKEN' }

test('only its token opens a registered bot, in both namespaces', async () => {
  const bots = await BotsLife.open()
  const token = await bots.register(100)
  const other = await bots.register(101)
  assert.equal((await bots.queueOf(token)).id, queueIdOf(100, false))
  assert.equal((await bots.queueOf(token, true)).id, queueIdOf(100, true))
  const { secret } = parseToken(other)
  for (const botId of [100, 102]) {
    const open = async (of: Token): Promise<unknown> => bots.registry.authorize(of, false)
    await assert.rejects(open({ botId, secret }), { code: 'INVALID_TOKEN' })
    await assert.rejects(open(parseToken(makeToken(botId, randomBytes))), unknownToken)
  }
  await assert.rejects(bots.register(100), { code: 'BOT_EXISTS' })
})

test('one of two simultaneous registrations wins', async () => {
  const bots = await BotsLife.open()
  const both = await Promise.allSettled([bots.register(100), bots.register(100)])
  assert.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
})

test('a registration that could not be stored leaves no bot', async () => {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store })
  store.failNextWrite('ENOSPC')
  await assert.rejects(bots.register(100), { code: 'OUTCOME_UNKNOWN' })
  await assert.rejects(bots.register(100), { code: 'STORE_UNAVAILABLE' })
  assert.equal(bots.registry.bots.loaded(100), undefined)
  await bots.clock.advance(1_000)
  await bots.register(100)
})

test('a new token ends the old one, immediately or after the overlap', async () => {
  const bots = await BotsLife.open()
  const first = await bots.register(100)
  const second = (await bots.registry.renewToken(100, 0)).token
  await assert.rejects(bots.queueOf(first), unknownToken)
  await bots.queueOf(second)
  const third = (await bots.registry.renewToken(100, 60)).token
  await bots.clock.advance(59_999)
  await bots.queueOf(second)
  await bots.queueOf(third)
  await bots.clock.advance(1)
  await assert.rejects(bots.queueOf(second), unknownToken)
  await bots.queueOf(third)
  await assert.rejects(bots.registry.renewToken(101, 0), { code: 'UNKNOWN_BOT' })
})

test('a new token ends the waiting polls of the old one in both namespaces', async () => {
  const bots = await BotsLife.open()
  const token = await bots.register(100)
  const queues = [await bots.queueOf(token), await bots.queueOf(token, true)]
  const waitingPolls = (): Promise<unknown>[] =>
    queues.map(async ({ poller }) => poller.poll(waitingPoll, { onGone: undefined }))
  const ended = Promise.allSettled(waitingPolls())
  await bots.registry.renewToken(100, 0)
  for (const poll of await ended) {
    assert(poll.status === 'rejected')
    assert.equal(poll.reason.code, 'UNKNOWN_TOKEN')
  }
  // With an overlap the bot polls again, and then waits no longer than the old token is valid.
  const emptied = Promise.all(waitingPolls())
  await bots.registry.renewToken(100, 20)
  assert.deepEqual(await emptied, [[], []])
  const again = Promise.all(waitingPolls())
  await bots.clock.advance(20_000)
  assert.deepEqual(await again, [[], []])
})

test('a removal ends waiting polls like the end of their token, and one that fails ends none', async () => {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store })
  for (const code of ['OUTCOME_UNKNOWN', undefined]) {
    const token = code === undefined ? await bots.register(101) : await bots.register(100)
    const botId = code === undefined ? 101 : 100
    const queues = [await bots.queueOf(token), await bots.queueOf(token, true)]
    const polls = Promise.allSettled(
      queues.map(async ({ poller }) => poller.poll(waitingPoll, { onGone: undefined })),
    )
    if (code !== undefined) store.failNextWrite('EIO')
    const removal = bots.registry.remove(botId).catch((error: PostboteError) => error.code)
    assert.equal(await removal, code)
    for (const poll of await polls) {
      if (code === undefined) {
        assert(poll.status === 'rejected')
        assert.equal(poll.reason.code, 'UNKNOWN_TOKEN')
      } else {
        assert(poll.status === 'fulfilled')
        assert.deepEqual(poll.value, [])
      }
    }
    await bots.clock.advance(1_000)
  }
})

const waitingPoll = { offset: 0, limit: 1, timeoutMs: 50_000, allowedTypes: undefined }

test('the later of two simultaneous new tokens stays valid', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const [earlier, later] = await Promise.all([
    bots.registry.renewToken(100, 60),
    bots.registry.renewToken(100, 60),
  ])
  await bots.queueOf(later.token)
  await bots.queueOf(earlier.token)
  await bots.clock.advance(60_000)
  await bots.queueOf(later.token)
  await assert.rejects(bots.queueOf(earlier.token), unknownToken)
})

test('a removed bot is gone with its queues, and after another registration continues its numbers', async () => {
  const bots = await BotsLife.open()
  const token = await bots.register(100)
  const [last] = await bots.push(bots.request(100))
  const [lastOfTest] = await bots.push(bots.request(100, { isTest: true }))
  const queue = await bots.queueOf(token)
  const waiting = Promise.resolve(
    queue.poller.poll(
      { offset: -1, limit: 1, timeoutMs: 0, allowedTypes: 3 },
      { onGone: undefined },
    ),
  )
  await waiting
  const half = bots.receipt([bots.request(100), bots.request(100, { isTest: true })])
  await half.accepted
  await bots.registry.remove(100)
  await assert.rejects(bots.queueOf(token), unknownToken)
  await assert.rejects(bots.registry.remove(100), { code: 'UNKNOWN_BOT' })
  assert.deepEqual(await bots.push(bots.request(100)), ['UNKNOWN_BOT'])
  const again = await bots.register(100)
  const fresh = await bots.queueOf(again)
  assert.equal(fresh.updates.pendingCount, 0)
  assert.equal(fresh.settings.allowedTypes, undefined)
  assert.deepEqual(await bots.push(bots.request(100), bots.request(100, { isTest: true })), [
    Number(last) + 2,
    Number(lastOfTest) + 2,
  ])
  await bots.clock.advance(1_000)
  assert.equal(bots.lives[0]?.shard.status, 'serving')
})

test('one of two simultaneous removals finds nothing', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const both = await Promise.allSettled([bots.registry.remove(100), bots.registry.remove(100)])
  assert.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
})

test('a removal that could not be stored keeps the bot', async () => {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store })
  const token = await bots.register(100)
  await bots.push(bots.request(100))
  store.failNextWrite('EIO')
  await assert.rejects(bots.registry.remove(100), { code: 'OUTCOME_UNKNOWN' })
  await bots.clock.advance(1_000)
  const queue = await bots.queueOf(token)
  assert.equal(queue.updates.pendingCount, 1)
})

test('only bots of a shard that is set aside are refused', async () => {
  const bots = await BotsLife.open({ shards: 2, aside: [1] })
  const token = await bots.register(100)
  await assert.rejects(bots.registry.report(101), { code: 'SHARD_BROKEN', retryAfterS: 60 })
  await assert.rejects(bots.register(101), { code: 'SHARD_BROKEN' })
  const [broken, stored, unknown] = await bots.push(
    bots.request(101),
    bots.request(100),
    bots.request(102),
  )
  assert.equal(broken, 'STORE_UNAVAILABLE')
  assert.equal(typeof stored, 'number')
  assert.equal(unknown, 'UNKNOWN_BOT')
  assert.equal((await bots.queueOf(token)).updates.pendingCount, 1)
})

test('a bot that is registered without an id gets one in a shard that is open', async () => {
  const bots = await BotsLife.open({ shards: 2, aside: [1] })
  assert.equal((await bots.registry.freeBotId(() => true)) % 2, 0)
  const none = await BotsLife.open({ shards: 2, aside: [0] })
  await assert.rejects(
    none.registry.freeBotId(() => true),
    { code: 'STORE_UNAVAILABLE' },
  )
})

test('a report describes both queues', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  await bots.push(bots.request(100), bots.request(100, { isTest: true }))
  await bots.clock.advance(5_000)
  const { queue, testQueue, ...bot } = await bots.registry.report(100)
  assert.deepEqual(bot, {
    botId: 100,
    firstName: 'A',
    username: 'a_bot',
    createdAtMs: 1_800_000_000_000,
    isValidated: false,
    fields: {},
    ttlS: undefined,
    polls: undefined,
    connectionsMax: undefined,
    retryDelaysS: undefined,
    headerNames: undefined,
  })
  assert.equal(queue.pendingCount, 1)
  assert.equal(queue.oldestAgeS, 5)
  assert.equal(queue.mode, 'polling')
  assert.equal(testQueue.pendingCount, 1)
  await assert.rejects(bots.registry.report(101), { code: 'UNKNOWN_BOT' })
})

test('the many webhooks of a shard start a few per turn', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ store: () => store })
  const webhook = { url: 'https://example.com', maxConnections: 1 }
  for (let botId = 100; botId < 100 + webhooksStartedMax * 2 + 5; botId++) {
    const queue = await before.queueOf(await before.register(botId))
    await queue.webhook.set({ webhook, allowedTypes: 1, dropsPending: false })
    await before.push(before.request(botId))
  }
  await before.close()
  const bots = await BotsLife.open({ store: () => store })
  const begun: number[] = []
  const starting = bots.registry.bots.startWebhooks(bots.lives[0]!.shard)
  while (begun.at(-1) !== webhooksStartedMax * 2 + 5) {
    await new Promise((resolve) => setImmediate(resolve))
    const { length } = bots.webhooks.dispatchers
    if (length !== (begun.at(-1) ?? 0)) begun.push(length)
  }
  await starting
  assert.deepEqual(begun, [webhooksStartedMax, webhooksStartedMax * 2, webhooksStartedMax * 2 + 5])
})

test('after the recovery of a shard all of its bots are read again, and no old object can use it', async () => {
  const store = new FaultyStore(new MemoryStore(), { lieAfterFailure: true })
  const bots = await BotsLife.open({ store: () => store })
  const tokens: string[] = []
  for (let botId = 100; botId < 110; botId++) tokens.push(await bots.register(botId))
  const [id] = await bots.push(bots.request(100))
  const stale = await bots.queueOf(tokens[0]!)
  const waiting = stale.poller.poll(
    { offset: Number(id) + 1, limit: 1, timeoutMs: 50_000, allowedTypes: undefined },
    { onGone: undefined },
  )
  store.failNextWrite('ENOSPC')
  assert.deepEqual(await bots.push(bots.request(100), bots.request(109)), [
    'OUTCOME_UNKNOWN',
    'OUTCOME_UNKNOWN',
  ])
  assert.deepEqual(await bots.push(bots.request(100)), ['STORE_UNAVAILABLE'])
  const { shard } = bots.lives[0]!
  let atReset: Promise<(string | number)[]> | undefined
  bots.lives[0]!.onReset = () => {
    void bots.registry.bots.resetShard(shard)
    // In the same turn: ids from before the reset must not be continued.
    atReset = bots.push(bots.request(109), bots.request(100))
  }
  await bots.clock.advance(1_000)
  assert.deepEqual(await waiting, [])
  stale.updates.advance(stale.updates.nextId, 'confirm')
  const [, next] = (await atReset) ?? []
  assert.equal(next, Number(id) + 1)
  await bots.clock.advance(1_000)
  assert.equal(shard.status, 'serving')
  const fresh = await bots.queueOf(tokens[0]!)
  assert.notEqual(fresh, stale)
  assert.equal(fresh.updates.pendingCount, 2)
  assert.equal(store.lost, 0)
})

test('a drain ends polls and lets webhooks finish', async () => {
  const bots = await BotsLife.open()
  const token = await bots.register(100)
  const queue = await bots.queueOf(token)
  const poll = { offset: 0, limit: 1, timeoutMs: 50_000, allowedTypes: undefined }
  const waiting = queue.poller.poll(poll, { onGone: undefined })
  await bots.registry.bots.drain(10_000)
  assert.deepEqual(await waiting, [])
  const late = await bots.queueOf(token, true)
  assert.deepEqual(await late.poller.poll(poll, { onGone: undefined }), [])
  await settle()
})

test('a free id is one that no bot has and the caller accepts', async () => {
  const bots = await BotsLife.open()
  const free = await bots.registry.freeBotId(() => true)
  assert(free >= 100)
  await bots.register(free)
  await assert.rejects(
    bots.registry.freeBotId(() => true),
    { code: 'STORE_UNAVAILABLE' },
    'this random source has no other',
  )
})
