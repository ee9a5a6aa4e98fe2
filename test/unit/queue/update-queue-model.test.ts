/**
 * Compares random sequences of operations on one queue with the simplest model, an array. Windows are small, so much of
 * the queue is read from disk. Between the steps the queue is dropped and loaded again.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UpdateQueue } from '../../../src/queue/update-queue.ts'
import { noRetention, type Retention } from '../../../src/queue/kept/left-update.ts'
import { WindowBudget } from '../../../src/queue/window/window.ts'
import { keptOf } from '../../../src/shard/recovery/kept-counts.ts'
import { decodeQueueState } from '../../../src/shard/records/record.ts'
import { kinds } from '../../../src/shard/kinds.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { FakeClock, settle } from '../../support/kit/fake-clock.ts'
import { ShardLife, TestCounters, whileTimePasses } from '../../support/store/shard-life.ts'
import type { PendingUpdate } from '../../../src/delivery/delivery-source.ts'
import { pendingUpdates } from '../../support/producers/pending-updates.ts'
import { Model } from '../../support/queue/queue-model.ts'
import {
  type AdvanceStep,
  type Step,
  type WebhookStep,
  anyStep,
  isWebhookStep,
} from '../../support/queue/queue-step.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

const queueId = 4711

class World {
  readonly clock = new FakeClock()
  readonly store = new MemoryStore()
  readonly model = new Model()
  readonly budget: WindowBudget
  readonly counters = new TestCounters()
  life = new ShardLife(this.store, this.clock)
  queue!: UpdateQueue
  #texts = 0
  /** What a webhook's dispatcher holds; undefined without a dispatcher. */
  #held: Map<number, PendingUpdate> | undefined
  /** What the dispatcher has finished. It remembers these updates because a page from disk may still contain them. */
  readonly #finished = new Set<number>()

  readonly retention: Retention

  constructor(windowBytes: number, retention: Retention) {
    this.retention = retention
    this.budget = new WindowBudget(windowBytes)
  }

  async open(): Promise<void> {
    this.life = new ShardLife(this.store, this.clock)
    await this.life.shard.open()
    await this.load()
  }

  async load(): Promise<void> {
    const [stored] = await this.life.shard.load([queueId])
    this.queue = new UpdateQueue(
      {
        id: queueId,
        shard: this.life.shard,
        clock: this.clock,
        random: () => 0.25,
        limits: { updateBytesMax: 1_000, pendingUpdatesMax: 1_000, pendingBytesMax: 1_000_000 },
        budget: this.budget,
        counters: this.counters,
        retention: () => this.retention,
        isWebhookActive: () => false,
        lostByExpiry: () => undefined,
        levels: { note: () => undefined },
        deadLettersAdded: () => undefined,
      },
      stored!.state,
    )
    this.life.onCommitted = (operations) => {
      for (const operation of operations) {
        if (operation.kind === 'push') this.queue.committed(operation)
      }
    }
  }

  run(step: Step): Promise<void> {
    return isWebhookStep(step) ? this.runWebhook(step) : this.runElse(step)
  }

  async runElse(step: Exclude<Step, WebhookStep>): Promise<void> {
    switch (step.kind) {
      case 'push':
        return this.push(step)
      case 'confirm':
      case 'keepNewest':
      case 'drop':
        return this.advance(step)
      case 'page':
        this.letGo()
        return this.page(step.limit)
      case 'pass':
        return this.clock.advance(step.seconds * 1000)
      case 'expire':
        return this.expire()
      case 'reload':
        return this.reload()
      case 'reopen':
        this.letGo()
        await this.wait(this.life.shard.close())
        this.queue.detach()
        return this.open()
    }
  }

  async runWebhook(step: WebhookStep): Promise<void> {
    switch (step.kind) {
      case 'deliver':
        return this.deliver(step.shares)
      case 'read':
        return this.read(step)
      case 'readAll':
        return this.readAll()
      case 'finish':
        return this.finish(step)
      case 'letGo':
        return this.letGo()
      case 'release':
        await this.clock.advance(61_000)
        return this.queue.releaseUnread()
      case 'oldest':
        return this.oldest()
    }
  }

  async advance(step: AdvanceStep): Promise<void> {
    const { model, queue } = this
    const to = model.oldestId + Math.round(step.share * (model.nextId - model.oldestId))
    if (step.kind === 'confirm') {
      await queue.advance(await queue.resolveOffset(to), 'confirm')
      model.removeBelow(to)
    } else if (step.kind === 'drop') {
      await this.wait(queue.advance(to, 'drop'))
      model.removeBelow(to)
    } else {
      const newest = -Math.round(step.share * (model.updates.length + 2)) - 1
      const resolved = await this.wait(queue.resolveOffset(newest))
      const wanted = model.resolve(newest)
      // Instead of the oldest id a lower one may be returned, because nothing lies in between.
      assert(resolved === wanted || (resolved < wanted && wanted === model.oldestId))
      await this.wait(queue.advance(resolved, 'drop'))
      model.removeBelow(resolved)
    }
  }

  wait<T>(given: T | Promise<T>): T | Promise<T> {
    return given instanceof Promise ? whileTimePasses(this.clock, given) : given
  }

  async push(step: Step & { kind: 'push' }): Promise<void> {
    const { queue, model, clock } = this
    const operations = Array.from({ length: step.count }, () => {
      const text = `"message":{"n":${this.#texts++}}`
      const expiresAtS = Math.round(clock.nowMs() / 1000) + step.ttlS
      const operation = queue.push({
        typeNumber: 0,
        orderingKey: 'k',
        expiresAtS,
        text: Buffer.from(text),
      })
      assert.equal(operation.updateId, model.nextId)
      const { acceptedAtS } = operation
      model.updates.push({ id: model.nextId++, text, acceptedAtS, expiresAtS })
      return operation
    })
    const done = this.life.shard.commit(operations, { waited: true })
    if (step.isWaited) await done
    else {
      const beside =
        this.#held === undefined ? queue.page(10) : queue.pendingAfter(model.oldestId, 10)
      await Promise.all([done, beside])
      this.dropSeenExpired()
    }
  }

  async page(limit: number): Promise<void> {
    const entries = await this.queue.page(limit)
    const nowS = this.clock.nowMs() / 1000
    const wanted = this.model.updates.filter((update) => update.expiresAtS > nowS).slice(0, limit)
    assert.deepEqual(
      entries.map((entry) => entry.body().toString()),
      wanted.map((update) => `{"update_id":${update.id},${update.text}}`),
    )
    this.dropSeenExpired()
  }

  async deliver(shares: readonly number[]): Promise<void> {
    const pending = await this.queue.pendingAfter(0, 1_000)
    const ids = new Set(pending.map(({ updateId }) => updateId))
    const chosen = shares.flatMap((at) => pending[Math.floor(at * pending.length)] ?? [])
    const removed = new Set(chosen.map(({ updateId }) => updateId))
    this.queue.remove([...chosen, ...chosen, ...pendingUpdates([1])])
    for (const id of removed) {
      assert(ids.has(id))
      this.#held?.delete(id)
    }
    this.removeFromModel(removed)
  }

  /** A webhook's dispatcher reads at any position and takes what it has not taken before. */
  async read({ share: at, limit }: { share: number; limit: number }): Promise<void> {
    const { model } = this
    const after = model.oldestId - 2 + Math.round(at * (model.nextId + 2 - model.oldestId))
    await this.readAfter(after, limit)
  }

  async readAfter(afterId: number, limit: number): Promise<number> {
    const held = this.hold()
    const entries = await this.wait(this.queue.pendingAfter(afterId, limit))
    assert(entries.length <= limit)
    const found = entries.filter(({ updateId }) => !this.#finished.has(updateId))
    const wanted = this.model.updates.filter(({ id }) => id > afterId)
    if (entries.length === 0) assert.equal(wanted.length, 0, 'an empty page is the end')
    assert.deepEqual(
      found.map((entry) => entry.body().toString()),
      wanted.slice(0, found.length).map(({ id, text }) => `{"update_id":${id},${text}}`),
    )
    for (const entry of found) if (!held.has(entry.updateId)) held.set(entry.updateId, entry)
    return entries.at(-1)?.updateId ?? 0
  }

  async readAll(): Promise<void> {
    for (let after = await this.readAfter(0, 100); after > 0; ) {
      after = await this.readAfter(after, 100)
    }
  }

  hold(): Map<number, PendingUpdate> {
    const held = (this.#held ??= new Map())
    this.queue.heldBy({
      holds: ({ updateId }) => held.has(updateId),
      release: ({ updateId }) => !held.has(updateId),
      abandon: ({ updateId }) => !held.has(updateId),
      renumbered: () => undefined,
      giveUpExpired: () => undefined,
    })
    return held
  }

  /** Updates that were confirmed or dropped in the meantime are skipped. */
  finish({ shares, isLost }: { shares: readonly number[]; isLost: boolean }): void {
    const held = this.#held
    if (held === undefined) return
    const all = [...held.values()]
    const chosen = new Set(shares.flatMap((at) => all[Math.floor(at * all.length)] ?? []))
    if (isLost) {
      const lost = { reason: 'expired', attempts: 1, lastError: undefined } as const
      this.queue.addDeadLetters([...chosen].map((update) => ({ update, ...lost })))
    } else {
      this.queue.remove([...chosen])
    }
    for (const { updateId } of chosen) held.delete(updateId)
    this.removeFromModel(new Set([...chosen].map(({ updateId }) => updateId)))
  }

  /** The webhook is removed. */
  letGo(): void {
    this.#held = undefined
    this.queue.heldBy(undefined)
  }

  async oldest(): Promise<void> {
    const acceptedAtS = await this.wait(this.queue.oldestAcceptedAtS())
    assert.equal(acceptedAtS, this.model.updates[0]?.acceptedAtS)
  }

  async expire(): Promise<void> {
    // Otherwise a page returned in this turn would count as held.
    await settle()
    const isComplete = await this.wait(this.queue.removeExpired())
    const nowS = this.clock.nowMs() / 1000
    const kept = this.model.updates.filter(
      ({ id, expiresAtS }) => expiresAtS <= nowS && this.#held?.has(id) === true,
    )
    assert.equal(isComplete, kept.length === 0)
    this.model.updates = this.model.updates.filter(
      (update) => update.expiresAtS > nowS || kept.includes(update),
    )
  }

  removeFromModel(updateIds: ReadonlySet<number>): void {
    for (const id of updateIds) this.#finished.add(id)
    this.model.updates = this.model.updates.filter(({ id }) => !updateIds.has(id))
  }

  async reload(): Promise<void> {
    this.letGo()
    await this.clock.advance(50)
    assert(this.queue.isQuiet)
    this.queue.detach()
    this.life.shard.forget(queueId)
    await this.load()
  }

  /** A page removes the expired updates it has met. The queue decides how many it meets. */
  dropSeenExpired(): void {
    const nowS = this.clock.nowMs() / 1000
    const surplus = this.model.updates.length - this.queue.pendingCount
    let left = surplus
    this.model.updates = this.model.updates.filter((update) => {
      if (left === 0 || update.expiresAtS > nowS) return true
      left -= 1
      return false
    })
    assert.equal(left, 0, 'only expired updates may have gone')
  }

  check(): void {
    const { model, queue, budget } = this
    assert.equal(queue.pendingCount, model.updates.length)
    const bytes = model.updates.reduce((sum, update) => sum + update.text.length, 0)
    assert.equal(queue.pendingBytes, bytes)
    assert.equal(queue.nextId, model.nextId)
    assert.equal(this.life.shard.status, 'serving')
    assert(budget.usedBytes >= 0)
  }

  /** Checks that the stored state equals the state in memory. */
  async checkStored(): Promise<void> {
    await this.clock.advance(10_000)
    await settle()
    const key = kinds.state.key(queueId)
    const [value] = await this.store.getMany([key])
    if (value === undefined) return assert.equal(this.model.updates.length, 0)
    const { nextId, liveCount, liveBytes } = decodeQueueState({ key, value })
    assert.deepEqual(
      { nextId, liveCount, liveBytes },
      {
        nextId: this.queue.nextId,
        liveCount: this.queue.pendingCount,
        liveBytes: this.queue.pendingBytes,
      },
    )
    await this.checkKept()
    this.queue.detach()
    assert.equal(this.budget.usedBytes, 0)
  }

  /** The counts are those of the records, and all that is listed as pending is. */
  async checkKept(): Promise<void> {
    const { shard } = this.life
    const { count, bytes, end } = await keptOf(shard, queueId)
    const known = shard.kept.of(queueId)
    assert.deepEqual([known.count, known.bytes], [count, bytes])
    assert(known.end >= end)
    const page = { after: 0, limit: 100_000 }
    const { updates } = await this.queue.lookBack.find({ state: 'pending' }, page)
    const pending = this.model.updates.map(({ id }) => id)
    assert.deepEqual(
      updates.map(({ updateId }) => updateId),
      pending,
    )
  }
}

test('any history of a queue equals that of an array', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0, 300, 2_000, 1_000_000),
      // What is kept changes nothing of what is pending.
      fc.constantFrom(noRetention, { ms: 3_600_000, bytes: 100 }, { ms: 3_600_000, bytes: 1e9 }),
      fc.array(anyStep, { maxLength: 50, size: 'max' }),
      async (windowBytes, retention, steps) => {
        const world = new World(windowBytes, retention)
        await world.open()
        world.model.nextId = world.queue.nextId
        for (const next of steps) {
          await world.run(next)
          world.check()
        }
        await world.checkStored()
      },
    ),
    { numRuns: drawnRuns(300) },
  )
})
