import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dropKept } from '../../../../src/queue/kept/drop-kept.ts'
import { type LookBack, lookPageRecords } from '../../../../src/queue/kept/look-back.ts'
import { lookedRecordCostMs } from '../../../../src/queue/kept/look-payer.ts'
import { keysMeantBy } from '../../../../src/queue/check/ordering-key.ts'
import { trimKept } from '../../../../src/queue/kept/kept-trimmer.ts'
import { kinds } from '../../../../src/shard/kinds.ts'
import { emptyQueueState, encodeQueueState } from '../../../../src/shard/records/record.ts'
import { recountSkippedIds } from '../../../../src/shard/recovery/recount.ts'
import { TestPayer } from '../../../support/http/test-payer.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'
import { QueueLife } from '../../../support/queue/queue-life.ts'

type Newest = Awaited<ReturnType<LookBack['findNewest']>>

const textBytes = '"message":{}'.length

/** Opens a queue that keeps what leaves it. */
async function openKeeping(bytes = 1_000_000): Promise<QueueLife> {
  const life = await QueueLife.open()
  life.retention = { ms: 3_600_000, bytes }
  return life
}

async function statesOf(life: QueueLife): Promise<string[]> {
  const { updates } = await life.wait(life.queue.lookBack.find({}, { after: 0, limit: 1_000 }))
  return updates.map(({ updateId, state }) => `${updateId - life.queue.nextId} ${state}`)
}

/** What a queue keeps, without where its last run ends. */
function keptBy({ id, life: { shard } }: QueueLife): { count: number; bytes: number } {
  const { count, bytes } = shard.kept.of(id)
  return { count, bytes }
}

async function damage(life: QueueLife, ...damaged: readonly Buffer[]): Promise<void> {
  const value = Buffer.from('broken')
  const puts = damaged.map((key) => ({ type: 'put', key, value }) as const)
  await life.store.write(puts, { sync: true })
}

/** Reads the shard as after a crash of its process. */
async function crash(life: QueueLife): Promise<QueueLife> {
  await life.clock.advance(1_000)
  const next = await QueueLife.open({ store: life.store })
  next.retention = life.retention
  return next
}

test('what became of each update is known, also after a crash, and nothing that has left is pending', async () => {
  const life = await openKeeping()
  const [first = 0, , third = 0] = await life.push(5)
  await life.wait(life.queue.advance(first + 1, 'confirm') ?? Promise.resolve())
  life.queue.remove(await life.queue.pendingAfter(third - 1, 1))
  await life.wait(life.queue.dropOne(third + 1))
  const states = ['-5 confirmed', '-4 pending', '-3 delivered', '-2 dropped', '-1 pending']
  await life.clock.advance(50)
  assert.deepEqual(await statesOf(life), states)
  const again = await crash(life)
  assert.deepEqual(await statesOf(again), states)
  assert.deepEqual(await again.pageIds(), [first + 1, first + 4])
  assert.equal(again.life.shard.kept.of(life.id).count, 3)
})

test('without retention, nothing more is stored than the queue itself', async () => {
  const life = await QueueLife.open()
  const [first = 0, second = 0] = await life.push(3)
  life.queue.advance(second, 'confirm')
  life.queue.remove(await life.queue.pendingAfter(first, 1))
  await life.clock.advance(1_000)
  const found = await life.store.range({ gte: Buffer.from('a'), lt: Buffer.from('z'), limit: 99 })
  assert.deepEqual(
    found.map(({ key }) => String.fromCharCode(key[0] ?? 0)),
    ['s', 'u', 'x'],
  )
})

test('a look at many updates goes on in steps', async () => {
  const life = await openKeeping()
  await life.push(3_000)
  const filter = { hasKey: () => false }
  const step = await life.wait(life.queue.lookBack.find(filter, { after: 0, limit: 10 }))
  assert.equal(step.updates.length, 0)
  assert(step.after !== undefined && step.after < life.queue.nextId)
  const after = step.after
  const end = await life.wait(life.queue.lookBack.find(filter, { after, limit: 10 }))
  assert.deepEqual(end, { updates: [], after: undefined })
})

test('each read of a look is charged for its records, none reads more than a page, and the next one waits for its payer', async () => {
  const count = 1_000
  const filter = { hasKey: () => false }
  for (const how of ['find', 'findNewest'] as const) {
    const life = await openKeeping()
    const ids = await life.push(count)
    const payer = new TestPayer()
    const { lookBack, nextId } = life.queue
    payer.isOver = 'waits'
    const after = (ids[0] ?? 0) - 1
    const look =
      how === 'find'
        ? lookBack.find(filter, { after, limit: 10 }, payer)
        : lookBack.findNewest(filter, { before: nextId, limit: 10 }, payer)
    const state = { isDone: false }
    void look.then(() => (state.isDone = true))
    let reads = 0
    while (!state.isDone) {
      if (payer.waiting > 0) {
        assert.equal(payer.charges.length, reads, how)
        reads += 1
      }
      payer.goOn()
      await life.clock.advance(10)
    }
    assert(reads >= count / lookPageRecords, `${reads}`)
    const pageMs = 2 * lookPageRecords * lookedRecordCostMs
    for (const costMs of payer.charges) assert(costMs < pageMs, `${costMs}`)
    const allMs = payer.charges.reduce((sum, each) => sum + each, 0)
    assert(allMs >= count * lookedRecordCostMs, `${allMs}`)
  }
})

test('the newest come first below an id, in steps, whatever has become of them', async () => {
  const life = await openKeeping()
  const ids = [...(await life.push(700))]
  life.queue.advance((ids[300] ?? 0) + 1, 'confirm')
  life.queue.remove(await life.queue.pendingAfter((ids[350] ?? 0) - 1, 3))
  await life.clock.advance(50)
  const all: number[] = []
  const newestBelow = (before: number): Promise<Newest> =>
    life.wait(life.queue.lookBack.findNewest({}, { before, limit: 90 }))
  for (let step = await newestBelow(life.queue.nextId); ; ) {
    all.push(...step.updates.map(({ updateId }) => updateId))
    if (step.before === undefined) break
    step = await newestBelow(step.before)
  }
  assert.deepEqual(all, ids.toReversed())
  const filter = { state: 'delivered' as const }
  const found = await life.wait(
    life.queue.lookBack.findNewest(filter, { before: life.queue.nextId, limit: 2 }),
  )
  assert.deepEqual(
    [found.updates.map(({ updateId }) => updateId), found.before],
    [[ids[352], ids[351]], ids[351]],
  )
})

test('a look for the newest at many updates goes on in steps', async () => {
  const life = await openKeeping()
  await life.push(3_000)
  const filter = { hasKey: () => false }
  const { nextId } = life.queue
  const step = await life.wait(
    life.queue.lookBack.findNewest(filter, { before: nextId, limit: 10 }),
  )
  assert.equal(step.updates.length, 0)
  assert(step.before !== undefined && step.before > nextId - 3_000)
  const { before } = step
  const end = await life.wait(life.queue.lookBack.findNewest(filter, { before, limit: 10 }))
  assert.deepEqual(end, { updates: [], before: undefined })
})

test('what is too old goes and its records with it, a run as a whole', async () => {
  const life = await openKeeping()
  const [first = 0, second = 0, third = 0] = await life.push(4)
  life.queue.advance(third, 'confirm')
  await life.clock.advance(10_000)
  const leftAtMs = life.clock.nowMs()
  life.queue.remove(await life.queue.pendingAfter(third - 1, 1))
  await life.clock.advance(50)
  const { shard } = life.life
  const bounds = { leftFromMs: life.clock.nowMs() - 5_000, bytes: 1_000 }
  const oldestMs = await life.wait(trimKept({ id: life.id, shard }, bounds))
  assert.equal(oldestMs, leftAtMs)
  assert.deepEqual(await statesOf(life), ['-2 delivered', '-1 pending'])
  await life.clock.advance(1_000)
  const gone = [
    kinds.update.key(life.id, first),
    kinds.update.key(life.id, second),
    kinds.keptRun.key(life.id, first),
  ]
  assert.deepEqual(await life.store.getMany(gone), [undefined, undefined, undefined])
  assert.deepEqual(keptBy(life), { count: 1, bytes: textBytes })
  await life.wait(trimKept({ id: life.id, shard }, { leftFromMs: Infinity, bytes: 0 }))
  const rest = [kinds.keptState.key(life.id), kinds.leftUpdate.key(life.id, third)]
  assert.deepEqual(await life.store.getMany(rest), [undefined, undefined])
})

test('a queue does not keep more than 1.3 times its bytes, however it is used', async () => {
  const bytesMax = 1_000 * textBytes
  const life = await openKeeping(bytesMax)
  let most = 0
  for (let round = 0; round < 60; round++) {
    await life.push(100)
    const page = await life.queue.page(100)
    if (round % 2 === 0) life.queue.remove([...page])
    else life.queue.advance((page.at(-1)?.updateId ?? 0) + 1, 'confirm')
    await life.clock.advance(50)
    most = Math.max(most, life.life.shard.kept.bytes)
  }
  assert(most > bytesMax && most <= 1.3 * bytesMax, `${most / bytesMax}`)
})

test('what one confirm adds above the bound of the queue is trimmed although nothing leaves afterwards', async () => {
  const life = await openKeeping(1_000 * textBytes)
  const [first = 0] = await life.push(1_800)
  for (let end = first + 900; end <= first + 1_800; end += 900) {
    await life.wait(life.queue.advance(end, 'confirm') ?? Promise.resolve())
  }
  await life.clock.advance(1_000)
  assert.deepEqual(keptBy(life), { count: 900, bytes: 900 * textBytes })
})

test('an update is removed out of its run, and the last one with the run', async () => {
  const life = await openKeeping()
  const [first = 0, second = 0] = await life.push(3)
  life.queue.advance(second + 1, 'confirm')
  await life.clock.advance(50)
  const { shard } = life.life
  assert.equal(await life.wait(dropKept(shard, life.id, second)), true)
  assert.equal(await life.wait(dropKept(shard, life.id, second)), false)
  assert.deepEqual(await statesOf(life), ['-3 confirmed', '-1 pending'])
  assert.equal(await life.wait(dropKept(shard, life.id, first)), true)
  assert.equal(shard.kept.of(life.id).count, 0)
  assert.deepEqual(await life.store.getMany([kinds.keptRun.key(life.id, first)]), [undefined])
})

test('if the ids and counts are damaged, the count begins after the last run, and what is kept is counted, too', async () => {
  const life = await openKeeping()
  const [first = 0] = await life.push(4)
  life.queue.advance(first + 2, 'confirm')
  life.queue.remove(await life.queue.pendingAfter(first + 1, 1))
  await life.clock.advance(1_000)
  await damage(life, kinds.state.key(life.id), kinds.keptState.key(life.id))
  const again = await crash(life)
  assert.deepEqual(await again.pageIds(), [first + 3])
  assert(again.queue.nextId > first + recountSkippedIds)
  assert.deepEqual(keptBy(again), { count: 3, bytes: 3 * textBytes })
})

/** Each of them tells by itself what has left. */
const tellers = ['s', 'l', 'n'] as const

test('what has left is pending again only if all three records that tell it are damaged at once', async () => {
  for (let mask = 1; mask < 8; mask++) {
    const damaged = tellers.filter((_teller, nth) => (mask & (1 << nth)) !== 0)
    const life = await openKeeping()
    const [first = 0] = await life.push(5)
    for (const end of [first + 2, first + 4]) {
      life.queue.advance(end, 'confirm')
      await life.clock.advance(50)
    }
    await life.clock.advance(1_000)
    const keyOf = {
      s: kinds.state.key(life.id),
      l: kinds.keptRun.key(life.id, first + 2),
      n: kinds.keptState.key(life.id),
    } as const
    await damage(life, ...damaged.map((kind) => keyOf[kind]))
    let again = await crash(life)
    const pending = mask === 7 ? [first + 2, first + 3, first + 4] : [first + 4]
    assert.deepEqual(await again.pageIds(), pending, damaged.join())
    // What was counted anew tells it again.
    for (const kind of ['s', 'n'] as const) {
      await damage(life, keyOf[kind])
      again = await crash(again)
      assert.deepEqual(await again.pageIds(), pending, `${damaged.join()}, then ${kind}`)
    }
    const isRunLost = damaged.includes('l')
    assert.deepEqual(keptBy(again).count, isRunLost ? 2 : 4, damaged.join())
  }
})

test('an update that is kept alone is not pending again because its deletion was lost', async () => {
  const life = await openKeeping()
  const [first = 0, second = 0] = await life.push(2)
  const key = kinds.update.key(life.id, second)
  const [value] = await life.store.getMany([key])
  assert(value !== undefined)
  life.queue.remove(await life.queue.pendingAfter(first, 1))
  await life.clock.advance(1_000)
  await life.store.write([{ type: 'put', key, value }], { sync: true })
  await damage(life, kinds.state.key(life.id))
  const again = await crash(life)
  assert.deepEqual(await again.pageIds(), [first])
  assert.deepEqual((await statesOf(again)).length, 2)
  assert.deepEqual(await life.store.getMany([key]), [undefined])
})

test('a new id is above those of all that is kept', async () => {
  const store = new MemoryStore()
  const { id: queue } = await QueueLife.open({ store })
  const key = kinds.state.key(queue)
  // Far above those at which a numbering may begin.
  const value = encodeQueueState(key, emptyQueueState(2 ** 30))
  await store.write([{ type: 'put', key, value }], { sync: true })
  const life = await QueueLife.open({ store })
  life.retention = { ms: 3_600_000, bytes: 1_000_000 }
  const ids = await life.push(2)
  life.queue.remove(await life.queue.pendingAfter(0, 2))
  await life.clock.advance(1_000)
  await damage(life, kinds.state.key(life.id))
  const again = await crash(life)
  assert(again.queue.nextId > (ids[1] ?? 0))
})

test('damaged counts are counted again before anything is added, and by the first look at all of them', async () => {
  for (const isLoaded of [false, true]) {
    const life = await openKeeping()
    const [first = 0] = await life.push(3)
    life.queue.advance(first + 2, 'confirm')
    await life.clock.advance(1_000)
    await damage(life, kinds.keptState.key(life.id))
    const again = await crash(life)
    const { shard } = again.life
    if (isLoaded) again.queue.advance(first + 3, 'confirm')
    await again.clock.advance(50)
    await again.wait(shard.readKept())
    const count = isLoaded ? 3 : 2
    assert.deepEqual(keptBy(again), { count, bytes: count * textBytes })
    assert.deepEqual(keptBy(await crash(again)), { count, bytes: count * textBytes })
  }
})

test('what the sweep of leftovers deletes is never kept', async () => {
  const life = await openKeeping()
  const ids = await life.push(4)
  life.queue.advance((ids[1] ?? 0) + 1, 'confirm')
  await life.clock.advance(1_000)
  const again = await crash(life)
  await again.wait(again.life.shard.reclaimLeftovers(life.id))
  assert.deepEqual((await statesOf(again)).length, 4)
})

test('a damaged run costs no other run: neither the sweep of leftovers nor a count takes what these keep', async () => {
  for (const damaged of [0, 1]) {
    const life = await openKeeping()
    const [first = 0] = await life.push(5)
    for (const end of [first + 2, first + 4]) {
      life.queue.advance(end, 'confirm')
      await life.clock.advance(50)
    }
    const key = kinds.keptRun.key(life.id, first + damaged * 2)
    await damage(life, key, ...(damaged === 1 ? [kinds.state.key(life.id)] : []))
    const again = await crash(life)
    await again.wait(again.life.shard.reclaimLeftovers(life.id))
    const { updates } = await again.wait(again.queue.lookBack.find({}, { after: 0, limit: 9 }))
    const states = updates.map(({ updateId, state }) => `${updateId - first} ${state}`)
    const kept = damaged === 0 ? ['2 confirmed', '3 confirmed'] : ['0 confirmed', '1 confirmed']
    assert.deepEqual(states, [...kept, '4 pending'])
  }
})

test('a new numbering begins without what was kept of the old one', async () => {
  const life = await QueueLife.open({ store: new MemoryStore(), random: () => 0.25 })
  life.retention = { ms: 3_600_000, bytes: 1_000 }
  const [first = 0, second = 0] = await life.push(2)
  life.queue.advance(second, 'confirm')
  life.queue.remove(await life.queue.pendingAfter(first, 1))
  await life.clock.advance(50)
  await life.wait(life.queue.renumber())
  assert.deepEqual(await statesOf(life), [])
  assert.equal(life.life.shard.kept.of(life.id).count, 0)
})

test('a trim that is under way deletes nothing of a new numbering with the same ids', async () => {
  let random = 0.25
  const life = await QueueLife.open({ store: new MemoryStore(), random: () => random })
  life.retention = { ms: 3_600_000, bytes: 1_000 }
  const [first = 0] = await life.push(9_000)
  await life.wait(life.queue.advance(first + 9_000, 'confirm') ?? Promise.resolve())
  await life.clock.advance(50)
  const { shard } = life.life
  const bounds = { leftFromMs: Number.POSITIVE_INFINITY, bytes: 0 }
  // Ids that the trim deletes last.
  random += 8_900 / 2 ** 27
  const trimmed = trimKept({ id: life.id, shard }, bounds)
  await life.wait(life.queue.renumber())
  await trimmed
  const ids = await life.push(2)
  assert(ids[0] !== undefined && ids[0] > first && ids[0] < first + 9_000)
  await life.clock.advance(5_000)
  const stored = await life.store.getMany(ids.map((id) => kinds.update.key(life.id, id)))
  assert(stored.every((value) => value !== undefined))
})

test('a key is found as it was pushed, as it is stored, and by the ids that keys are derived from', () => {
  const stored = ['m42', '=m42', '=42', 'm421', 'y42', 'bc1/42', 'bc1/43', 'q42', '=chat.id=42', '']
  assert.deepEqual(stored.filter(keysMeantBy('42')), ['=42'])
  assert.deepEqual(stored.filter(keysMeantBy('m42')), ['m42', '=m42'])
  assert.deepEqual(stored.filter(keysMeantBy('chat.id=42')), [
    'm42',
    'y42',
    'bc1/42',
    '=chat.id=42',
  ])
  assert.deepEqual(stored.filter(keysMeantBy('business_connection_id=c1')), ['bc1/42', 'bc1/43'])
  assert.deepEqual(stored.filter(keysMeantBy('from.id=42')), ['q42'])
})

test('a run that ends before it begins, as an import may bring it, is damaged: what it has is not deleted by numbers that run backwards', async () => {
  const life = await openKeeping()
  const [first = 0, second = 0] = await life.push(3)
  life.queue.advance(second, 'confirm')
  await life.clock.advance(50)
  const backwards = {
    reason: 'confirmed',
    leftAtMs: 1,
    end: first - 7,
    count: 1,
    bytes: 12,
  } as const
  await life.store.write([kinds.keptRun.put(backwards, life.id, first)], { sync: true })
  const { shard } = life.life
  await life.wait(trimKept({ id: life.id, shard }, { leftFromMs: Infinity, bytes: 0 }))
  const [pushed] = await life.wait(life.push())
  assert.equal(life.queue.pendingCount, 3)
  assert.ok(pushed)
})

test('what is kept is counted by its runs where its own record ends before them: nothing of them is pending again', async () => {
  const life = await openKeeping()
  const [first = 0, second = 0] = await life.push(3)
  life.queue.advance(second, 'confirm')
  await life.clock.advance(50)
  const { count, bytes } = keptBy(life)
  const early = kinds.keptState.put({ count, bytes, end: first - 7 }, life.id)
  await life.store.write([early], { sync: true })
  await damage(life, kinds.state.key(life.id))
  const again = await crash(life)
  assert.deepEqual(await again.pageIds(), [second, second + 1])
  assert.deepEqual(keptBy(again), { count, bytes })
})
