/**
 * Tests a webhook on a real queue: which updates are delivered, and how much memory that takes, while the update at the
 * head of the queue cannot be delivered. The dispatcher is reduced to its decisions.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeliveryState } from '../../../src/delivery/state.ts'
import { queuePageUpdates } from '../../../src/queue/queue-reader.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import type { RangeOptions, StoreEntry } from '../../../src/store/store.ts'
import { QueueLife } from '../../support/queue/queue-life.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'

class Webhook {
  readonly life: QueueLife
  readonly state: DeliveryState
  readonly delivered: number[] = []
  stuckKey: string | undefined = 'stuck'
  usedBytesMax = 0
  #isAtEnd = false

  constructor(life: QueueLife) {
    this.life = life
    this.state = new DeliveryState({ maxConnections: 40, random: () => 0, afterId: 0 })
    life.queue.heldBy({
      holds: (update) => this.state.holds(update),
      release: (update) => this.state.release(update),
      abandon: (update) => this.state.release(update),
      renumbered: () => undefined,
      giveUpExpired: () => {
        this.state.expire(life.clock.nowMs())
        life.queue.addDeadLetters(this.state.takeExpired())
      },
    })
  }

  /** Delivers until nothing is left to read or to send now. Returns the number of reads from disk. */
  async run(): Promise<number> {
    let diskReads = 0
    this.state.pushed()
    for (this.#isAtEnd = false; !this.#isAtEnd || this.state.readyLanes > 0; ) {
      const after = this.state.nextRead()
      this.#isAtEnd = after === undefined
      if (after !== undefined) {
        const page = this.life.queue.pendingAfter(after, 128)
        if (page instanceof Promise) diskReads += 1
        this.state.loaded(await page)
      }
      this.#send()
      this.usedBytesMax = Math.max(this.usedBytesMax, this.life.budget.usedBytes)
    }
    return diskReads
  }

  #send(): void {
    const { clock, queue } = this.life
    const now = { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() }
    this.state.due(now.monotonicMs)
    for (let lane = this.state.take(now); lane !== undefined; lane = this.state.take(now)) {
      const update = lane.first
      assert(update !== undefined)
      const { updateId } = update
      assert(update.body().toString().startsWith(`{"update_id":${updateId},`))
      if (lane.key === this.stuckKey) {
        this.state.failed(lane, 60_000, now)
      } else {
        this.delivered.push(updateId)
        this.state.delivered(lane)
        queue.remove([update])
      }
    }
  }
}

async function pushTo(life: QueueLife, keys: readonly string[], ttlS?: number): Promise<number[]> {
  const operations = keys.map((key) => life.accept('"message":{}', ttlS, key))
  await life.life.shard.commit(operations, { waited: true })
  return operations.map(({ updateId }) => updateId)
}

function keysOf(count: number): string[] {
  return Array.from({ length: count }, (_value, index) => `key ${index % 500}`)
}

test('a stuck update with 40,000 after it delays none of them and takes no memory', async () => {
  const life = await QueueLife.open({ windowBytes: 200_000 })
  const [stuck] = await pushTo(life, ['stuck'])
  const healthy: number[] = []
  for (let round = 0; round < 3; round++) healthy.push(...(await pushTo(life, keysOf(10_000))))
  const webhook = new Webhook(life)
  await webhook.run()
  for (let round = 0; round < 2; round++) {
    await life.clock.advance(100)
    healthy.push(...(await pushTo(life, keysOf(5_000))))
    await webhook.run()
  }
  assert.deepEqual(
    webhook.delivered.toSorted((a, b) => a - b),
    healthy,
  )
  assert(webhook.usedBytesMax < 250_000, `${webhook.usedBytesMax} bytes`)
  assert.equal(life.queue.pendingCount, 1)
  assert.equal(life.queue.oldestId, stuck)
  await life.clock.advance(1_000)
  assert(life.queue.isQuiet)
  await life.reload()
  assert.equal(life.queue.pendingCount, 1)
  assert.equal(life.queue.pendingBytes, '"message":{}'.length)
  assert.deepEqual(await life.pageIds(), [stuck])
})

test('a key with 20,000 stuck updates does not stop others from being delivered from memory', async () => {
  const life = await QueueLife.open({ windowBytes: 100_000 })
  const stuck = await pushTo(
    life,
    Array.from({ length: 20_000 }, () => 'stuck'),
  )
  const webhook = new Webhook(life)
  await webhook.run()
  assert.equal(webhook.delivered.length, 0)
  for (let round = 0; round < 20; round++) {
    const healthy = await pushTo(life, keysOf(50))
    assert.equal(await webhook.run(), 0, 'nothing is read from disk')
    assert.deepEqual(webhook.delivered.slice(-50), healthy)
    assert(webhook.state.loadedUpdates <= 1_000)
    await life.clock.advance(30)
  }
  assert.equal(life.queue.pendingCount, stuck.length)
  webhook.stuckKey = undefined
  await life.clock.advance(60_000)
  await webhook.run()
  assert.deepEqual(webhook.delivered.slice(-stuck.length), stuck)
  assert.equal(life.queue.pendingCount, 0)
  assert.equal(life.queue.oldestId, life.queue.nextId)
  assert.equal(life.budget.usedBytes, 0)
})

test('a webhook whose memory others use delivers from disk, and from memory afterwards', async () => {
  const life = await QueueLife.open({ windowBytes: 1_000 })
  life.budget.add(1_000)
  const webhook = new Webhook(life)
  const first = await pushTo(life, keysOf(300))
  assert((await webhook.run()) > 0)
  assert.deepEqual(
    webhook.delivered.toSorted((a, b) => a - b),
    first,
  )
  assert.equal(webhook.usedBytesMax, 1_000)
  life.budget.add(-1_000)
  await pushTo(life, keysOf(5))
  assert.equal(await webhook.run(), 0)
  assert.equal(life.queue.pendingCount, 0)
})

test('updates that a webhook is sending are not swept, all others are lost, and each counts once', async () => {
  const life = await QueueLife.open({ windowBytes: 100_000 })
  await pushTo(
    life,
    Array.from({ length: 300 }, () => 'stuck'),
    90,
  )
  const [lasting] = await pushTo(life, ['stuck'])
  const webhook = new Webhook(life)
  await webhook.run()
  assert.equal(await life.wait(life.queue.removeExpired()), true)
  assert.equal(life.queue.pendingCount, 301)
  await life.clock.advance(60_000)
  const now = { monotonicMs: life.clock.monotonicMs(), wallMs: life.clock.nowMs() }
  webhook.state.due(now.monotonicMs)
  webhook.state.loaded(await life.queue.pendingAfter(webhook.state.nextRead()!, 128))
  const flying = webhook.state.take(now)!
  const held = webhook.state.loadedUpdates
  assert(held > 1)
  await life.clock.advance(40_000)
  assert.equal(await life.wait(life.queue.removeExpired()), false)
  assert.equal(life.counters.counts.updates_expired, 300 - held)
  webhook.state.failed(flying, 60_000, {
    monotonicMs: life.clock.monotonicMs(),
    wallMs: life.clock.nowMs(),
  })
  life.queue.addDeadLetters(webhook.state.takeExpired())
  assert.equal(await life.wait(life.queue.removeExpired()), true)
  assert.equal(life.counters.counts.updates_expired, 300)
  assert.equal(life.queue.pendingCount, 1)
  await life.reload()
  assert.deepEqual(await life.pageIds(), [lasting])
})

test('a webhook that is set again does not get what the previous one delivered', async () => {
  const life = await QueueLife.open({ windowBytes: 3_000 })
  await pushTo(life, ['stuck', ...keysOf(200)])
  await new Webhook(life).run()
  const next = new Webhook(life)
  next.stuckKey = undefined
  const reading = next.run()
  await life.wait(reading)
  assert.equal(next.delivered.length, 1)
  assert.equal(life.queue.pendingCount, 0)
})

test('getUpdates after a webhook begins with the updates that the webhook left', async () => {
  const life = await QueueLife.open({ windowBytes: 3_000 })
  const stuck = await pushTo(life, ['stuck', 'stuck'])
  const webhook = new Webhook(life)
  await webhook.run()
  await pushTo(life, keysOf(100))
  await webhook.run()
  assert.equal(await life.wait(life.queue.oldestAcceptedAtS()), 1_800_000_000)
  life.queue.heldBy(undefined)
  const later = await pushTo(life, ['a', 'b'])
  assert.deepEqual(await life.wait(life.pageIds()), [...stuck, ...later])
  assert.equal(await life.wait(Promise.resolve(life.queue.resolveOffset(-1))), later[1])
  await life.wait(Promise.resolve(life.queue.advance(later[0]!, 'confirm')))
  assert.deepEqual(await life.pageIds(), later)
})

test('an update that is read from disk keeps no others in memory', async () => {
  const life = await QueueLife.open({ windowBytes: 0 })
  const text = `"message":{"text":"${'long '.repeat(190)}"}`
  const operations = keysOf(100).map((key) => life.accept(text, 60, key))
  await life.life.shard.commit(operations, { waited: true })
  const [first] = await life.queue.pendingAfter(0, 128)
  assert(first !== undefined)
  assert.equal(life.budget.usedBytes, 0)
  const body = first.body()
  // The page has over 95,000 bytes. Short bodies share blocks of Node's pool, which have 64 bytes more in some versions.
  assert(body.buffer.byteLength <= Buffer.poolSize + 64)
  assert.equal(body.toString(), `{"update_id":${first.updateId},${text}}`)
})

test('updates that were delivered a moment ago are not polled', async () => {
  const life = await QueueLife.open({ windowBytes: 3_000 })
  const stuck = await pushTo(life, ['stuck', ...keysOf(100)])
  const webhook = new Webhook(life)
  await webhook.run()
  await life.clock.advance(100)
  await pushTo(life, keysOf(20))
  assert.equal(await webhook.run(), 0)
  life.queue.heldBy(undefined)
  assert.deepEqual(await life.wait(life.pageIds()), stuck.slice(0, 1))
})

test('when the last update after the window has left, the window has the oldest', async () => {
  const life = await QueueLife.open({ windowBytes: 3_000 })
  await pushTo(life, keysOf(50))
  await life.reload()
  const behind = [...(await life.queue.pendingAfter(0, 128))]
  const [newest] = await pushTo(life, ['a'])
  life.queue.remove(behind.slice(1))
  assert.notEqual(life.queue.oldestId, newest)
  life.queue.remove(behind.slice(0, 1))
  assert.equal(life.queue.oldestId, newest)
  assert.equal(life.queue.pendingCount, 1)
})

test('an update that is delivered while a drop counts those on disk is counted once', async () => {
  for (let turns = 0; turns < 60; turns++) {
    const life = await QueueLife.open({ windowBytes: 0 })
    const ids = await life.push(1_300)
    const [first, second] = await life.queue.pendingAfter(0, 128)
    assert(first !== undefined && second !== undefined)
    const dropping = life.queue.advance(ids[1_200]!, 'drop')
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    life.queue.remove([first, second])
    await life.wait(dropping)
    assert.equal(life.queue.pendingCount, 100)
    assert.equal(life.queue.pendingBytes, 100 * '"message":{}'.length)
  }
})

/** Calls back before a read of updates, the first one being read 1. */
class WatchedStore extends MemoryStore {
  onRead: ((nth: number) => void) | undefined
  #reads = 0

  override async range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    const isOfUpdates = options.gte[0] === kinds.update.prefix && options.keysOnly !== true
    if (this.onRead !== undefined && isOfUpdates) this.onRead(++this.#reads)
    return super.range(options)
  }
}

test('updates that are damaged on disk are dropped while the webhook delivers some that it had read before', async () => {
  const store = new WatchedStore()
  const life = await QueueLife.open({ store, windowBytes: 0 })
  const ids = await life.push(queuePageUpdates * 3)
  const [, ...held] = await life.wait(life.queue.pendingAfter(0, 3))
  const damaged = ids.slice(1).map((id) => {
    return { type: 'put', key: kinds.update.key(life.id, id), value: Buffer.alloc(1) } as const
  })
  await store.write(damaged, { sync: true })
  // The page that had them is counted by then.
  store.onRead = (nth) => {
    if (nth === 2) life.queue.remove(held)
  }
  const to = ids[queuePageUpdates * 2] ?? 0
  await life.wait(life.queue.advance(to, 'drop'))
  await life.wait(life.queue.advance(life.queue.nextId, 'drop'))
  assert.equal(life.queue.pendingCount, 0)
})
