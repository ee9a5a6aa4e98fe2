import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExpirySweeper } from '../../../../src/bots/expiry-sweeper.ts'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { deadLetterLifeMs, deadLettersPerRead } from '../../../../src/kit/limits.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { encodeQueueState } from '../../../../src/shard/records/record.ts'
import { summaryOf } from '../../../../src/queue/kept/dead-letters.ts'
import { updateIdRenumber, type UpdateQueue } from '../../../../src/queue/update-queue.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import { freshState } from '../../../support/store/shard-records.ts'

const botId = 100
const main = { botId, isTest: false }

/** A bot with room for five updates, of which `count` are dead letters. */
async function open(count: number, store: MemoryStore | FaultyStore = new MemoryStore()) {
  const bots = await BotsLife.open({ store: () => store })
  await bots.register(botId)
  const { updates } = await bots.registry.queueOf(botId, false)
  const ids = await addDeadLetters(bots, updates, count)
  return { bots, store, updates, ids }
}

async function addDeadLetters(
  bots: BotsLife,
  updates: UpdateQueue,
  count: number,
): Promise<number[]> {
  const ids: number[] = []
  for (let n = 0; n < count; n++) {
    const update = Buffer.from(`{"message":{"n":${n}}}`)
    const [id] = await bots.push(bots.request(botId, { update, orderingKey: `k${n % 2}`, ttlS: 9 }))
    const pending = await updates.pendingAfter(Number(id) - 1, 1)
    updates.addDeadLetters(
      pending.map((one) => ({ update: one, reason: 'refused', attempts: 1, lastError: 'no' })),
    )
    ids.push(Number(id))
  }
  return ids
}

/** Replays one dead letter. */
async function replay(bots: BotsLife, updateId: number, of = main): Promise<number> {
  const queue = await bots.registry.queueOf(of.botId, of.isTest)
  return bots.replays.oneDead(queue, updateId)
}

/** Replays all dead letters. */
async function replayAll(bots: BotsLife) {
  const queue = await bots.registry.queueOf(botId, false)
  const { replayed, stopped } = await bots.replays.allDead(queue, {})
  return { replayed, stopped }
}

test('a replay is a new update at the end, with the old bytes and key, and lives as long as its type says', async () => {
  const { bots, updates, ids } = await open(2)
  const [before] = await bots.push(bots.request(botId))
  await bots.clock.advance(1_000)
  const id = await bots.wait(replay(bots, ids[1] ?? 0))
  assert.equal(id, Number(before) + 1)
  const [update] = await updates.pendingAfter(Number(before), 9)
  assert.equal(update?.body().toString(), `{"update_id":${id},"message":{"n":1}}`)
  assert.equal(update?.orderingKey, '=k1')
  assert.equal(update?.expiresAtS, 1_800_000_001 + 86_400)
  const left = await bots.wait(updates.deadLetters.list({ after: 0, limit: 9 }, summaryOf))
  assert.deepEqual(
    left.deadLetters.map(({ updateId }) => updateId),
    [ids[0]],
  )
  assert.equal(bots.counters.counts.dead_letters_replayed, 1)
  assert.equal(bots.counters.counts.updates_pushed, 4)
})

test('a dead letter is replayed once, even if two calls ask for it, and an unknown one is not replayed', async () => {
  const { bots, updates, ids } = await open(1)
  const [updateId = 0] = ids
  const asked = [1, 2, 3].map(() => replay(bots, updateId))
  const outcomes = await bots.wait(Promise.allSettled(asked))
  const codes = outcomes.map((outcome) =>
    outcome.status === 'fulfilled' ? 'ok' : outcome.reason.code,
  )
  assert.deepEqual(
    codes.toSorted((a, b) => a.localeCompare(b)),
    ['ok', 'UNKNOWN_DEAD_LETTER', 'UNKNOWN_DEAD_LETTER'],
  )
  assert.equal(updates.pendingCount, 1)
  for (const unknown of [updateId, 5, 4_294_967_295, 9_999_999_999]) {
    await assert.rejects(bots.wait(replay(bots, unknown)), {
      code: 'UNKNOWN_DEAD_LETTER',
    })
  }
  await assert.rejects(replay(bots, updateId, { botId: 4711, isTest: false }), {
    code: 'UNKNOWN_BOT',
  })
})

test('all dead letters are replayed in their order, regardless of the types that the bot wants', async () => {
  const { bots, store, updates, ids } = await open(4)
  const queue = await bots.registry.queueOf(botId, false)
  Object.defineProperty(queue, 'allowedTypes', { value: 0 })
  const { replayed, stopped } = await bots.wait(replayAll(bots))
  assert.equal(stopped, undefined)
  assert.deepEqual(
    replayed.map(({ updateId }) => updateId),
    ids,
  )
  const pending = await updates.pendingAfter(0, 9)
  assert.deepEqual(
    pending.map((update) => update.body().toString()),
    replayed.map(({ newUpdateId }, n) => `{"update_id":${newUpdateId},"message":{"n":${n}}}`),
  )
  assert.deepEqual(await store.getMany(ids.map((id) => kinds.deadLetter.key(botId, id))), [
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  assert.deepEqual(await bots.wait(replayAll(bots)), {
    replayed: [],
    stopped: undefined,
  })
})

test('a replay and a count of dead letters read these, and not all updates between them', async () => {
  const store = new MemoryStore()
  const bots = await BotsLife.open({
    store: () => store,
    retention: { ms: 3_600_000, bytes: 1_000_000 },
    limits: { pendingUpdatesMax: 10_000, pendingBytesMax: 1_000_000 },
  })
  await bots.register(botId)
  const { updates } = await bots.registry.queueOf(botId, false)
  const ids = await addDeadLetters(bots, updates, 1)
  for (let n = 0; n < 6; n++) {
    await bots.push(...Array.from({ length: 1_000 }, () => bots.request(botId)))
  }
  await bots.wait(Promise.resolve(updates.advance(updates.nextId, 'confirm')))
  ids.push(...(await addDeadLetters(bots, updates, 1)))
  const range = store.range.bind(store)
  let reads = 0
  store.range = (options) => {
    reads += 1
    return range(options)
  }
  const queue = await bots.registry.queueOf(botId, false)
  const counting = bots.replays.count(queue, { selection: { state: 'dead' } })
  const { count, isComplete } = await bots.wait(counting)
  assert.deepEqual([count, isComplete], [ids.length, true])
  assert(reads < 10, `${reads}`)
  const { replayed } = await bots.wait(replayAll(bots))
  assert.deepEqual(
    replayed.map(({ updateId }) => updateId),
    ids,
  )
  assert(reads < 60, `${reads}`)
})

test('a replay that cannot go on names the dead letter at which it ended', async () => {
  const store = new MemoryStore()
  const limits = { pendingUpdatesMax: 10_000, pendingBytesMax: 1_000_000 }
  const bots = await BotsLife.open({ store: () => store, limits })
  await bots.register(botId)
  const queue = await bots.registry.queueOf(botId, false)
  const ids = await addDeadLetters(bots, queue.updates, deadLettersPerRead)
  await bots.push(bots.request(botId))
  await bots.wait(Promise.resolve(queue.updates.advance(queue.updates.nextId, 'confirm')))
  const [last = 0] = await addDeadLetters(bots, queue.updates, 1)
  let turns = 0
  const payer = {
    turn(): undefined {
      turns += 1
      if (turns > 1) throw new PostboteError('TOO_MANY_REQUESTS')
    },
    charge(): void {},
  }
  const { replayed, stopped } = await bots.wait(bots.replays.allDead(queue, {}, payer))
  assert.equal(replayed.length, ids.length)
  assert.deepEqual([stopped?.updateId, stopped?.error.code], [last, 'TOO_MANY_REQUESTS'])
})

test('a replay ends at the first dead letter for which there is no room, and fails if that is the first of all', async () => {
  const { bots, updates, ids } = await open(4)
  await bots.push(...Array.from({ length: 3 }, () => bots.request(botId)))
  const { replayed, stopped } = await bots.wait(replayAll(bots))
  assert.equal(replayed.length, 2)
  assert.deepEqual([stopped?.updateId, stopped?.error.code], [ids[2], 'QUEUE_FULL'])
  assert.equal(updates.pendingCount, 5)
  await assert.rejects(bots.wait(replayAll(bots)), { code: 'QUEUE_FULL' })
  assert.equal(await bots.wait(updates.deadLetters.count()), 2)
  bots.isDiskLow = (shard) => shard === 0
  await updates.advance(updates.nextId, 'confirm')
  await assert.rejects(bots.wait(replay(bots, ids[3] ?? 0)), {
    code: 'DISK_LOW',
  })
  assert.equal(await bots.wait(updates.deadLetters.count()), 2)
})

test('a letter of a bot that --filter excludes stays', async () => {
  const { bots, updates, ids } = await open(1)
  bots.isServed = () => false
  await assert.rejects(replay(bots, ids[0] ?? 0), {
    code: 'BOT_NOT_SERVED',
  })
  await assert.rejects(replayAll(bots), { code: 'BOT_NOT_SERVED' })
  assert.deepEqual(await updates.deadLetters.ids(), ids)
})

test('an update that is rejected again during a replay is a new dead letter and is not replayed again', async () => {
  const { bots, updates, ids } = await open(3)
  bots.lives[0]!.onCommitted = (operations) => {
    bots.registry.bots.committed(operations)
    for (const operation of operations) {
      if (operation.kind !== 'push') continue
      const pending = updates.pendingAfter(operation.updateId - 1, 1)
      if (pending instanceof Promise) throw new Error('expected to be in memory')
      updates.addDeadLetters(
        pending.map((update) => ({ update, reason: 'refused', attempts: 1, lastError: 'no' })),
      )
    }
  }
  const { replayed } = await bots.wait(replayAll(bots))
  assert.equal(replayed.length, ids.length)
  const { deadLetters } = await bots.wait(
    updates.deadLetters.list({ after: 0, limit: 9 }, summaryOf),
  )
  assert.deepEqual(
    deadLetters.map(({ updateId }) => updateId),
    replayed.map(({ newUpdateId }) => newUpdateId),
  )
})

test('a replay whose group fails leaves the dead letter and no update', async () => {
  const { bots, store, ids } = await open(1, new FaultyStore(new MemoryStore()))
  assert(store instanceof FaultyStore)
  await bots.clock.advance(20)
  store.failNextWrite('EIO')
  await assert.rejects(bots.wait(replay(bots, ids[0] ?? 0)), {
    code: 'OUTCOME_UNKNOWN',
  })
  await bots.clock.advance(2_000)
  const { queue } = await bots.wait(bots.registry.report(botId))
  assert.deepEqual([queue.pendingCount, queue.deadLetterCount], [0, 1])
  assert.equal(bots.counters.counts.dead_letters_replayed ?? 0, 0)
  await bots.wait(replay(bots, ids[0] ?? 0))
  const after = await bots.wait(bots.registry.report(botId))
  assert.deepEqual([after.queue.pendingCount, after.queue.deadLetterCount], [1, 0])
})

test('a replay begins a new numbering in the same cases as a push', async () => {
  const store = new MemoryStore()
  const { bots, ids } = await open(1, store)
  await bots.clock.advance(200_000)
  assert.equal(bots.registry.bots.loaded(botId), undefined)
  const key = kinds.state.key(botId)
  const value = encodeQueueState(key, freshState(updateIdRenumber + 1))
  await store.write([{ type: 'put', key, value }], { sync: true })
  const id = await bots.wait(replay(bots, ids[0] ?? 0))
  assert(id < 2 ** 27)
})

test('the two queues of a bot have separate dead letters', async () => {
  const { bots, ids } = await open(1)
  const { updates } = await bots.wait(bots.registry.queueOf(botId, true))
  assert.equal(await bots.wait(updates.deadLetters.count()), 0)
  await assert.rejects(bots.wait(replay(bots, ids[0] ?? 0, { botId, isTest: true })), {
    code: 'UNKNOWN_DEAD_LETTER',
  })
})

test('a removed bot loses its dead letters', async () => {
  const { bots, store, ids } = await open(2)
  await bots.wait(bots.registry.remove(botId))
  const keys = ids.map((id) => kinds.deadLetter.key(botId, id))
  assert.deepEqual(await store.getMany(keys), [undefined, undefined])
  assert.equal(bots.counters.counts.dead_letters_dropped, 2)
  await bots.register(botId)
  const { queue } = await bots.wait(bots.registry.report(botId))
  assert.equal(queue.deadLetterCount, 0)
})

test('the sweep removes dead letters after their seven days, also those of bots that are not in memory', async () => {
  const { bots, store, ids } = await open(1)
  const logged: string[] = []
  const sweeper = new ExpirySweeper({
    clock: bots.clock,
    bots: bots.registry.bots,
    log: { error: (_details, message) => void logged.push(message) },
  })
  await bots.clock.advance(240_000)
  assert.equal(bots.registry.bots.loaded(botId), undefined)
  const keys = ids.map((id) => kinds.deadLetter.key(botId, id))
  bots.clock.jump(deadLetterLifeMs - 300_000)
  await bots.clock.advance(60_000)
  assert.notDeepEqual(await store.getMany(keys), [undefined])
  bots.clock.jump(86_400_000)
  await bots.clock.advance(120_000)
  assert.deepEqual(await store.getMany(keys), [undefined])
  assert.equal(bots.counters.counts.dead_letters_expired, 1)
  assert.deepEqual(await bots.lives[0]!.shard.dueQueues({ minute: 2 ** 31, limit: 9 }), [])
  assert.deepEqual(logged, [])
  sweeper.close()
})
