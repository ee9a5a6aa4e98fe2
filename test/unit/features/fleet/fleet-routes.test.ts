/** The routes about all bots without a server: this worker has real bots, and another one has answers that the test writes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import type { Access } from '../../../../src/api/access.ts'
import { ownerWaitMsMax } from '../../../../src/api/limits.ts'
import { forEachMetric, type MetricName } from '../../../../src/kit/metrics.ts'
import type { ShardSums } from '../../../../src/features/fleet/fleet-counts.ts'
import { addFleetRoutes } from '../../../../src/features/fleet/fleet-routes.ts'
import { recordOf } from '../../../../src/kit/record-of.ts'
import {
  deliveryModes,
  deliveryPercentileMs,
  serverCounts,
  type ServerMinute,
} from '../../../../src/kit/server-minute.ts'
import { workersAnswerMs } from '../../../../src/links/ask/ask-workers.ts'
import { TestPayer } from '../../../support/http/test-payer.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'
import { FakeOwnerStream } from '../../../support/network/fake-owner-stream.ts'

const totals = (): Readonly<Record<MetricName, number>> => forEachMetric(() => 1)

/** A delivery of each kind, and nothing else. */
const minute: ServerMinute = {
  minute: 1,
  updates: recordOf(serverCounts, () => 0),
  delivery: recordOf(deliveryModes, () => [1, 0]),
}

/** Worker 0 has the shards 0 and 1 of three; worker 300 is of another node, or of the same one. */
async function setUp(place: 'another node' | 'this node' = 'another node') {
  const bots = await BotsLife.open({ shards: 2 })
  bots.startFleet()
  const asked: { readonly path: string; readonly stream: FakeOwnerStream }[] = []
  const app = Fastify()
  const payer = new TestPayer()
  const sender: { access: Access } = { access: 'root' }
  app.addHook('onRequest', async (request) => {
    request.payer = payer
    request.access = sender.access
  })
  addFleetRoutes(app, bots.fleet, {
    isFirstWorker: true,
    isForwarded: ({ headers }) => headers['x-forwarded'] === 'yes',
    clock: bots.clock,
    shards: 3,
    ownersOf: () => ({
      self: 0,
      others: [300],
      isOtherNode: (owner) => owner === 300 && place === 'another node',
      ownerOf: () => 0,
      isOwn: () => true,
      hasLeft: false,
      hangs: () => 0,
      openStream: (_owner, path) => {
        const stream = new FakeOwnerStream()
        asked.push({ path, stream })
        return stream
      },
    }),
    totals,
    minutes: () => [minute],
  })
  await app.ready()
  /** Calls a route while the other worker has this answer; without one, it hangs. */
  const get = async (url: string, answer?: object) => {
    const response = app.inject({ url }).then(({ statusCode, body }) => ({
      status: statusCode,
      body: JSON.parse(body),
    }))
    for (let turns = 0; turns < 20; turns++) await bots.clock.advance(1)
    if (answer !== undefined) asked.at(-1)?.stream.answer().end(JSON.stringify(answer))
    else await bots.clock.advance(workersAnswerMs)
    return response
  }
  return { bots, app, asked, get, payer, sender }
}

const someKey: Exclude<Access, 'root'> = {
  id: '0123456789abcdef',
  name: 'tenant',
  secretTag: '',
  scopes: new Set(['read']),
  bots: undefined,
  updatesPerSecond: undefined,
  requestsPerSecond: undefined,
  endsAtMs: Infinity,
  limitSlot: 0,
}

const otherBot = {
  botId: 102,
  firstName: 'A',
  username: 'other_bot',
  createdAtMs: 5_000,
  status: { mode: 'webhook', pendingCount: 2, isPaused: false, isPollWaiting: false },
}

test('the lists of all workers are put together in the order of the query', async () => {
  const { bots, asked, get } = await setUp()
  for (const botId of [100, 101]) await bots.register(botId)
  await bots.push(bots.request(101), bots.request(101), bots.request(101))
  const other = { bots: [otherBot], shards: [2] }
  const sorted = await get('/v1/bots?sort=pending&limit=2', other)
  assert.equal(asked[0]?.path, '/internal/bot-list?sort=pending&limit=2&after=0')
  assert.deepEqual(
    sorted.body.bots.map((bot: { bot_id: number; pending: number }) => [bot.bot_id, bot.pending]),
    [
      [101, 3],
      [102, 2],
    ],
  )
  assert.equal(sorted.body.missing_shards, undefined)
  const plain = await get('/v1/bots', other)
  assert.deepEqual(
    plain.body.bots.map((bot: { bot_id: number }) => bot.bot_id),
    [100, 101, 102],
  )
})

test('a sorted list has no next page: a place in it is refused before any worker is asked', async () => {
  const { app, asked } = await setUp()
  const response = await app.inject({ url: '/v1/bots?sort=pending&after=100' })
  assert.match(response.body, /BAD_REQUEST.*after: expected none with sort/)
  assert.equal(asked.length, 0)
})

test('a key for some bots is told of these alone, whatever it asks and whatever another worker answers', async () => {
  const { bots, asked, get, sender } = await setUp()
  for (const botId of [100, 101, 103]) await bots.register(botId)
  await bots.push(bots.request(100), bots.request(103), bots.request(103))
  sender.access = { ...someKey, bots: new Set([100, 102, 104]) }
  const other = { bots: [otherBot, { ...otherBot, botId: 105 }], shards: [2] }
  for (const [query, expected] of [
    ['', [100, 102]],
    ['?sort=pending&details=true', [102, 100]],
    ['?sort=pending&limit=1', [102]],
    ['?limit=1', [100]],
  ] as const) {
    const { body } = await get(`/v1/bots${query}`, other)
    assert.deepEqual(
      body.bots.map((bot: { bot_id: number }) => bot.bot_id),
      expected,
      query,
    )
    assert.equal(body.missing_shards, undefined)
  }
  const { bots: found } = (await get('/v1/bots?search=103', { bots: [], shards: [2] })).body
  assert.deepEqual(found, [])
  assert(asked.every(({ path }) => path === '/internal/own-bot-list'))
})

test('a worker that does not answer a key for some bots is named, also in the plain list', async () => {
  const { bots, get, sender } = await setUp()
  await bots.register(100)
  sender.access = { ...someKey, bots: new Set([100, 102]) }
  const { status, body } = await get('/v1/bots')
  assert.deepEqual([status, body.bots.length, body.missing_shards], [200, 1, [2]])
})

test('a list with details has dead letters and the last activity, and asks the workers nothing new', async () => {
  const { asked, get } = await setUp()
  const webhookHost = 'shop.example'
  const status = { ...otherBot.status, deadLetters: 3, takenBeforeMs: 4_000, webhookHost }
  const other = { bots: [{ ...otherBot, status }], shards: [2] }
  const [bot] = (await get('/v1/bots?details=true', other)).body.bots
  assert.equal(asked[0]?.path.includes('details'), false)
  assert.deepEqual([bot.dead_letters, bot.last_poll], [3, null])
  assert.equal(bot.webhook_host, webhookHost)
  assert.equal(typeof bot.last_taken, 'number')
  const [plain] = (await get('/v1/bots', other)).body.bots
  assert(!('dead_letters' in plain) && !('last_taken' in plain))
})

test('a bot whose state is not known yet has the same fields', async () => {
  const { get } = await setUp()
  const { status: _unknown, ...bare } = otherBot
  const known = (await get('/v1/bots', { bots: [otherBot], shards: [2] })).body.bots[0]
  const unknown = (await get('/v1/bots', { bots: [bare], shards: [2] })).body.bots[0]
  assert.deepEqual(Object.keys(unknown), Object.keys(known))
  assert.deepEqual([unknown.pending, unknown.mode, unknown.bot_id], [null, null, 102])
})

test('what no worker has answered for is missing from lists by state and from the sums, and the plain list fails', async () => {
  const { bots, get } = await setUp()
  await bots.register(100)
  assert.deepEqual((await get('/v1/bots?state=idle')).body.missing_shards, [2])
  const { status, body } = await get('/v1/summary')
  assert.deepEqual([status, body.missing_shards, body.bots], [200, [2], 1])
  const plain = { status: 0 }
  const asking = get('/v1/bots').then((answer) => (plain.status = answer.status))
  const beganMs = bots.clock.monotonicMs()
  while (plain.status === 0) await bots.clock.advance(100)
  await asking
  assert.equal(plain.status, 503)
  const tookMs = bots.clock.monotonicMs() - beganMs
  assert(tookMs > workersAnswerMs && tookMs <= ownerWaitMsMax + workersAnswerMs, `${tookMs}`)
  const none = await get('/v1/bots', { bots: [], shards: [] })
  assert.deepEqual(none.body.missing_shards, [2])
})

test('the plain list waits for a worker that starts, and asks again one that was lost', async () => {
  const { bots, asked, get } = await setUp()
  await bots.register(100)
  const listing = get('/v1/bots')
  while (asked.length < 2) await bots.clock.advance(100)
  asked[1]?.stream.refuse('OUTCOME_UNKNOWN')
  while (asked.length < 3) await bots.clock.advance(100)
  asked[2]?.stream.answer().end(JSON.stringify({ bots: [otherBot], shards: [2] }))
  const { status, body } = await listing
  assert.equal(status, 200)
  assert.deepEqual(
    body.bots.map((bot: { bot_id: number }) => bot.bot_id),
    [100, 102],
  )
})

test('the sums are those of all nodes, and the counters of a node count once', async () => {
  const { bots, get } = await setUp()
  await bots.register(100)
  await bots.push(bots.request(100))
  const [own] = await bots.fleet.summary()
  const sums = [{ shard: 2, counts: own?.counts }]
  const counters = { pushed: 5, confirmed: 4, delivered: 3, expired: 2, refused: 1 }
  const { body } = await get('/v1/summary', { sums, counters })
  assert.deepEqual([body.bots, body.pending, body.workers, body.shards], [2, 2, 2, 3])
  assert.deepEqual(body.updates, {
    pushed: 6,
    confirmed: 5,
    delivered: 4,
    expired: 3,
    refused: 2,
  })
  const again = await get('/v1/summary', { sums })
  assert.equal(again.body.updates.pushed, 1, 'another worker of that node answers for them')
})

test('the counters and delivery times of this node are those that all its workers share', async () => {
  const minutes = [{ ...minute, delivery: recordOf(deliveryModes, () => [0, 100]) }]
  const counters = { pushed: 5, confirmed: 4, delivered: 3, expired: 2, refused: 1 }
  for (const [place, pushed] of [
    ['another node', 6],
    ['this node', 1],
  ] as const) {
    const { get } = await setUp(place)
    const { body } = await get('/v1/summary', { sums: [], counters, minutes })
    assert.equal(body.updates.pushed, pushed)
    const quickest = deliveryPercentileMs(minute, 'webhook', 0.5)
    assert.equal(body.delivery.webhook.p50_ms === quickest, place === 'this node')
  }
})

test('a shard that two workers answer for, because it moves, is listed and counted once', async () => {
  const { bots, get } = await setUp()
  for (const botId of [100, 101]) await bots.register(botId)
  await bots.push(bots.request(100))
  const sums = await bots.fleet.summary()
  const { body } = await get('/v1/summary', { sums: [...sums, { ...sums[0], shard: 2 }] })
  assert.deepEqual([body.bots, body.pending, body.missing_shards], [3, 2, undefined])
  const { bots: listed } = await bots.fleet.page({ after: 0, limit: 9 })
  for (const url of ['/v1/bots', '/v1/bots?sort=pending']) {
    const list = await get(url, { bots: [...listed, otherBot], shards: [0, 1, 2] })
    assert.deepEqual(
      new Set(list.body.bots.map((bot: { bot_id: number }) => bot.bot_id)),
      new Set([100, 101, 102]),
    )
    assert.equal(list.body.bots.length, 3)
  }
})

test('only another worker may ask what this worker has', async () => {
  const { app } = await setUp()
  for (const url of ['/internal/bot-list', '/internal/summary']) {
    const response = await app.inject({ method: 'POST', url })
    assert.match(response.body, /NOT_FOUND/)
    const headers = { 'x-forwarded': 'yes' }
    const forwarded = await app.inject({ method: 'POST', url, headers })
    const { shards, sums } = forwarded.json()
    assert.deepEqual(shards ?? sums.map(({ shard }: ShardSums) => shard), [0, 1])
  }
})

test('lists and the summary pay for all bots and all workers before anybody looks, and wait for their payer', async () => {
  const { bots, asked, app, get, payer } = await setUp()
  for (let botId = 100; botId < 150; botId++) await bots.register(botId)
  const none = bots.fleet.questionCostMs(0)
  const listed = bots.fleet.questionCostMs(10)
  assert(none > 0 && listed > none)
  for (const [path, costMs] of [
    ['/v1/bots?state=idle&limit=10', listed],
    ['/v1/summary', none],
  ] as const) {
    await get(path, { bots: [], shards: [], sums: [] })
    assert.deepEqual(payer.charges.splice(0), [2 * costMs], path)
  }
  const before = asked.length
  payer.isOver = 'refused'
  for (const url of ['/v1/bots', '/v1/bots?sort=pending', '/v1/summary']) {
    assert.equal((await app.inject({ url })).statusCode, 429, url)
  }
  assert.equal(asked.length, before)
})
