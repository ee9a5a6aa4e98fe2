import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deadLetterLifeMs, deadLettersPerRead } from '../../../../src/kit/limits.ts'
import {
  deadLetterBytesMax,
  deadLettersMax,
  summaryOf,
} from '../../../../src/queue/kept/dead-letters.ts'
import { lookedRecordCostMs } from '../../../../src/queue/kept/look-payer.ts'
import { DiskEntry } from '../../../../src/queue/queued-update.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { TestPayer } from '../../../support/http/test-payer.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import type { LostReason, PendingUpdate } from '../../../../src/delivery/delivery-source.ts'
import { FaultyStore } from '../../../support/store/faulty-store.ts'
import { QueueLife } from '../../../support/queue/queue-life.ts'

const refused = { reason: 'refused', attempts: 2, lastError: 'Connection refused' } as const

/** Pushes updates with these texts, gives them up, and returns their ids. */
async function addDeadLetters(
  life: QueueLife,
  given: readonly string[],
  more: {
    readonly reason: LostReason
    readonly attempts: number
    readonly lastError?: string
  } = refused,
): Promise<number[]> {
  const operations = given.map((text) =>
    life.queue.push({
      typeNumber: text.startsWith('"poll"') ? 15 : 0,
      orderingKey: 'k',
      expiresAtS: life.clock.nowMs() / 1000 + 86_400,
      text: Buffer.from(text),
    }),
  )
  await life.life.shard.commit(operations, { waited: true })
  const [first = 0] = operations.map(({ updateId }) => updateId)
  const updates: PendingUpdate[] = []
  while (updates.length < given.length) {
    const last = updates.at(-1)?.updateId ?? first - 1
    updates.push(...(await life.queue.pendingAfter(last, given.length)))
  }
  life.queue.addDeadLetters(updates.map((update) => ({ update, lastError: undefined, ...more })))
  return operations.map(({ updateId }) => updateId)
}

function texts(count: number, bytes = 12): string[] {
  return Array.from({ length: count }, () => `"message":{}`.padEnd(bytes))
}

async function listedIds(life: QueueLife, page = { after: 0, limit: 2_000 }): Promise<number[]> {
  const { deadLetters } = await life.wait(life.queue.deadLetters.list(page, summaryOf))
  return deadLetters.map(({ updateId }) => updateId)
}

/** While `held` is a list, reads of dead letters wait; calling the functions in it lets them continue. */
class SlowStore extends MemoryStore {
  held: (() => void)[] | undefined
  override async range(options: Parameters<MemoryStore['range']>[0]) {
    const found = await super.range(options)
    const { held } = this
    const isLetters = options.gte[0] === 0x64
    if (held !== undefined && isLetters) await new Promise<void>((resolve) => held.push(resolve))
    return found
  }
}

test('a lost update leaves the queue and is kept byte for byte, with reason and time', async () => {
  const life = await QueueLife.open()
  const [id = 0] = await addDeadLetters(life, ['"poll":{"q" : "\\u00e4 \u{1f600}"}'])
  assert.equal(life.queue.pendingCount, 0)
  assert.equal(life.queue.pendingBytes, 0)
  const deadLetter = await life.wait(life.queue.deadLetters.get(id))
  assert.equal(deadLetter?.text.toString(), '"poll":{"q" : "\\u00e4 \u{1f600}"}')
  const { deadLetters, total } = await life.wait(
    life.queue.deadLetters.list({ after: 0, limit: 9 }, summaryOf),
  )
  assert.equal(total, 1)
  assert.deepEqual(deadLetters, [
    {
      updateId: id,
      typeNumber: 15,
      reason: 'refused',
      leftAtMs: 1_800_000_000_000,
      acceptedAtS: 1_800_000_000,
      attempts: 2,
      lastError: 'Connection refused',
      orderingKey: 'k',
      textBytes: 28,
      endsAtMs: 1_800_000_000_000 + deadLetterLifeMs,
    },
  ])
  assert.equal(life.counters.counts.updates_dead_lettered, 1)
  assert.equal(life.counters.counts.updates_expired ?? 0, 0)
})

test('dead letters and counts are the same after a reload and after a power loss', async () => {
  const store = new MemoryStore()
  const life = await QueueLife.open({ store })
  const ids = await addDeadLetters(life, texts(5), { reason: 'expired', attempts: 0 })
  await life.push(2)
  assert.equal(life.counters.counts.updates_expired, 5)
  await life.clock.advance(20)
  store.loseUnsynced()
  await life.reload()
  assert.equal(life.queue.pendingCount, 2)
  assert.deepEqual(await listedIds(life), ids)
  const deadLetter = await life.wait(life.queue.deadLetters.get(ids[0] ?? 0))
  assert.deepEqual(
    [deadLetter?.reason, deadLetter?.attempts, deadLetter?.lastError],
    ['expired', 0, ''],
  )
})

test('an update is always exactly one of pending and dead letter, whatever the disk has stored', async () => {
  const store = new FaultyStore(new MemoryStore())
  const life = await QueueLife.open({ store })
  await life.push(3)
  const updates = await life.queue.pendingAfter(0, 3)
  store.holdWrites()
  life.queue.addDeadLetters(updates.slice(0, 2).map((update) => ({ update, ...refused })))
  void life.clock.advance(20)
  const held = await store.waitForHeld()
  await held.fail('EIO')
  await store.releaseAll()
  await life.clock.advance(1_100)
  await life.load()
  assert.equal(life.queue.pendingCount, 3)
  assert.deepEqual(await listedIds(life), [])
  const again = await life.wait(Promise.resolve(life.queue.pendingAfter(0, 3)))
  life.queue.addDeadLetters(again.slice(0, 2).map((update) => ({ update, ...refused })))
  await life.clock.advance(20)
  await life.reload()
  assert.equal(life.queue.pendingCount, 1)
  assert.equal((await listedIds(life)).length, 2)
})

test('past a thousand dead letters the oldest are removed and counted, even from one burial and after a restart', async () => {
  const life = await QueueLife.open()
  const ids = await addDeadLetters(life, texts(3))
  await life.wait(life.queue.deadLetters.count())
  ids.push(...(await addDeadLetters(life, texts(deadLettersMax - 1))))
  assert.deepEqual(await listedIds(life), ids.slice(2))
  assert.equal(life.counters.counts.dead_letters_evicted, 2)
  await life.reload()
  assert.deepEqual(await listedIds(life), ids.slice(2))
  ids.push(...(await addDeadLetters(life, texts(deadLettersMax + 50))))
  assert.deepEqual(await listedIds(life), ids.slice(-deadLettersMax))
  assert.equal(life.counters.counts.dead_letters_evicted, 2 + deadLettersMax + 50)
  assert.equal(life.counters.counts.updates_dead_lettered, ids.length)
  const burials = life.life.committed.flatMap((operation) =>
    operation.kind === 'addDeadLetters' ? [operation.deadLetters.length] : [],
  )
  assert.deepEqual(burials, [3, deadLettersMax - 1, deadLettersMax], 'the rest need not be written')
  await life.reload()
  assert.deepEqual(await listedIds(life), ids.slice(-deadLettersMax))
})

test('dead letters have a limit in bytes', async () => {
  const bytes = 512 * 1024
  const life = await QueueLife.open({ limits: { updateBytesMax: bytes }, windowBytes: 2 ** 27 })
  const most = deadLetterBytesMax / bytes
  const ids = await addDeadLetters(life, texts(most + 3, bytes))
  assert.deepEqual(await listedIds(life), ids.slice(3))
  const [burial] = life.life.committed.filter((operation) => operation.kind === 'addDeadLetters')
  assert.equal(burial?.deadLetters.length, most, 'the rest need not be written')
  ids.push(...(await addDeadLetters(life, texts(2, bytes))))
  assert.deepEqual(await listedIds(life), ids.slice(5))
  assert.equal(life.counters.counts.dead_letters_evicted, 5)
})

test('updates that are buried while the index is read do not wait, and are not lost or counted twice', async () => {
  const store = new SlowStore()
  const life = await QueueLife.open({ store })
  const ids = await addDeadLetters(life, texts(deadLettersMax - 1))
  await life.reload()
  store.held = []
  ids.push(...(await addDeadLetters(life, texts(1))))
  await life.clock.advance(20)
  ids.push(...(await addDeadLetters(life, texts(3))))
  await life.clock.advance(20)
  assert.equal(life.queue.pendingCount, 0)
  const { held } = store
  store.held = undefined
  for (const release of held) release()
  assert.deepEqual(await listedIds(life), ids.slice(-deadLettersMax))
  assert.equal(life.counters.counts.dead_letters_evicted, 3)
  await life.clock.advance(20)
  const stored = await life.store.getMany(ids.map((id) => kinds.deadLetter.key(life.id, id)))
  assert.equal(stored.filter((value) => value !== undefined).length, deadLettersMax)
})

test('dead letters that are dropped while a list is read are not in it', async () => {
  const store = new SlowStore()
  const life = await QueueLife.open({ store })
  const ids = await addDeadLetters(life, texts(3))
  await life.wait(life.queue.deadLetters.count())
  store.held = []
  const listing = listedIds(life)
  await life.clock.advance(40)
  const { held } = store
  store.held = undefined
  assert.equal(held.length, 1)
  assert.equal(await life.wait(life.queue.deadLetters.remove(ids[1] ?? 0)), true)
  for (const release of held) release()
  assert.deepEqual(await listing, [ids[0], ids[2]])
})

test('a list is returned in pages, by id', async () => {
  const life = await QueueLife.open()
  const ids = await addDeadLetters(life, texts(450))
  assert.deepEqual(await listedIds(life, { after: 0, limit: 300 }), ids.slice(0, 300))
  const after = ids[299] ?? 0
  assert.deepEqual(await listedIds(life, { after, limit: 300 }), ids.slice(300))
  assert.deepEqual(await listedIds(life, { after: ids.at(-1) ?? 0, limit: 300 }), [])
})

test('a dropped dead letter is gone immediately and permanently, and drops only once', async () => {
  const store = new MemoryStore()
  const life = await QueueLife.open({ store })
  const ids = await addDeadLetters(life, texts(4))
  const { deadLetters } = life.queue
  const both = [deadLetters.remove(ids[1] ?? 0), deadLetters.remove(ids[1] ?? 0)]
  assert.deepEqual(await life.wait(Promise.all(both)), [true, false])
  store.loseUnsynced()
  await life.reload()
  assert.deepEqual(await listedIds(life), [ids[0], ids[2], ids[3]])
  assert.equal(await life.wait(life.queue.deadLetters.get(ids[1] ?? 0)), undefined)
  assert.equal(await life.wait(life.queue.deadLetters.removeAll()), 3)
  assert.equal(await life.wait(life.queue.deadLetters.removeAll()), 0)
  await life.reload()
  assert.deepEqual(await listedIds(life), [])
  assert.equal(life.counters.counts.dead_letters_dropped, 4)
})

test('a dead letter is gone after exactly seven days, and from disk with the next access', async () => {
  const life = await QueueLife.open()
  const [first = 0] = await addDeadLetters(life, texts(1))
  const endMs = life.clock.nowMs() + deadLetterLifeMs
  await life.clock.advance(60_000)
  const [second = 0] = await addDeadLetters(life, texts(1))
  life.clock.jump(endMs - 1 - life.clock.nowMs())
  assert.deepEqual(await listedIds(life), [first, second])
  life.clock.jump(endMs - life.clock.nowMs())
  assert.equal(await life.wait(life.queue.deadLetters.get(first)), undefined)
  assert.deepEqual(await listedIds(life), [second])
  await life.clock.advance(20)
  assert.equal(life.counters.counts.dead_letters_expired, 1)
  const stored = await life.store.getMany(
    [first, second].map((id) => kinds.deadLetter.key(life.id, id)),
  )
  assert.deepEqual(
    stored.map((value) => value !== undefined),
    [false, true],
  )
})

test('a dead letter of an earlier numbering is replaced by one with its id, and counted', async () => {
  const life = await QueueLife.open()
  const [id = 0] = await addDeadLetters(life, texts(1))
  await life.wait(life.queue.deadLetters.count())
  const update = new DiskEntry({
    updateId: id,
    typeNumber: 0,
    acceptedAtS: 5,
    expiresAtS: 9,
    orderingKey: 'new',
    text: Buffer.from('"message":{}'),
  })
  const operations = life.queue.deadLetters.addDeadLetters([{ ...refused, update }])
  await life.life.shard.commit(operations, { waited: true })
  assert.equal(life.counters.counts.dead_letters_evicted, 1)
  const { deadLetters, total } = await life.wait(
    life.queue.deadLetters.list({ after: 0, limit: 9 }, summaryOf),
  )
  assert.deepEqual([total, deadLetters.length, deadLetters[0]?.orderingKey], [1, 1, 'new'])
})

test('a damaged dead letter is left out of all lists and removed with all others', async () => {
  const life = await QueueLife.open()
  const ids = await addDeadLetters(life, texts(3))
  await life.clock.advance(20)
  const key = kinds.deadLetter.key(life.id, ids[1] ?? 0)
  await life.store.write([{ type: 'put', key, value: Buffer.from('broken') }], { sync: true })
  await life.reload()
  assert.deepEqual(await listedIds(life), [ids[0], ids[2]])
  assert.equal(await life.wait(life.queue.deadLetters.removeAll()), 2)
  assert.deepEqual(await life.store.getMany([key]), [undefined])
  assert(life.life.logged.length > 0)
})

test('an index that could not be read is read by the next call that needs it', async () => {
  class DeafStore extends MemoryStore {
    isDeaf = false
    override range(options: Parameters<MemoryStore['range']>[0]) {
      if (this.isDeaf) return Promise.reject(new Error('EIO'))
      return super.range(options)
    }
  }
  const store = new DeafStore()
  const life = await QueueLife.open({ store })
  const ids = await addDeadLetters(life, texts(2))
  await life.reload()
  await life.push(1)
  const pending = await life.wait(Promise.resolve(life.queue.pendingAfter(0, 9)))
  store.isDeaf = true
  life.queue.addDeadLetters(pending.map((update) => ({ update, ...refused })))
  await life.clock.advance(20)
  await assert.rejects(life.wait(life.queue.deadLetters.count()), { code: 'STORE_UNAVAILABLE' })
  store.isDeaf = false
  assert.deepEqual(await listedIds(life), [...ids, pending[0]?.updateId])
})

test('a queue that was dropped from memory removes nothing any more', async () => {
  const life = await QueueLife.open()
  const [id = 0] = await addDeadLetters(life, texts(1))
  const { deadLetters } = life.queue
  await life.wait(deadLetters.count())
  await life.reload()
  await assert.rejects(deadLetters.remove(id), { code: 'STORE_UNAVAILABLE' })
  assert.deepEqual(await listedIds(life), [id])
})

test('with a webhook an expired update becomes a dead letter, loaded or not, and otherwise it does not', async () => {
  const life = await QueueLife.open()
  await life.push(2, 10)
  await life.clock.advance(11_000)
  await life.queue.removeExpired()
  assert.deepEqual(await listedIds(life), [])
  await life.push(2, 10)
  await life.reload()
  await life.clock.advance(11_000)
  await life.wait(life.queue.removeExpired())
  assert.deepEqual(await listedIds(life), [])
  assert.equal(life.counters.counts.updates_expired, 4)
  life.isWebhookActive = true
  const loaded = await life.push(2, 10)
  await life.clock.advance(11_000)
  await life.queue.removeExpired()
  assert.deepEqual(await listedIds(life), loaded)
  const unloaded = await life.push(700, 10)
  const kept = await life.push(1)
  await life.reload()
  await life.clock.advance(11_000)
  await life.wait(life.queue.removeExpired())
  assert.equal(life.queue.pendingCount, kept.length)
  assert.deepEqual(await listedIds(life), [...loaded, ...unloaded])
  assert.equal(life.counters.counts.updates_expired, 706)
  assert.equal(life.counters.counts.updates_dead_lettered, 702)
  // What expires without a webhook is reported, too.
  assert.deepEqual([life.counters.counts.webhook_expired, life.lostByExpiry], [702, 706])
})

test('an update that is buried twice, or has already left the queue, becomes no second dead letter', async () => {
  const life = await QueueLife.open()
  await life.push(3)
  const [first, second, third] = await life.queue.pendingAfter(0, 9)
  assert(first && second && third)
  life.queue.remove([second])
  const lost = [first, second].map((update) => ({ update, ...refused }))
  life.queue.addDeadLetters(lost)
  life.queue.addDeadLetters(lost)
  assert.deepEqual(await listedIds(life), [first.updateId])
  await life.wait(Promise.resolve(life.queue.advance(life.queue.nextId, 'drop')))
  life.queue.addDeadLetters([{ update: third, ...refused }])
  assert.deepEqual(await listedIds(life), [first.updateId])
  assert.equal(life.counters.counts.updates_dead_lettered, 1)
})

test('each read of a list is charged for its dead letters, and the next one waits for its payer', async () => {
  const life = await QueueLife.open()
  const count = 2 * deadLettersPerRead + 1
  await addDeadLetters(life, texts(count))
  const payer = new TestPayer()
  payer.isOver = 'waits'
  const listing = life.queue.deadLetters.list({ after: 0, limit: count }, summaryOf, payer)
  for (let reads = 0; reads < 3; reads++) {
    while (payer.waiting === 0) await life.clock.advance(10)
    assert.equal(payer.charges.length, reads)
    payer.goOn()
  }
  const { deadLetters } = await life.wait(listing)
  assert.equal(deadLetters.length, count)
  const [first = 0] = payer.charges
  assert(
    first >= deadLettersPerRead * lookedRecordCostMs &&
      first < 2 * deadLettersPerRead * lookedRecordCostMs,
  )
})
