import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { BotQueue } from '../../../../src/bots/bot-queue.ts'
import { eraseUpdates } from '../../../../src/features/look-back/erase-updates.ts'
import {
  type ReplayOrder,
  replayLifeMs,
  replaysKeptMax,
  replaysRunningMax,
} from '../../../../src/features/look-back/replay-jobs.ts'
import { updateIdRenumber } from '../../../../src/queue/update-queue.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { encodeQueueState } from '../../../../src/shard/records/record.ts'
import type { StoredReplay } from '../../../../src/shard/records/stored-records.ts'
import { until } from '../../../support/kit/until.ts'
import { BotsLife, type BotsLifeOptions } from '../../../support/queue/bots-life.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { freshState } from '../../../support/store/shard-records.ts'

const botId = 100
const everything: ReplayOrder = { selection: {}, rate: 10_000 }
const gaveUp = { reason: 'refused', attempts: 1, lastError: undefined } as const

/** A bot that keeps what leaves its queue. */
async function open(options: BotsLifeOptions = {}) {
  const store = new MemoryStore()
  const bots = await BotsLife.open({
    store: () => store,
    retention: { ms: 3_600_000, bytes: 1_000_000 },
    limits: { pendingUpdatesMax: 10_000, pendingBytesMax: 1_000_000 },
    ...options,
  })
  const isNew = (await bots.registry.bots.find(botId)) === undefined
  if (isNew) await bots.register(botId)
  return { bots, store, queue: await bots.registry.queueOf(botId, false) }
}

/** Pushes updates, numbered from `from` on, with one of three ordering keys. */
async function push(bots: BotsLife, count: number, from = 0): Promise<number[]> {
  const requests = Array.from({ length: count }, (_, n) =>
    bots.request(botId, {
      update: Buffer.from(`{"message":{"n":${from + n}}}`),
      orderingKey: `k${n % 3}`,
    }),
  )
  return (await bots.push(...requests)).map(Number)
}

/** Has the bot confirm everything. */
async function confirm(bots: BotsLife, { updates }: BotQueue): Promise<void> {
  await bots.wait(Promise.resolve(updates.advance(updates.nextId, 'confirm')))
  await bots.clock.advance(50)
}

/** The numbers of the pending updates in their order. */
async function pending({ updates }: BotQueue, after = 0): Promise<number[]> {
  const found = await updates.pendingAfter(after, 10_000)
  return found.map((update) => Number(/"n":(\d+)/.exec(update.body().toString())?.[1]))
}

async function stateOf(bots: BotsLife, queue: BotQueue, jobId: number): Promise<StoredReplay> {
  const listed = await bots.wait(bots.replays.list(queue))
  const found = listed.find((each) => each.jobId === jobId)
  assert(found !== undefined)
  return found
}

async function turns(count: number): Promise<void> {
  for (let nth = 0; nth < count; nth++) await turn()
}

const numbers = (from: number, end: number): number[] =>
  Array.from({ length: end - from }, (_, n) => from + n)

test('a job replays what was accepted in its time, in the order of the ids, and a dry run counts the same', async () => {
  const { bots, queue } = await open()
  const { replays } = bots
  await push(bots, 100)
  await bots.clock.advance(10_000)
  const sinceS = bots.clock.nowMs() / 1_000
  await push(bots, 300, 100)
  await bots.clock.advance(10_000)
  const untilS = bots.clock.nowMs() / 1_000
  await push(bots, 100, 400)
  await confirm(bots, queue)
  const order = { ...everything, selection: { sinceS, untilS } }
  const counted = await bots.wait(replays.count(queue, order))
  assert.deepEqual([counted.count, counted.isComplete], [300, true])
  const last = queue.updates.nextId - 1
  const { jobId, record } = await bots.wait(replays.begin(queue, order))
  assert.deepEqual([record.total, record.end], [300, last + 1])
  await bots.clock.advance(1_000)
  assert.deepEqual(await pending(queue, last), numbers(100, 400))
  const { record: after } = await stateOf(bots, queue, jobId)
  assert.deepEqual([after.state, after.replayed, after.next], ['done', 300, after.end])
  assert.equal(after.endedAtMs !== undefined && after.endedAtMs >= record.startedAtMs, true)
})

test('a copy has a new id, the same bytes and ordering key, and lives as long as its type says', async () => {
  const { bots, queue } = await open()
  const ids = await push(bots, 2)
  await confirm(bots, queue)
  await bots.clock.advance(5_000)
  await bots.wait(bots.replays.begin(queue, everything))
  await bots.clock.advance(100)
  const [copy] = await queue.updates.pendingAfter(0, 1)
  const id = (ids[1] ?? 0) + 1
  assert.equal(copy?.body().toString(), `{"update_id":${id},"message":{"n":0}}`)
  assert.equal(copy?.orderingKey, '=k0')
  assert(copy.expiresAtS >= bots.clock.nowMs() / 1_000 + 86_000)
})

test('what was pending when a job began is not replayed, nor is any copy, whatever leaves meanwhile', async () => {
  const { bots, queue } = await open()
  await push(bots, 200)
  await confirm(bots, queue)
  await push(bots, 100, 200)
  const end = queue.updates.nextId
  const { jobId, record } = await bots.wait(bots.replays.begin(queue, { ...everything, rate: 100 }))
  assert.equal(record.total, 200)
  const seen: number[] = []
  for (let round = 0; round < 40; round++) {
    await push(bots, 1, 1_000 + round)
    await bots.clock.advance(100)
    seen.push(...(await pending(queue)))
    await confirm(bots, queue)
  }
  assert.deepEqual(
    seen.filter((n) => n < 200).toSorted((a, b) => a - b),
    numbers(0, 200),
  )
  assert.deepEqual(
    seen.filter((n) => n >= 200 && n < 1_000),
    numbers(200, 300),
  )
  assert.equal(seen.filter((n) => n >= 1_000).length, 40)
  const { record: after } = await stateOf(bots, queue, jobId)
  assert.deepEqual([after.state, after.replayed, after.end], ['done', 200, end])
})

test('a job replays no copy of its own, although the clock was put back and they seem to have left before', async () => {
  const { bots, queue } = await open()
  await push(bots, 205)
  await confirm(bots, queue)
  const { jobId } = await bots.wait(bots.replays.begin(queue, { ...everything, rate: 100 }))
  bots.clock.jump(-3_600_000)
  for (let round = 0; round < 40; round++) {
    await bots.clock.advance(100)
    await confirm(bots, queue)
  }
  const { record } = await stateOf(bots, queue, jobId)
  assert.deepEqual([record.state, record.replayed], ['done', 205])
})

test('a job of a shard that has left pushes nothing more, although it was about to', async () => {
  const { bots, queue } = await open()
  await push(bots, 10)
  await confirm(bots, queue)
  const held: (() => void)[] = []
  Object.defineProperty(bots.registry.bots, 'findQueue', {
    value: () => new Promise((resolve) => held.push(() => resolve(queue))),
  })
  const { jobId, record } = await bots.wait(bots.replays.begin(queue, everything))
  await bots.clock.advance(100)
  const forgotten = bots.replays.forget(queue.shard)
  assert.equal(held.length, 1)
  held[0]?.()
  await bots.wait(forgotten)
  assert.equal(queue.updates.pendingCount, 0)
  assert.deepEqual((await stateOf(bots, queue, jobId)).record, record)
})

test('what is erased while a job is about to push it has no copy', async () => {
  const { bots, queue } = await open()
  await push(bots, 30)
  await confirm(bots, queue)
  const { lookBack } = queue.updates
  const find = lookBack.find.bind(lookBack)
  const held: (() => void)[] = []
  // The queue makes one for each use.
  Object.defineProperty(queue.updates, 'lookBack', { value: lookBack })
  Object.defineProperty(lookBack, 'find', {
    value: async (...given: Parameters<typeof find>) => {
      const found = await find(...given)
      if (given[1].limit <= 1_000 && held.length < 2) {
        await new Promise<void>((resolve) => held.push(resolve))
      }
      return found
    },
  })
  const starting = bots.replays.begin(queue, everything)
  await bots.wait(until(() => held.length === 1))
  held[0]?.() // The count with which a job begins.
  await bots.wait(starting)
  await bots.wait(until(() => held.length === 2))
  const erased = eraseUpdates([queue], ({ orderingKey }) => orderingKey.endsWith('k0'))
  await Promise.race([bots.wait(erased), turns(300)])
  held[1]?.()
  const { kept, pending: copies } = await bots.wait(erased)
  await bots.clock.advance(1_000)
  const left = await pending(queue)
  assert.deepEqual([kept, left.filter((n) => n % 3 === 0)], [10, []])
  assert.equal(copies + left.length, 30)
})

/** Erases the only update of a queue, and checks that it is gone. */
async function eraseOne(bots: BotsLife, queue: BotQueue): Promise<void> {
  const erased = await bots.wait(
    eraseUpdates([queue], ({ orderingKey }) => orderingKey.endsWith('k0')),
  )
  assert.equal(erased.pending + erased.kept + erased.dead, 1)
  const { updates } = await bots.wait(queue.updates.lookBack.find({}, { after: 0, limit: 9 }))
  assert.deepEqual(updates, [])
}

for (const how of ['confirmed', 'given up'] as const) {
  test(`an update that is ${how} while kept ones are erased is erased, too`, async () => {
    const { bots, queue } = await open()
    const { updates, shard } = queue
    await push(bots, 1)
    const lost = (await updates.pendingAfter(0, 1)).map((update) => ({ update, ...gaveUp }))
    await bots.wait(updates.deadLetters.count())
    const held: (() => void)[] = []
    const holding = shard.keptChanges.run(() => new Promise<void>((go) => void held.push(go)))
    const erasing = eraseOne(bots, queue)
    await Promise.race([erasing, turns(300)])
    if (how === 'confirmed') await confirm(bots, queue)
    else updates.addDeadLetters(lost)
    held[0]?.()
    await Promise.all([holding, erasing])
  })
}

test('a dead letter that is replayed after the look at the pending updates is erased, too', async () => {
  const { bots, queue } = await open()
  const { updates } = queue
  const [updateId = 0] = await push(bots, 1)
  const lost = (await updates.pendingAfter(0, 1)).map((update) => ({ update, ...gaveUp }))
  updates.addDeadLetters(lost)
  const erase = updates.erase.bind(updates)
  let isReplayed = false
  Object.defineProperty(updates, 'erase', {
    value: async (...given: Parameters<typeof erase>) => {
      const erased = await erase(...given)
      if (!isReplayed) await bots.replays.oneDead(queue, updateId)
      isReplayed = true
      return erased
    },
  })
  await eraseOne(bots, queue)
})

test('the answer to an attempt that is made while an erasure looks for answers stays', async () => {
  const { bots, queue } = await open()
  const [erased = 0, updateId = 0] = await push(bots, 2)
  const log = bots.webhooks.attempts.of(queue.id)
  const attempt = { atMs: 1, status: 500, durationMs: 1, nextRetryMs: 2, address: '::1' }
  const add = (id: number): void =>
    log.add({ ...attempt, updateId: id, error: 'no', responseBody: 'why' }, 'rejected')
  const gone = erased - 1
  add(gone)
  const { lookBack } = queue.updates
  const get = lookBack.get.bind(lookBack)
  Object.defineProperty(queue.updates, 'lookBack', { value: lookBack })
  Object.defineProperty(lookBack, 'get', {
    value: (id: number) => {
      add(updateId)
      return get(id)
    },
  })
  await bots.wait(eraseUpdates([queue], ({ orderingKey }) => orderingKey.endsWith('k0')))
  const answers = log.latest(9).map((each) => [each.updateId, each.responseBody])
  assert.deepEqual(answers, [
    [updateId, 'why'],
    [gone, undefined],
  ])
})

test('a job goes on in the next process where the one before was killed: nothing twice, nothing left out', async () => {
  const store = new MemoryStore()
  let disk = new FaultyStore(store)
  const first = await open({ store: () => disk })
  await push(first.bots, 500)
  await confirm(first.bots, first.queue)
  const last = first.queue.updates.nextId - 1
  const { jobId } = await first.bots.wait(
    first.bots.replays.begin(first.queue, { ...everything, rate: 100 }),
  )
  let { bots } = first
  for (let lives = 0; lives < 20; lives++) {
    await bots.clock.advance(130 + lives * 17)
    // What is in progress is never written.
    disk.holdWrites()
    bots.replays.close()
    disk = new FaultyStore(store)
    const next = await open({ store: () => disk, clock: bots.clock })
    bots = next.bots
  }
  await bots.clock.advance(10_000)
  const queue = await bots.registry.queueOf(botId, false)
  assert.deepEqual(await pending(queue, last), numbers(0, 500))
  const { record } = await stateOf(bots, queue, jobId)
  assert.deepEqual([record.state, record.replayed], ['done', 500])
})

test('a job goes on after a failed write, whether its bytes were stored or not', async () => {
  for (const applied of [true, false]) {
    const store = new FaultyStore(new MemoryStore())
    const { bots, queue } = await open({ store: () => store })
    await push(bots, 300)
    await confirm(bots, queue)
    const last = queue.updates.nextId - 1
    await bots.wait(bots.replays.begin(queue, { ...everything, rate: 1_000 }))
    await bots.clock.advance(50)
    store.failNextWrite('EIO', { applied })
    await bots.clock.advance(10_000)
    assert.equal(bots.lives[0]?.resets, 1)
    const again = await bots.wait(bots.registry.queueOf(botId, false))
    assert.deepEqual(await pending(again, last), numbers(0, 300))
  }
})

test('a queue that is half full pauses a job, which says why and goes on when there is room', async () => {
  const { bots, queue } = await open({ limits: { pendingUpdatesMax: 10, pendingBytesMax: 10_000 } })
  await push(bots, 10)
  await confirm(bots, queue)
  const { jobId } = await bots.wait(bots.replays.begin(queue, everything))
  await bots.clock.advance(5_000)
  const { record } = await stateOf(bots, queue, jobId)
  assert.deepEqual([record.state, record.replayed, record.refusal], ['paused', 5, 'QUEUE_FULL'])
  assert.match(
    record.reason ?? '',
    /is full: a replay leaves half of it to pushes, and it has 5 of/,
  )
  assert.equal((await push(bots, 5, 100)).filter((id) => id > 0).length, 5)
  await confirm(bots, queue)
  await bots.clock.advance(2_000)
  const { record: after } = await stateOf(bots, queue, jobId)
  assert.deepEqual([after.state, after.replayed, after.reason], ['done', 10, undefined])
  assert.deepEqual(await pending(queue), numbers(5, 10))
})

test('a disk that is nearly full pauses a job', async () => {
  const { bots, queue } = await open()
  await push(bots, 3)
  await confirm(bots, queue)
  const { jobId } = await bots.wait(bots.replays.begin(queue, { ...everything, rate: 1 }))
  await bots.clock.advance(500)
  bots.isDiskLow = () => true
  await bots.clock.advance(2_000)
  const { record } = await stateOf(bots, queue, jobId)
  assert.deepEqual([record.state, record.refusal], ['paused', 'DISK_LOW'])
  bots.isDiskLow = () => false
  await bots.clock.advance(5_000)
  assert.equal((await stateOf(bots, queue, jobId)).record.state, 'done')
})

test('types that the bot does not want and updates that are too large now are skipped and counted', async () => {
  const store = new MemoryStore()
  const first = await open({ store: () => store })
  const large = updateOf(`{"message":{"text":"${'x'.repeat(500)}"}}`)
  const poll = updateOf('{"poll":{"id":"1"}}')
  await first.bots.push(first.bots.request(botId, large), first.bots.request(botId, poll))
  await push(first.bots, 1)
  await confirm(first.bots, first.queue)
  await first.bots.close()
  const limits = { pendingUpdatesMax: 10, pendingBytesMax: 10_000, updateBytesMax: 100 }
  const { bots, queue } = await open({ store: () => store, clock: first.bots.clock, limits })
  await bots.wait(Promise.resolve(queue.setAllowedTypes(1)))
  const { jobId, record } = await bots.wait(bots.replays.begin(queue, everything))
  assert.equal(record.total, 3)
  await bots.clock.advance(200)
  const { record: after } = await stateOf(bots, queue, jobId)
  assert.deepEqual([after.state, after.replayed, after.filtered, after.tooLarge], ['done', 1, 1, 1])
})

test('a job pushes no more in a second than its rate', async () => {
  const { bots, queue } = await open()
  await push(bots, 100)
  await confirm(bots, queue)
  await bots.wait(bots.replays.begin(queue, { ...everything, rate: 20 }))
  const counts: number[] = []
  for (let second = 0; second < 4; second++) {
    counts.push(queue.updates.pendingCount)
    await bots.clock.advance(1_000)
  }
  for (const [nth, count] of counts.entries()) {
    if (nth > 0) assert(Math.abs(count - (counts[nth - 1] ?? 0) - 20) <= 2, counts.join(' '))
  }
})

test('a job with a key is started once, and the key with another order is refused', async () => {
  const { bots, queue } = await open()
  const { replays } = bots
  await push(bots, 3)
  await confirm(bots, queue)
  const order = { ...everything, idempotencyKey: 'a' }
  const started = await bots.wait(Promise.all([1, 2, 3].map(() => replays.begin(queue, order))))
  assert.deepEqual(new Set(started.map(({ jobId }) => jobId)).size, 1)
  assert.deepEqual(
    started.map(({ isDuplicate }) => isDuplicate),
    [false, true, true],
  )
  await bots.clock.advance(1_000)
  const again = await bots.wait(replays.begin(queue, order))
  assert.deepEqual([again.isDuplicate, again.record.state], [true, 'done'])
  for (const other of [
    { ...order, rate: 1 },
    { ...order, selection: { sinceS: 1 } },
  ]) {
    await assert.rejects(bots.wait(replays.begin(queue, other)), { code: 'IDEMPOTENCY_MISMATCH' })
  }
  const last = await bots.wait(replays.begin(queue, { ...everything, idempotencyKey: 'b' }))
  assert.equal(last.isDuplicate, false)
})

test('a queue has a few jobs at once, and lists a bounded number for a week', async () => {
  const { bots, queue } = await open()
  const { replays } = bots
  await push(bots, 50)
  await confirm(bots, queue)
  const slow = { ...everything, rate: 1 }
  const jobs: StoredReplay[] = []
  for (let nth = 0; nth < replaysRunningMax; nth++) {
    jobs.push(await bots.wait(replays.begin(queue, slow)))
  }
  await assert.rejects(bots.wait(replays.begin(queue, slow)), { code: 'TOO_MANY_REPLAYS' })
  for (const { jobId } of jobs) await bots.wait(replays.cancel(queue, jobId))
  for (let nth = 0; nth < replaysKeptMax; nth++) {
    const none = { ...everything, selection: { state: 'dead' } } as const
    jobs.push(await bots.wait(replays.begin(queue, none)))
    await bots.clock.advance(200)
  }
  const ids = jobs.map(({ jobId }) => jobId)
  assert.deepEqual(
    ids,
    [...new Set(ids)].toSorted((a, b) => a - b),
  )
  const listed = await bots.wait(replays.list(queue))
  assert.deepEqual(
    listed.map(({ jobId }) => jobId),
    ids.slice(-replaysKeptMax).toReversed(),
  )
  bots.clock.jump(replayLifeMs + 60_000)
  assert.deepEqual(await bots.wait(replays.list(queue)), [])
})

test('a cancelled job pushes nothing more, also in the next process, and stays cancelled', async () => {
  const store = new MemoryStore()
  const { bots, queue } = await open({ store: () => store })
  const { replays } = bots
  await push(bots, 100)
  await confirm(bots, queue)
  const last = queue.updates.nextId - 1
  const { jobId } = await bots.wait(replays.begin(queue, { ...everything, rate: 100 }))
  await bots.clock.advance(250)
  const cancelled = await bots.wait(replays.cancel(queue, jobId))
  assert.equal(cancelled?.record.state, 'cancelled')
  const { replayed } = cancelled.record
  assert(replayed > 0 && replayed < 100)
  await bots.clock.advance(5_000)
  assert.deepEqual(await bots.wait(replays.cancel(queue, jobId)), cancelled)
  assert.equal(await bots.wait(replays.cancel(queue, jobId + 1)), undefined)
  await bots.close()
  const next = await open({ store: () => store, clock: bots.clock })
  await bots.clock.advance(5_000)
  assert.deepEqual(await pending(next.queue, last), numbers(0, replayed))
  assert.deepEqual(await stateOf(next.bots, next.queue, jobId), cancelled)
})

test('a removed bot leaves no job', async () => {
  const { bots, queue, store } = await open()
  await push(bots, 100)
  await confirm(bots, queue)
  const { jobId } = await bots.wait(bots.replays.begin(queue, { ...everything, rate: 10 }))
  await bots.clock.advance(250)
  await bots.wait(bots.registry.remove(botId))
  const stored = (): Promise<unknown> => store.getMany([kinds.replay.key(botId, jobId)])
  assert.deepEqual(await stored(), [undefined])
  await bots.clock.advance(5_000)
  assert.deepEqual(await stored(), [undefined])
  await assert.rejects(bots.wait(bots.replays.begin(queue, everything)), {
    code: 'UNKNOWN_BOT',
  })
})

test('a job whose bot is gone removes itself', async () => {
  const { bots, queue, store } = await open()
  await push(bots, 10)
  await confirm(bots, queue)
  const { jobId } = await bots.wait(bots.replays.begin(queue, { ...everything, rate: 1 }))
  await store.write([{ type: 'del', key: kinds.bot.key(botId) }], { sync: true })
  const bot = bots.registry.bots.loaded(botId)
  if (bot !== undefined) bots.registry.bots.forget(bot)
  await bots.clock.advance(5_000)
  assert.deepEqual(await store.getMany([kinds.replay.key(botId, jobId)]), [undefined])
})

test('a job ends when a new numbering has begun, because its ids are used for other updates then', async () => {
  const store = new MemoryStore()
  const first = await open({ store: () => store })
  await first.bots.clock.advance(1_000)
  const key = kinds.state.key(botId)
  const value = encodeQueueState(key, freshState(updateIdRenumber - 50))
  await store.write([{ type: 'put', key, value }], { sync: true })
  const { bots, queue } = await open({ store: () => store, clock: first.bots.clock })
  await push(bots, 60)
  await confirm(bots, queue)
  const { jobId } = await bots.wait(bots.replays.begin(queue, { ...everything, rate: 1 }))
  await bots.clock.advance(500)
  await confirm(bots, queue)
  const [id = 0] = await push(bots, 1, 900)
  assert(id < 2 ** 27)
  await bots.clock.advance(5_000)
  const { record } = await stateOf(bots, queue, jobId)
  assert.equal(record.state, 'done')
  assert.match(record.reason ?? '', /new numbering/)
  assert.deepEqual(await pending(queue), [900])
})

test('dead letters that a job replays are dead letters no more, and filtered ones stay', async () => {
  const { bots, queue } = await open()
  const { updates } = queue
  await push(bots, 3)
  await bots.push(bots.request(botId, updateOf('{"poll":{"id":"1"}}')))
  const why = { reason: 'refused', attempts: 1, lastError: 'no' } as const
  updates.addDeadLetters((await updates.pendingAfter(0, 9)).map((update) => ({ update, ...why })))
  await bots.clock.advance(100)
  await bots.wait(Promise.resolve(queue.setAllowedTypes(1)))
  const order = { ...everything, selection: { state: 'dead' } } as const
  assert.equal((await bots.wait(bots.replays.count(queue, order))).count, 4)
  const { jobId } = await bots.wait(bots.replays.begin(queue, order))
  await bots.clock.advance(200)
  assert.deepEqual(await pending(queue), numbers(0, 3))
  assert.equal(await bots.wait(updates.deadLetters.count()), 1)
  const { record } = await stateOf(bots, queue, jobId)
  assert.deepEqual([record.replayed, record.filtered], [3, 1])
  assert.equal(bots.counters.counts.dead_letters_replayed, 3)
})

test('only the dead letters that the filters select are replayed by their own call', async () => {
  const { bots, queue } = await open()
  const { updates } = queue
  await push(bots, 6)
  const why = { reason: 'refused', attempts: 1, lastError: 'no' } as const
  updates.addDeadLetters((await updates.pendingAfter(0, 9)).map((update) => ({ update, ...why })))
  await bots.clock.advance(100)
  const { replayed } = await bots.wait(
    bots.replays.allDead(queue, { hasKey: (key) => key === '=k1' }),
  )
  assert.equal(replayed.length, 2)
  assert.deepEqual(await pending(queue), [1, 4])
  assert.equal(await bots.wait(updates.deadLetters.count()), 4)
})

test('one update is replayed at once; a pending, an unknown and an unwanted one are not', async () => {
  const { bots, queue } = await open()
  const ids = await push(bots, 2)
  const replay = (updateId: number) => bots.wait(bots.replays.one(queue, updateId))
  const [first = 0, second = 0] = ids
  await assert.rejects(replay(first), { code: 'UPDATE_PENDING' })
  await confirm(bots, queue)
  const copy = await replay(second)
  assert.equal(copy, second + 1)
  assert.deepEqual(await pending(queue), [1])
  for (const unknown of [1, second + 5, 2 ** 32 - 1, 9_999_999_999]) {
    await assert.rejects(replay(unknown), { code: 'UNKNOWN_UPDATE' })
  }
  await bots.wait(Promise.resolve(queue.setAllowedTypes(2)))
  assert.equal(await replay(first), 'filtered')
  bots.isDiskLow = () => true
  await bots.wait(Promise.resolve(queue.setAllowedTypes(1)))
  await assert.rejects(replay(first), { code: 'DISK_LOW' })
})

test('a job of the /test/ queue leaves the main queue alone', async () => {
  const { bots } = await open()
  await bots.push(bots.request(botId, { isTest: true }))
  const queue = await bots.wait(bots.registry.queueOf(botId, true))
  await confirm(bots, queue)
  const { jobId } = await bots.wait(bots.replays.begin(queue, everything))
  await bots.clock.advance(200)
  assert.equal(queue.updates.pendingCount, 1)
  const main = await bots.registry.queueOf(botId, false)
  assert.equal(main.updates.pendingCount, 0)
  assert.deepEqual(await bots.wait(bots.replays.list(main)), [])
  assert.equal((await stateOf(bots, queue, jobId)).record.state, 'done')
})

function updateOf(text: string): { readonly update: Buffer } {
  return { update: Buffer.from(text) }
}
