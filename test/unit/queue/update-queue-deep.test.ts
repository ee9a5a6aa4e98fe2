/**
 * Limits what a deep queue may do in one turn. The tests measure no time: the work of one turn blocks the
 * event loop, and it shows in how much one write deletes or one read returns.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { queuePageIds } from '../../../src/queue/queue-reader.ts'
import { reclaimedPerWriteMax } from '../../../src/shard/reclaimer.ts'
import { groupCostMax } from '../../../src/shard/group-commit.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import type { RangeOptions, StoreEntry } from '../../../src/store/store.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { QueueLife } from '../../support/queue/queue-life.ts'

/** Half of it is still more than one write or one read may have. */
const depth = 12_000
const pushedAtATime = 500

/** Records the size of the largest read. */
class CountingStore extends MemoryStore {
  readMax = 0

  override async range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    const found = await super.range(options)
    this.readMax = Math.max(this.readMax, found.length)
    return found
  }
}

async function openDeep({ ttlS = 86_400, windowBytes = 100_000_000 } = {}) {
  const memory = new CountingStore()
  const store = new FaultyStore(memory)
  const life = await QueueLife.open({ store, windowBytes })
  let firstId = 0
  for (let pushed = 0; pushed < depth; pushed += pushedAtATime) {
    const [id = 0] = await life.push(pushedAtATime, ttlS)
    firstId ||= id
  }
  store.writes.length = 0
  memory.readMax = 0
  const assertBounded = (): void => {
    const most = Math.max(...store.writes.map(({ operations }) => operations.length))
    // In addition to the updates it was cut at, a group contains the expiry buckets and states of its queues.
    assert(most <= groupCostMax * 2 + reclaimedPerWriteMax, `${most} records were written at once`)
    assert(memory.readMax <= queuePageIds, `${memory.readMax} records were read at once`)
  }
  /** Waits until nothing is left to delete. */
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 50; round++) await life.clock.advance(100)
  }
  return { life, firstId, assertBounded, settle }
}

for (const [place, windowBytes] of [
  ['in memory', 100_000_000],
  ['on disk', 10_000],
] as const) {
  test(`dropping 12,000 updates that are ${place} deletes them a few at a time`, async () => {
    const { life, assertBounded, settle } = await openDeep({ windowBytes })
    await life.wait(life.queue.advance(life.queue.nextId, 'drop'))
    assert.equal(life.queue.pendingCount, 0)
    assert.equal(life.counters.counts.updates_dropped, depth)
    await settle()
    assertBounded()
  })

  test(`offsets that skip half and then almost all of 12,000 updates ${place} read and delete a few at a time`, async () => {
    const { life, firstId, assertBounded, settle } = await openDeep({ windowBytes })
    await life.wait(life.queue.advance(firstId + depth / 2, 'confirm') ?? Promise.resolve())
    assert.equal(life.queue.pendingCount, depth / 2)
    const to = await life.wait(life.queue.resolveOffset(-1_000))
    await life.wait(life.queue.advance(to, 'confirm') ?? Promise.resolve())
    assert.equal(life.queue.pendingCount, 1_000)
    await settle()
    assertBounded()
  })

  test(`12,000 updates ${place} that expire at once are removed a few at a time`, async () => {
    const { life, assertBounded, settle } = await openDeep({ windowBytes, ttlS: 30 })
    life.clock.jump(31_000)
    await life.wait(life.queue.removeExpired())
    assert.equal(life.queue.pendingCount, 0)
    assert.equal(life.counters.counts.updates_expired, depth)
    await settle()
    assertBounded()
  })

  test(`a poll that meets 12,000 expired updates ${place} removes them a few at a time`, async () => {
    const { life, assertBounded, settle } = await openDeep({ windowBytes, ttlS: 30 })
    life.clock.jump(31_000)
    assert.deepEqual(await life.wait(Promise.resolve(life.queue.page(100))), [])
    assert.equal(life.queue.pendingCount, 0)
    await settle()
    assertBounded()
  })
}
