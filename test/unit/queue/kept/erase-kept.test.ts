import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Erasing, eraseKept } from '../../../../src/queue/kept/erase-kept.ts'
import { lookedRecordCostMs } from '../../../../src/queue/kept/look-payer.ts'
import type { ErasedPending } from '../../../../src/queue/queue-removals.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { TestPayer } from '../../../support/http/test-payer.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { QueueLife } from '../../../support/queue/queue-life.ts'

/** Pushes updates with these keys, one after the other. */
async function push(life: QueueLife, keys: string): Promise<number[]> {
  const pushes = keys.split('').map((key) => life.accept('"message":{}', 86_400, key))
  await life.wait(life.life.shard.commit(pushes, { waited: true }))
  return pushes.map(({ updateId }) => updateId)
}

function ofA(noted: number[] = []): Erasing {
  return {
    isMeant: ({ orderingKey }) => orderingKey === 'a',
    noted: (id) => void noted.push(id),
    counted: () => undefined,
  }
}

function erase(life: QueueLife, noted?: number[]): Promise<ErasedPending> {
  return life.wait(life.queue.erase(ofA(noted)))
}

function eraseLeft(life: QueueLife, noted?: number[]): Promise<number> {
  const { shard } = life.life
  const { floor } = life.queue
  return life.wait(eraseKept({ id: life.id, shard }, floor, ofA(noted)))
}

for (const where of ['in memory', 'on disk', 'both'] as const) {
  test(`pending updates ${where} with a key are removed, and the others stay in order`, async () => {
    const life = await QueueLife.open({ windowBytes: where === 'in memory' ? 1_000_000 : 0 })
    const ids = await push(life, 'abaab')
    if (where !== 'in memory') await life.reload()
    if (where === 'both') await life.wait(life.queue.page(2))
    const noted: number[] = []
    const erased = await erase(life, noted)
    assert.deepEqual([erased.count, [...erased.keys], erased.inFlight], [3, ['a'], []])
    assert.deepEqual(
      noted.toSorted((a, b) => a - b),
      [ids[0], ids[2], ids[3]],
    )
    assert.deepEqual([life.queue.pendingCount, life.queue.pendingBytes], [2, 24])
    assert.deepEqual(await life.store.getMany([kinds.update.key(life.id, ids[0] ?? 0)]), [
      undefined,
    ])
    assert.deepEqual(await life.wait(life.pageIds()), [ids[1], ids[4]])
    assert.equal((await erase(life)).count, 0)
    const again = await QueueLife.open({ store: life.store })
    assert.deepEqual(await again.wait(again.pageIds()), [ids[1], ids[4]])
  })
}

test('an update that is being delivered leaves the queue, and is named', async () => {
  const life = await QueueLife.open()
  const [first = 0, second = 0] = await push(life, 'ab')
  let isInFlight = true
  const lets = (update: { readonly updateId: number }): boolean =>
    update.updateId !== first || !isInFlight
  life.queue.heldBy({
    giveUpExpired: () => undefined,
    renumbered: () => undefined,
    release: lets,
    abandon: lets,
    holds: () => true,
  })
  const erased = await erase(life)
  assert.deepEqual(
    erased.inFlight.map(({ updateId }) => updateId),
    [first],
  )
  const [update] = erased.inFlight
  assert(update !== undefined && life.queue.isInFlight(update))
  isInFlight = false
  assert.equal(life.queue.isInFlight(update), false)
  life.queue.remove([update])
  assert.equal(life.queue.pendingCount, 1)
  assert.deepEqual(await life.wait(life.pageIds()), [second])
})

test('kept updates with a key are removed alone and out of runs, and the counts are right', async () => {
  const life = await QueueLife.open()
  life.retention = { ms: 3_600_000, bytes: 1_000_000 }
  const ids = await push(life, 'abaabaa')
  const [first = 0, , third = 0, , , sixth = 0] = ids
  life.queue.advance(third, 'confirm')
  life.queue.advance(sixth - 2, 'confirm')
  await life.clock.advance(50)
  life.queue.remove(await life.queue.pendingAfter(sixth - 3, 2))
  await life.clock.advance(50)
  life.queue.advance(sixth + 1, 'confirm')
  await life.clock.advance(50)
  const { shard } = life.life
  assert.equal(shard.kept.of(life.id).count, 6)
  const noted: number[] = []
  assert.equal(await eraseLeft(life, noted), 4)
  assert.equal(noted.length, 4)
  const { updates } = await life.wait(life.queue.lookBack.find({}, { after: 0, limit: 10 }))
  assert.deepEqual(
    updates.map(
      ({ updateId, state, orderingKey }) => `${updateId - first} ${orderingKey} ${state}`,
    ),
    ['1 b confirmed', '4 b delivered', '6 a pending'],
  )
  const { count, bytes } = shard.kept.of(life.id)
  assert.deepEqual({ count, bytes }, { count: 2, bytes: 24 })
  assert.deepEqual(await life.store.getMany([kinds.keptRun.key(life.id, third)]), [undefined])
  assert.equal(await eraseLeft(life), 0)
})

test('dead records below the floor, which are about to be deleted, are removed at once, and count for nothing', async () => {
  const store = new MemoryStore()
  const life = await QueueLife.open({ store })
  const [first = 0, second = 0] = await push(life, 'abb')
  const dead = await store.getMany([
    kinds.update.key(life.id, first),
    kinds.update.key(life.id, second),
  ])
  life.queue.advance(second + 1, 'confirm')
  await life.clock.advance(1_000)
  const back = [first, second].map((id, nth) => ({
    type: 'put' as const,
    key: kinds.update.key(life.id, id),
    value: dead[nth] ?? Buffer.alloc(0),
  }))
  await store.write(back, { sync: true })
  assert.equal(await eraseLeft(life), 0)
  const [gone, stays] = await store.getMany(back.map(({ key }) => key))
  assert.equal(gone, undefined)
  assert(stays !== undefined)
})

test('dead letters with a key are removed, and the others stay', async () => {
  const life = await QueueLife.open()
  life.isWebhookActive = true
  const [first = 0, second = 0] = await push(life, 'aba')
  const pending = await life.queue.pendingAfter(first - 1, 3)
  const why = { reason: 'refused', attempts: 1, lastError: 'no' } as const
  life.queue.addDeadLetters(pending.map((update) => ({ update, ...why })))
  await life.clock.advance(50)
  const noted: number[] = []
  const { deadLetters } = life.queue
  assert.equal(await life.wait(deadLetters.erase(ofA(noted))), 2)
  assert.deepEqual(noted, [first, second + 1])
  assert.deepEqual(await life.wait(deadLetters.ids()), [second])
  assert.equal(life.counters.counts.dead_letters_dropped, 2)
})

/** Does some work while its payer is over its budget, and checks that each read waits, and is charged. */
async function paysFor(
  life: QueueLife,
  records: number,
  work: (payer: TestPayer) => Promise<unknown>,
): Promise<void> {
  const payer = new TestPayer()
  payer.isOver = 'waits'
  const state = { isDone: false }
  void work(payer).then(() => (state.isDone = true))
  while (payer.waiting === 0) await life.clock.advance(10)
  assert.deepEqual(payer.charges, [])
  for (; !state.isDone; await life.clock.advance(10)) payer.goOn()
  const allMs = payer.charges.reduce((sum, each) => sum + each, 0)
  assert(allMs >= records * lookedRecordCostMs, `${allMs}`)
}

test('an erasure pays for all that it reads of a queue, wherever that is, and each part waits for its payer', async () => {
  const count = 1_200
  const life = await QueueLife.open()
  life.retention = { ms: 3_600_000, bytes: 1_000_000 }
  const kept = await life.push(count)
  await life.wait(life.queue.advance((kept.at(-1) ?? 0) + 1, 'confirm'))
  const { shard } = life.life
  const eraseLeftOf = (payer: TestPayer) =>
    eraseKept({ id: life.id, shard }, life.queue.floor, { ...ofA(), payer })
  await paysFor(life, count, eraseLeftOf)
  await life.push(count)
  await paysFor(life, count, (payer) => life.queue.erase({ ...ofA(), payer }))
  const unloaded = await QueueLife.open({ windowBytes: 0 })
  await unloaded.push(count)
  await unloaded.reload()
  await paysFor(unloaded, count, (payer) => unloaded.queue.erase({ ...ofA(), payer }))
  const { deadLetters } = life.queue
  await paysFor(life, 0, (payer) => deadLetters.erase({ ...ofA(), payer }))
})
