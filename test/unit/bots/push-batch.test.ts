import assert from 'node:assert/strict'
import { test } from 'node:test'
import { updateIdRenumber } from '../../../src/queue/update-queue.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { queueIdOf } from '../../../src/shard/records/record-keys.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import type { PushOperation } from '../../../src/shard/operations.ts'
import { encodeQueueState } from '../../../src/shard/records/record.ts'
import type { Store } from '../../../src/store/store.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { freshState } from '../../support/store/shard-records.ts'

function pushed(bots: BotsLife): PushOperation[] {
  return bots.lives.flatMap(({ committed }) =>
    committed.filter((operation) => operation.kind === 'push'),
  )
}

test('a batch assigns ids in its order, separately for each bot, and filters by type', async () => {
  const bots = await BotsLife.open({ shards: 2 })
  for (const botId of [100, 101]) await bots.register(botId)
  const results = await bots.push(
    bots.request(100),
    bots.request(101),
    bots.request(100, { update: Buffer.from('{"chat_member":{}}') }),
    bots.request(100, { isTest: true }),
    bots.request(100),
  )
  const [first] = results
  assert.deepEqual(results, [first, first, 'filtered', first, Number(first) + 1])
  assert.equal(bots.counters.counts.updates_pushed, 4)
  assert.equal(bots.counters.counts.updates_filtered, 1)
  assert.equal(bots.counters.counts.updates_refused, undefined)
})

test('a bad request fails alone, with its own code', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const results = await bots.push(
    bots.request(100, { update: Buffer.from('{"message":') }),
    bots.request(99),
    bots.request(Number.NaN),
    bots.request(2 ** 60),
    bots.request(4_444),
    bots.request(100, { update: Buffer.from(`{"message":{"t":"${'x'.repeat(1_000)}"}}`) }),
    bots.request(100),
  )
  assert.deepEqual(results.slice(0, -1), [
    'BAD_UPDATE',
    'UNKNOWN_BOT',
    'UNKNOWN_BOT',
    'UNKNOWN_BOT',
    'UNKNOWN_BOT',
    'UPDATE_TOO_LARGE',
  ])
  assert.equal(typeof results.at(-1), 'number')
  const { counts } = bots.counters
  assert.deepEqual([counts.updates_refused, counts.updates_pushed], [6, 1])
  assert.equal(counts.updates_refused_unknown_bot, 4)
  assert.equal(counts.updates_refused_bad_update, 1)
  assert.equal(counts.updates_refused_update_too_large, 1)
})

test('an update without the fields that frameworks need is refused if the push or its bot asks for that, and a repetition gets its id', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const bare = { update: Buffer.from('{"message":{"text":"hello"}}'), idempotencyKey: 'k' }
  const id = (await bots.push(bots.request(100, bare)))[0]
  assert.equal(typeof id, 'number')
  const unkeyed = { ...bare, idempotencyKey: undefined }
  assert.deepEqual(await bots.push(bots.request(100, { ...unkeyed, isValidated: true })), [
    'BAD_UPDATE',
  ])
  await bots.registry.change(100, { isValidated: true })
  assert.equal((await bots.registry.report(100)).isValidated, true)
  const again = await bots.push(bots.request(100, unkeyed), bots.request(100, bare))
  assert.deepEqual(again, ['BAD_UPDATE', `duplicate of ${id}`])
  await bots.registry.renewToken(100, 0)
  assert.deepEqual(await bots.push(bots.request(100, unkeyed)), ['BAD_UPDATE'])
  await bots.registry.change(100, { isValidated: null })
  assert.equal(typeof (await bots.push(bots.request(100, unkeyed)))[0], 'number')
})

test('each push of a sampled trace has a span with its result, and no other push has one', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const keyed = { traceparent, idempotencyKey: 'k' }
  const results = await bots.push(
    bots.request(100, keyed),
    bots.request(100),
    bots.request(100, { traceparent: traceparent.replace(/1$/, '0') }),
    bots.request(100, keyed),
    bots.request(100, { traceparent, update: Buffer.from('{"chat_member":{}}') }),
    bots.request(101, { traceparent }),
  )
  const stored = [results[0], results[0], undefined, undefined]
  assert.deepEqual(
    bots.spans.map(({ name, isError, attributes }) => [
      name,
      isError,
      attributes['postbote.result'],
      attributes['postbote.update_id'],
    ]),
    ['stored', 'duplicate', 'filtered', 'UNKNOWN_BOT'].map((result, nth) => [
      'push',
      nth === 3,
      result,
      stored[nth],
    ]),
  )
})

test('the wait of an update that a poll confirms has a span, from when it was stored', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const [id] = await bots.push(bots.request(100, { traceparent }), bots.request(100))
  const { updates } = await bots.registry.queueOf(100, false)
  await updates.page(100)
  const storedMs = bots.clock.nowMs()
  await bots.clock.advance(2_500)
  await updates.advance(Number(id) + 2, 'confirm')
  const [, wait] = bots.spans
  assert.equal(bots.spans.length, 2)
  assert.deepEqual(
    [wait?.name, wait?.startMs, wait?.endMs, wait?.attributes['postbote.mode']],
    ['wait', storedMs, storedMs + 2_500, 'polling'],
  )
})

test('a push whose write fails is counted as refused, and not as stored', async () => {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store })
  await bots.register(100)
  store.failNextWrite('ENOSPC')
  assert.deepEqual(await bots.push(bots.request(100)), ['OUTCOME_UNKNOWN'])
  const { counts } = bots.counters
  assert.deepEqual([counts.updates_pushed, counts.updates_refused_outcome_unknown], [0, 1])
})

test('a bot that --filter excludes gets no updates, though it was registered before', async () => {
  const bots = await BotsLife.open()
  for (const botId of [100, 101]) await bots.register(botId)
  bots.isServed = (botId) => botId % 2 === 0
  const idempotencyKey = 'k'
  const results = await bots.push(
    bots.request(101, { idempotencyKey }),
    bots.request(100),
    bots.request(103),
  )
  assert.deepEqual(
    results.map((result) => (typeof result === 'number' ? 'stored' : result)),
    ['BOT_NOT_SERVED', 'stored', 'BOT_NOT_SERVED'],
  )
  assert.equal(bots.counters.counts.updates_refused, 2)
  await assert.rejects(bots.register(105), { code: 'BOT_NOT_SERVED', status: 421 })
  bots.isServed = () => false
  const free = bots.registry.freeBotId(() => true)
  await assert.rejects(free, { code: 'STORE_UNAVAILABLE' }, 'there is no id that it includes')
  // The operator can still look at the bot and remove it.
  assert.equal((await bots.registry.report(101)).queue.pendingCount, 0)
  bots.isServed = () => true
  assert.equal(typeof (await bots.push(bots.request(101, { idempotencyKey })))[0], 'number')
})

test('ordering key and time to live come from the producer, or else from the update', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const update = Buffer.from('{"message":{"chat":{"id":7}}}')
  await bots.push(
    bots.request(100, { update }),
    bots.request(100, { update, orderingKey: 'seven', ttlS: 9 }),
  )
  const [derived, given] = pushed(bots)
  assert.notEqual(derived?.orderingKey, given?.orderingKey)
  assert.equal(derived?.expiresAtS, 1_800_000_000 + 86_400)
  assert.equal(given?.expiresAtS, 1_800_000_009)
  assert.equal(given?.text.toString(), '"message":{"chat":{"id":7}}')
})

test('a full queue refuses the excess and keeps the rest', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const results = await bots.push(...Array.from({ length: 7 }, () => bots.request(100)))
  assert.deepEqual(results.slice(5), ['QUEUE_FULL', 'QUEUE_FULL'])
  assert.equal((await bots.registry.report(100)).queue.pendingCount, 5)
})

test('a low disk refuses all pushes of its shards, and a poisoned shard only its own', async () => {
  const stores = [new FaultyStore(new MemoryStore()), new FaultyStore(new MemoryStore())]
  const bots = await BotsLife.open({ shards: 2, store: (shard) => stores[shard]! })
  for (const botId of [100, 101]) await bots.register(botId)
  bots.isDiskLow = (shard) => shard === 0
  const [low, unknown, first] = await bots.push(...[100, 103, 101].map((id) => bots.request(id)))
  assert.deepEqual([low, unknown], ['DISK_LOW', 'UNKNOWN_BOT'])
  assert.equal(typeof first, 'number')
  bots.isDiskLow = () => false
  stores[0]!.failNextWrite('EIO')
  const both = (): Promise<(string | number)[]> => bots.push(bots.request(100), bots.request(101))
  const [lost, kept] = await both()
  assert.equal(lost, 'OUTCOME_UNKNOWN')
  assert.equal(typeof kept, 'number')
  assert.equal(kept, Number(first) + 1)
  assert.deepEqual(await both(), ['STORE_UNAVAILABLE', kept + 1])
})

test('a bot that could not be read is not reported as unknown', async () => {
  const store = new MemoryStore()
  const bots = await BotsLife.open({
    shards: 2,
    store: (at) => (at === 0 ? store : new MemoryStore()),
  })
  await bots.register(101)
  await store.close()
  const [first, second] = await bots.push(bots.request(100), bots.request(101))
  assert.equal(first, 'STORE_UNAVAILABLE')
  assert.equal(typeof second, 'number')
})

test('a failure before ids are assigned refuses its own pushes and leaves no unhandled rejection', async () => {
  const store = new FaultyStore(new MemoryStore())
  await store.open()
  await writeState(store, updateIdRenumber + 1)
  const bots = await BotsLife.open({
    shards: 2,
    store: (at) => (at === 0 ? store : new MemoryStore()),
  })
  for (const botId of [100, 101]) await bots.register(botId)
  store.failNextWrite('EIO')
  const [due, other] = await bots.push(bots.request(100), bots.request(101))
  assert.equal(due, 'STORE_UNAVAILABLE')
  assert.equal(typeof other, 'number')
  await bots.clock.advance(1_000)
  const [first, second] = await bots.push(bots.request(100), bots.request(100))
  assert(Number(first) < 2 ** 27)
  assert.equal(second, Number(first) + 1)
})

test('a new numbering keeps the dispatcher running with its connections and its last error', async () => {
  const store = new MemoryStore()
  await store.open()
  await writeState(store, updateIdRenumber)
  const bots = await BotsLife.open({ store: () => store })
  const queue = await bots.queueOf(await bots.register(100))
  await queue.webhook.set({
    webhook: { url: 'https://example.com/a', maxConnections: 40 },
    allowedTypes: 1,
    dropsPending: false,
  })
  const [last] = await bots.push(bots.request(100))
  assert.equal(last, updateIdRenumber)
  await queue.updates.advance(queue.updates.nextId, 'drop')
  const [first] = await bots.push(bots.request(100))
  assert(Number(first) < 2 ** 27)
  assert.deepEqual(bots.webhooks.last.calls, ['start 0', 'wake'])
  assert.equal(bots.webhooks.dispatchers.length, 1)
})

test('a batch keeps its bots in memory while it waits for others', async () => {
  const store = new FaultyStore(new MemoryStore())
  const bots = await BotsLife.open({ store: () => store })
  await bots.register(100)
  await bots.clock.advance(119_000)
  const receipt = bots.receipt([bots.request(100), bots.request(100, { isTest: true })])
  await bots.clock.advance(60_000)
  const results = await receipt.results
  assert.deepEqual(
    results.map((result) => typeof result),
    ['number', 'number'],
  )
})

/** Makes it look as if bot 100 had used up its ids below `nextId`. */
async function writeState(store: Store, nextId: number): Promise<void> {
  const key = kinds.state.key(queueIdOf(100, false))
  const value = encodeQueueState(key, freshState(nextId))
  await store.write([{ type: 'put', key, value }], { sync: true })
}
