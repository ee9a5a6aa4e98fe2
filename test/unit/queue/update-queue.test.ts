import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { updateIdMax } from '../../../src/kit/limits.ts'
import { updateIdRenumber } from '../../../src/queue/update-queue.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { decodeQueueState, encodeQueueState } from '../../../src/shard/records/record.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { wireSlices } from '../../../src/queue/window/window.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { QueueLife } from '../../support/queue/queue-life.ts'
import { pendingUpdates } from '../../support/producers/pending-updates.ts'
import { freshState } from '../../support/store/shard-records.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

test('the first id is random in its range, and every stored update has the next id', async () => {
  const least = await QueueLife.open({ random: () => 0 })
  assert.deepEqual(await least.push(3), [2_000_001, 2_000_002, 2_000_003])
  const greatest = await QueueLife.open({ random: () => 1 - Number.EPSILON })
  assert.deepEqual(await greatest.push(1), [2 ** 27 - 1])
})

test('an update is visible only when its group is synced', async () => {
  const store = new FaultyStore(new MemoryStore())
  const life = await QueueLife.open({ store })
  store.holdWrites()
  const operation = life.accept()
  const done = life.life.shard.commit([operation], { waited: true })
  const held = await store.waitForHeld()
  assert.deepEqual(await life.pageIds(), [])
  assert.deepEqual(await life.queue.pendingAfter(0, 10), [])
  assert.equal(life.queue.pendingCount, 0)
  assert.equal(life.queue.isQuiet, false)
  await held.release()
  await done
  assert.deepEqual(await life.pageIds(), [operation.updateId])
  assert.equal(life.queue.isQuiet, true)
})

test('an offset stands for itself within the range and for the oldest update beyond it', async () => {
  const life = await QueueLife.open()
  const ids = await life.push(5)
  const { queue } = life
  const [oldest = 0, second = 0] = ids
  const next = queue.nextId
  assert.equal(queue.resolveOffset(0), oldest)
  assert.equal(queue.resolveOffset(second), second)
  assert.equal(queue.resolveOffset(next), next)
  assert.equal(queue.resolveOffset(next + 1), oldest)
  assert.equal(queue.resolveOffset(2 ** 62), oldest)
  assert.equal(queue.resolveOffset(oldest - 100_000), oldest - 100_000)
  assert.equal(queue.resolveOffset(oldest - 100_001), oldest)
  assert.equal(await queue.resolveOffset(-1), ids.at(-1))
  assert.equal(await queue.resolveOffset(-5), oldest)
  assert.equal(await queue.resolveOffset(-(2 ** 62)), oldest)
})

test('a confirm removes the updates below it, is durable within 20 ms, and is not waited for', async () => {
  const life = await QueueLife.open()
  const ids = await life.push(5)
  assert.equal(life.queue.advance(ids[2]!, 'confirm'), undefined)
  assert.deepEqual(await life.pageIds(), ids.slice(2))
  assert.equal(life.queue.isQuiet, false)
  await life.clock.advance(20)
  assert.equal(life.queue.isQuiet, true)
  await life.reload()
  assert.deepEqual(await life.pageIds(), ids.slice(2))
  assert.equal(life.counters.counts.updates_confirmed, 2)
})

test('updates that are not read stay on disk, and those that are no longer read leave memory', async () => {
  const life = await QueueLife.open()
  const ids = await life.push(10)
  assert(life.budget.usedBytes > 0)
  await life.clock.advance(61_000)
  ids.push(...(await life.push(5)))
  const loadedBytes = life.budget.usedBytes
  life.queue.releaseUnread()
  assert.equal(life.budget.usedBytes, 0)
  ids.push(...(await life.push(5)))
  assert.equal(life.budget.usedBytes, 0)
  assert.deepEqual(await life.pageIds(), ids)
  assert(life.budget.usedBytes > loadedBytes)
  assert.equal(life.queue.pendingCount, 20)
})

test('a page that is read from disk is one slice', async () => {
  const life = await QueueLife.open()
  await life.push(100)
  await life.reload()
  assert.equal(wireSlices(await life.queue.page(100)).length, 1)
})

test('confirming and clearing use no id a second time', async () => {
  const life = await QueueLife.open()
  const ids = await life.push(3)
  await life.queue.advance(life.queue.nextId, 'confirm')
  await life.reload()
  assert.equal(life.queue.pendingCount, 0)
  assert.deepEqual(await life.push(1), [ids.at(-1)! + 1])
})

test('a queue that is too deep for the window is read from disk, page by page', async () => {
  const life = await QueueLife.open({ windowBytes: 0 })
  const ids = await life.push(1_300)
  const seen: number[] = []
  for (let page = await life.pageIds(); page.length > 0; page = await life.pageIds()) {
    seen.push(...page)
    await life.queue.advance(page.at(-1)! + 1, 'confirm')
  }
  assert.deepEqual(seen, ids)
  assert.equal(life.queue.pendingCount, 0)
})

test('removing and searching for the newest cross any number of pages on disk', async () => {
  const life = await QueueLife.open({ windowBytes: 0 })
  const ids = await life.push(1_700)
  assert.equal(await life.queue.resolveOffset(-1_600), ids[100])
  assert.equal(life.budget.usedBytes, 0)
  await life.wait(life.queue.advance(ids[700]!, 'confirm'))
  assert.equal(life.queue.pendingCount, 1_000)
  assert.equal(life.budget.usedBytes, 0)
  await life.wait(life.queue.advance(ids[1_400]!, 'drop'))
  assert.deepEqual(await life.pageIds(5), ids.slice(1_400, 1_405))
  await life.reload()
  assert.equal(life.queue.pendingCount, 300)
})

test('removals that are not written yet do not count among the newest', async () => {
  const life = await QueueLife.open({ windowBytes: 100 })
  const ids = await life.push(20)
  // The window holds the first few updates. Read all, then remove some of the newest from memory only.
  await life.pageIds()
  await life.push(3)
  life.queue.remove(pendingUpdates(ids.slice(15)))
  const newest = await life.wait(life.queue.resolveOffset(-5))
  assert.equal(newest, ids[13])
})

test('a page is cut at its limit and before 4 MiB', async () => {
  const life = await QueueLife.open({
    windowBytes: 100_000_000,
    limits: { updateBytesMax: 512 * 1024 },
  })
  assert.deepEqual(await life.pageIds(), [])
  const text = `"message":{"t":"${'x'.repeat(512 * 1024 - 18)}"}`
  const operations = Array.from({ length: 9 }, () => life.accept(text))
  await life.life.shard.commit(operations, { waited: true })
  assert.equal(text.length, 512 * 1024)
  assert.equal((await life.pageIds()).length, 7)
  assert.equal((await life.pageIds(3)).length, 3)
  await life.reload()
  assert.equal((await life.pageIds()).length, 7)
})

test('while the windows of a worker hold too much, a queue keeps nothing of a page that was taken, unless it is small', async () => {
  const life = await QueueLife.open({ windowBytes: 1 })
  const text = `"message":{"t":"${'x'.repeat(900)}"}`
  const operations = Array.from({ length: 300 }, () => life.accept(text))
  await life.life.shard.commit(operations, { waited: true })
  const ids = operations.map(({ updateId }) => updateId)
  assert.deepEqual(await life.pageIds(), ids.slice(0, 100))
  // The response is made in this turn.
  assert(life.budget.usedBytes > 90_000)
  await life.clock.advance(0)
  assert.equal(life.budget.usedBytes, 0)
  for (const taken of [100, 200]) {
    await life.wait(life.queue.advance(ids[taken] ?? 0, 'confirm'))
    assert.deepEqual(await life.pageIds(), ids.slice(taken, taken + 100))
    await life.clock.advance(0)
    assert.equal(life.budget.usedBytes, 0)
  }
  await life.wait(life.queue.advance(ids[290] ?? 0, 'confirm'))
  assert.deepEqual(await life.pageIds(), ids.slice(290))
  await life.clock.advance(0)
  assert(life.budget.usedBytes > 9_000)
})

test('expired updates are never returned, loaded or not, and are counted', async () => {
  for (const windowBytes of [0, 1_000_000]) {
    const life = await QueueLife.open({ windowBytes })
    await life.push(700, 60)
    const [lasting] = await life.push(1, 600)
    await life.clock.advance(60_000)
    assert.deepEqual(await life.pageIds(1), [lasting])
    assert.equal(life.counters.counts.updates_expired, 700)
    assert.equal(life.queue.pendingCount, 1)
    await life.clock.advance(50)
    await life.reload()
    assert.equal(life.queue.pendingCount, 1)
  }
})

test('the removal of expired updates leaves the others on disk', async () => {
  const life = await QueueLife.open({ windowBytes: 0 })
  const good: number[] = []
  for (let round = 0; round < 12; round++) {
    await life.push(100, 60)
    good.push(...(await life.push(10, 600)))
  }
  await life.clock.advance(60_000)
  await life.wait(life.queue.removeExpired())
  assert.equal(life.counters.counts.updates_expired, 1_200)
  assert.equal(life.queue.pendingCount, 120)
  assert.deepEqual(await life.pageIds(), good.slice(0, 100))
})

test('a confirm of everything during a scan for expired updates counts none of them twice', async () => {
  const life = await QueueLife.open({ windowBytes: 0 })
  await life.push(1_200, 60)
  await life.clock.advance(60_000)
  const scan = life.queue.removeExpired()
  await Promise.resolve()
  await life.queue.advance(life.queue.nextId, 'confirm')
  await life.wait(scan)
  assert.equal(life.queue.pendingCount, 0)
  await life.push(1)
  await life.clock.advance(50)
  assert.equal(life.life.shard.status, 'serving')
  await life.reload()
  assert.equal(life.queue.pendingCount, 1)
})

test('a confirm of everything while a page is read from disk leaves nothing in memory', async () => {
  const life = await QueueLife.open({ windowBytes: 0 })
  await life.push(100)
  const reading = life.queue.page(10)
  await life.queue.advance(life.queue.nextId, 'confirm')
  assert.deepEqual(await reading, [])
  const later = await life.push(1)
  assert.deepEqual(await life.pageIds(), later)
  assert.equal(life.queue.pendingCount, 1)
  await life.queue.advance(life.queue.nextId, 'confirm')
  assert.equal(life.budget.usedBytes, 0)
})

test('an update that is too large, or for a full queue, is refused and leaves the queue unchanged', async () => {
  const life = await QueueLife.open({
    limits: { updateBytesMax: 20, pendingUpdatesMax: 2, pendingBytesMax: 30 },
  })
  assert.throws(() => life.accept('"message":{"long":12}'), {
    code: 'UPDATE_TOO_LARGE',
    message: 'Update too large: expected at most 20 bytes, got 21',
  })
  await life.push(2)
  assert.throws(() => life.accept(), {
    code: 'QUEUE_FULL',
    message:
      'The queue of this bot is full: it has 2 of at most 2 updates and 24 of at most 30 bytes',
  })
  life.queue.advance(life.queue.oldestId + 1, 'confirm')
  assert.throws(() => life.accept('"message":{"long":1}'), { code: 'QUEUE_FULL' })
  assert.equal(life.queue.nextId, (await life.pageIds())[0]! + 1)
  life.accept()
  assert.throws(() => life.accept(), { code: 'QUEUE_FULL' }, 'what is being synced counts too')
})

async function openAt(nextId: number): Promise<QueueLife> {
  const store = new MemoryStore()
  await store.open()
  const key = kinds.state.key(123_456)
  await store.write(
    [
      { type: 'put', key, value: encodeQueueState(key, freshState(nextId)) },
      // A dead record that a crash has left.
      { type: 'put', key: kinds.update.key(123_456, 5_000_000), value: Buffer.from('dead') },
    ],
    { sync: true },
  )
  return QueueLife.open({ store })
}

test('past 2,147,000,000 an empty queue begins a new numbering', async () => {
  const life = await openAt(updateIdRenumber)
  assert.equal(life.queue.isDueToRenumber, false)
  const [last] = await life.push(1)
  assert.equal(last, 2_147_000_000)
  assert.equal(life.queue.isDueToRenumber, false, 'it is not empty')
  life.queue.advance(life.queue.nextId, 'confirm')
  assert.equal(life.queue.isDueToRenumber, true)
  const renumbered = Promise.all([life.queue.renumber(), life.queue.renumber()])
  assert.throws(() => life.accept(), { code: 'STORE_UNAVAILABLE' })
  await life.wait(renumbered)
  const [first] = await life.push(1)
  assert.equal(first, 2_000_001 + Math.floor(0.5 * (2 ** 27 - 1 - 2_000_001 + 1)))
  assert.equal(life.queue.resolveOffset(last + 1), first, 'the old offset means the oldest')
  assert.deepEqual(await life.pageIds(), [first])
  await life.clock.advance(1_000)
  await life.reload()
  assert.deepEqual(await life.pageIds(), [first])
  const dead = await life.store.getMany([
    kinds.update.key(life.id, 5_000_000),
    kinds.update.key(life.id, last),
  ])
  assert.deepEqual(dead, [undefined, undefined])
})

test('a numbering that never ends reaches 2^31 - 2 and then refuses updates', async () => {
  const life = await openAt(updateIdMax)
  await life.push(1)
  assert.throws(() => life.accept(), { code: 'ID_SPACE_EXHAUSTED' })
})

test('a damaged record is left out, and a page of them hides nothing after it', async () => {
  const life = await QueueLife.open({ windowBytes: 0 })
  const ids = await life.push(1_100)
  const damaged = ids.slice(10, 1_050)
  life.life.missing = []
  await life.store.write(
    damaged.map((id) => ({
      type: 'put',
      key: kinds.update.key(life.id, id),
      value: Buffer.from('x'),
    })),
    { sync: true },
  )
  assert.deepEqual(await life.pageIds(), [...ids.slice(0, 10), ...ids.slice(1_050)])
  assert.equal(life.life.logged.length, damaged.length)
  assert.deepEqual(life.life.missing, [`${life.id}: ${damaged.length}`])
  await life.queue.advance(life.queue.nextId, 'confirm')
  assert.equal(life.queue.pendingCount, 0)
})

/** A queue that was read from disk, of which some updates left in the middle, and others were lost without a trace. */
async function withLost(count: number): Promise<{ life: QueueLife; left: readonly number[] }> {
  const life = await QueueLife.open()
  const ids = await life.push(10)
  const removed = await life.queue.pendingAfter(0, 10)
  life.queue.remove(removed.filter((_, nth) => nth === 2 || nth === 5))
  await life.clock.advance(1_000)
  await life.reload()
  life.life.missing = []
  const lost = ids.slice(6, 6 + count)
  const left = ids.filter((id, nth) => nth !== 2 && nth !== 5 && !lost.includes(id))
  await life.store.write(
    lost.map((id) => ({ type: 'del', key: kinds.update.key(life.id, id) })),
    { sync: true },
  )
  return { life, left }
}

test('whoever reads all of a queue reports updates that are missing, and none that have left', async () => {
  const sound = await withLost(0)
  assert.deepEqual(await sound.life.pageIds(), sound.left)
  assert.deepEqual(sound.life.life.missing, [])
  const { life, left } = await withLost(2)
  assert.deepEqual(await life.pageIds(), left)
  assert.deepEqual(life.life.missing, [`${life.id}: 2`])
  await life.push(1)
  await life.pageIds()
  assert.equal(life.life.missing?.length, 1)
  // A webhook reads past the window.
  const webhook = await withLost(1)
  webhook.life.isWebhookActive = true
  const read = await webhook.life.queue.pendingAfter(0, 100)
  assert.equal(read.length, webhook.left.length)
  assert.deepEqual(webhook.life.life.missing, [`${life.id}: 1`])
  // And so does the sweep of what expires.
  const swept = await withLost(1)
  await swept.life.wait(swept.life.queue.removeExpired())
  assert.deepEqual(swept.life.life.missing, [`${life.id}: 1`])
})

test('a drop by setWebhook includes updates that have an id and are not synced yet', async () => {
  const life = await QueueLife.open()
  await life.push(1)
  const operation = life.accept()
  const done = life.life.shard.commit([operation], { waited: true })
  const [dropped] = await life.queue.drop(life.queue.nextId)
  await done
  assert.equal(dropped?.removedCount, 2)
  assert.equal(life.queue.pendingCount, 0)
  await life.life.shard.commit([dropped], { waited: true })
})

test('a queue that was dropped from memory holds nothing and changes nothing', async () => {
  const life = await QueueLife.open()
  const ids = await life.push(3)
  const { queue } = life
  const reading = queue.page(10)
  queue.detach()
  await reading
  assert.equal(life.budget.usedBytes, 0)
  assert.throws(() => life.accept(), { code: 'STORE_UNAVAILABLE' })
  queue.advance(ids[1]!, 'confirm')
  queue.remove(pendingUpdates(ids))
  await assert.rejects(async () => queue.advance(queue.nextId + 1, 'drop'), {
    code: 'STORE_UNAVAILABLE',
  })
  assert.deepEqual(await queue.page(10), [])
  await settle()
  await life.load()
  assert.deepEqual(await life.pageIds(), ids)
})

test('delivered entries after one that is stuck do not accumulate', async () => {
  const life = await QueueLife.open()
  const [stuck] = await life.push(1)
  for (let round = 0; round < 20; round++) life.queue.remove(pendingUpdates(await life.push(100)))
  assert.deepEqual(await life.pageIds(), [stuck])
  await life.clock.advance(50)
  await life.reload()
  assert.deepEqual(await life.pageIds(), [stuck])
})

test('whatever happens at the same time, memory and disk agree in the end', async () => {
  const words = fc.constantFrom('push', 'confirm', 'drop', 'newest', 'page', 'expire', 'deliver')
  const steps = fc.array(fc.tuple(words, fc.double({ min: 0, max: 1, noNaN: true })), {
    maxLength: 30,
  })
  const property = fc.asyncProperty(
    fc.constantFrom(0, 2_000, 1_000_000),
    steps,
    async (windowBytes, chosen) => {
      const life = await QueueLife.open({ windowBytes })
      await life.push(600, 60)
      await life.push(600, 120)
      await life.clock.advance(60_000)
      const running = chosen.map(([kind, share]) => run(life, kind, share))
      await life.wait(Promise.all(running))
      await life.clock.advance(5_000)
      await assertAgreement(life)
    },
  )
  await fc.assert(property, { numRuns: drawnRuns(40) })
})

async function run(life: QueueLife, kind: string, share: number): Promise<void> {
  const { queue } = life
  for (let turn = 0; turn < share * 20; turn++) await Promise.resolve()
  const to = queue.oldestId + Math.round(share * (queue.nextId - queue.oldestId))
  if (kind === 'push') await life.push(Math.round(share * 50), 600)
  if (kind === 'confirm') await queue.advance(await queue.resolveOffset(to), 'confirm')
  if (kind === 'drop') await queue.advance(to, 'drop')
  if (kind === 'newest') {
    await queue.advance(await queue.resolveOffset(-Math.round(share * 900) - 1), 'drop')
  }
  if (kind === 'page') await queue.page(Math.round(share * 99) + 1)
  if (kind === 'expire') await queue.removeExpired()
  if (kind === 'deliver') {
    const pending = await queue.pendingAfter(to, 50)
    queue.remove(pending)
  }
}

async function assertAgreement(life: QueueLife): Promise<void> {
  const { queue } = life
  assert.equal(life.life.shard.status, 'serving')
  const key = kinds.state.key(life.id)
  const [value] = await life.store.getMany([key])
  const state = decodeQueueState({ key, value: value! })
  assert.equal(state.liveCount, queue.pendingCount)
  assert.equal(state.liveBytes, queue.pendingBytes)
  assert.equal(state.nextId, queue.nextId)
  const stored = await life.store.range({
    gte: kinds.update.key(life.id, state.floor),
    lt: kinds.update.key(life.id, 2 ** 31),
    limit: 10_000,
  })
  assert.equal(stored.length, queue.pendingCount)
  const seen: number[] = []
  for (let page = await queue.pendingAfter(0, 100); page.length > 0; ) {
    seen.push(...page.map(({ updateId }) => updateId))
    page = await queue.pendingAfter(seen.at(-1)!, 100)
  }
  assert.equal(seen.length, queue.pendingCount)
}
