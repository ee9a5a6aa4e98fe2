/**
 * Compares pushes with keys to a model, which is a map. The pushes come in batches, two batches at a time, across
 * failed writes, crashes between accept and commit, restarts, unloading, sweeps, and a clock that jumps over half-days
 * in both directions.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { IdempotencyKeySweeper } from '../../../src/bots/idempotency-key-sweeper.ts'
import { noOptions, type PushRequest } from '../../support/queue/pushed-rows.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { FaultyStore } from '../../support/store/faulty-store.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

const dayMs = 86_400_000
const keysPerDayMax = 6
const pendingMax = 5
const firstId = 68_108_864

interface Push {
  readonly botId: number
  readonly isTest: boolean
  readonly key: number | undefined
  readonly body: number
}

interface QueueModel {
  nextId: number
  pending: number
  day: number
  count: number
  readonly keys: Map<number, { readonly id: number; readonly body: number; readonly atMs: number }>
}

type Model = Map<string, QueueModel>

function queueIn(model: Model, { botId, isTest }: Pick<Push, 'botId' | 'isTest'>): QueueModel {
  const name = `${botId} ${isTest}`
  let queue = model.get(name)
  if (queue === undefined) {
    queue = { nextId: firstId, pending: 0, day: 0, count: 0, keys: new Map() }
    model.set(name, queue)
  }
  return queue
}

function copyOf(model: Model): Model {
  return new Map(
    Array.from(model, ([name, queue]) => [name, { ...queue, keys: new Map(queue.keys) }]),
  )
}

/** Returns the results that a batch must have, and changes the model accordingly. */
function expect(model: Model, pushes: readonly Push[], nowMs: number): (string | number)[] {
  return pushes.map((push) => {
    const queue = queueIn(model, push)
    const { key, body } = push
    const prior = key === undefined ? undefined : queue.keys.get(key)
    if (prior !== undefined && nowMs - prior.atMs < dayMs) {
      return prior.body === body ? `duplicate of ${prior.id}` : 'IDEMPOTENCY_MISMATCH'
    }
    if (body === 0) return 'filtered'
    const day = Math.floor(nowMs / dayMs)
    const count = queue.day === day ? queue.count : 0
    if (key !== undefined && count >= keysPerDayMax) return 'TOO_MANY_KEYS'
    if (queue.pending >= pendingMax) return 'QUEUE_FULL'
    const id = queue.nextId
    queue.nextId += 1
    queue.pending += 1
    if (key !== undefined) {
      queue.keys.set(key, { id, body, atMs: nowMs })
      queue.day = day
      queue.count = count + 1
    }
    return id
  })
}

function requestOf({ botId, isTest, key, body }: Push): PushRequest {
  return {
    ...noOptions,
    botId,
    isTest,
    idempotencyKey: key === undefined ? undefined : `key ${key}`,
    // The default types do not include chat_member.
    update: Buffer.from(body === 0 ? '{"chat_member":{}}' : `{"message":{"n":${body}}}`),
  }
}

/** A sequence of processes on one disk. */
class World {
  readonly clock = new FakeClock()
  readonly #disk = new MemoryStore()
  #model: Model = new Map()
  #latestMs = 0
  #bots!: BotsLife
  #store!: FaultyStore
  #sweeper!: IdempotencyKeySweeper

  async start(): Promise<void> {
    this.#store = new FaultyStore(this.#disk)
    this.#bots = await BotsLife.open({
      store: () => this.#store,
      clock: this.clock,
      idempotencyKeysPerDayMax: keysPerDayMax,
    })
    this.#sweeper = new IdempotencyKeySweeper({
      clock: this.clock,
      bots: this.#bots.registry.bots,
      log: { error: (details) => assert.fail(JSON.stringify(details)) },
    })
  }

  async register(): Promise<void> {
    for (const botId of [100, 101]) await this.#bots.register(botId)
  }

  async push(pushes: readonly Push[]): Promise<void> {
    const results = await this.#bots.push(...pushes.map(requestOf))
    assert.deepEqual(results, expect(this.#model, pushes, this.clock.nowMs()))
  }

  /** Two concurrent batches are processed one after the other, in either order. */
  async pushBoth(first: readonly Push[], second: readonly Push[]): Promise<void> {
    const results = await Promise.all([
      this.#bots.push(...first.map(requestOf)),
      this.#bots.push(...second.map(requestOf)),
    ])
    const nowMs = this.clock.nowMs()
    const model = copyOf(this.#model)
    const inOrder = [expect(model, first, nowMs), expect(model, second, nowMs)]
    if (JSON.stringify(inOrder) === JSON.stringify(results)) {
      this.#model = model
      return
    }
    const secondResults = expect(this.#model, second, nowMs)
    assert.deepEqual(results, [expect(this.#model, first, nowMs), secondResults])
  }

  /** Every push that was to be stored, and every repetition of it, gets the failure. The disk decides what is stored. */
  async pushFailing(pushes: readonly Push[], isApplied: boolean): Promise<void> {
    const before = copyOf(this.#model)
    const expected = expect(this.#model, pushes, this.clock.nowMs())
    if (!expected.some((result) => typeof result === 'number')) return
    this.#store.failNextWrite('EIO', { applied: isApplied })
    const results = await this.#bots.push(...pushes.map(requestOf))
    for (const [at, result] of expected.entries()) {
      const known = expect(copyOf(before), [pushes[at]!], this.clock.nowMs())[0]
      const isShared = typeof result === 'number' || (known !== result && isOfKey(result))
      assert.equal(results[at], isShared ? 'OUTCOME_UNKNOWN' : result)
    }
    if (!isApplied) this.#model = before
    await this.clock.advance(1_000)
  }

  /** Kills the process before its write has reached the disk. */
  async crash(pushes: readonly Push[]): Promise<void> {
    this.#store.holdWrites()
    const stored = expect(copyOf(this.#model), pushes, this.clock.nowMs())
    void this.#bots.push(...pushes.map(requestOf))
    if (stored.some((result) => typeof result === 'number')) await this.#store.waitForHeld()
    this.#sweeper.close()
    await this.#disk.close()
    await this.start()
  }

  async restart(): Promise<void> {
    this.#sweeper.close()
    await this.#bots.close()
    await this.start()
  }

  /** Goes back by half a day at most: keys from further ahead are not looked up, and older ones were deleted. */
  jump(byMs: number): Promise<void> {
    const nowMs = this.clock.nowMs() + byMs
    this.#latestMs = Math.max(this.#latestMs, this.clock.nowMs())
    if (nowMs >= this.#latestMs - dayMs / 2) this.clock.jump(byMs)
    return Promise.resolve()
  }

  async drop(push: Push): Promise<void> {
    const { updates } = await this.#bots.registry.queueOf(push.botId, push.isTest)
    await updates.advance(updates.nextId, 'drop')
    queueIn(this.#model, push).pending = 0
  }

  async end(): Promise<void> {
    this.#sweeper.close()
    await this.#bots.close()
  }
}

function isOfKey(result: string | number): boolean {
  return String(result).startsWith('duplicate') || result === 'IDEMPOTENCY_MISMATCH'
}

const onePush = fc.record({
  botId: fc.constantFrom(100, 100, 101),
  isTest: fc.constantFrom(false, false, true),
  key: fc.oneof(
    { weight: 5, arbitrary: fc.nat(4) },
    { weight: 1, arbitrary: fc.constant(undefined) },
  ),
  body: fc.constantFrom(1, 1, 1, 2, 0),
})
const batch = fc.array(onePush, { minLength: 1, maxLength: 5 })

interface Step {
  readonly call: readonly unknown[]
  run(world: World): Promise<void>
}

function call(weight: number, arguments_: fc.Arbitrary<Step>) {
  return { weight, arbitrary: arguments_ }
}

const step: fc.Arbitrary<Step> = fc.oneof(
  call(
    5,
    batch.map((pushes) => ({ call: ['push', pushes], run: (world) => world.push(pushes) })),
  ),
  call(
    3,
    fc.tuple(batch, batch).map(([first, second]) => ({
      call: ['pushBoth', first, second],
      run: (world) => world.pushBoth(first, second),
    })),
  ),
  call(
    2,
    fc.tuple(batch, fc.boolean()).map(([pushes, isApplied]) => ({
      call: ['pushFailing', pushes, isApplied],
      run: (world) => world.pushFailing(pushes, isApplied),
    })),
  ),
  call(
    2,
    batch.map((pushes) => ({ call: ['crash', pushes], run: (world) => world.crash(pushes) })),
  ),
  call(2, fc.constant({ call: ['restart'], run: (world) => world.restart() })),
  call(
    3,
    onePush.map((push) => ({ call: ['drop', push], run: (world) => world.drop(push) })),
  ),
  call(
    3,
    fc
      .oneof(
        fc.constantFrom(dayMs / 2, dayMs - 1, 1, -1, -dayMs / 2),
        fc.integer({ min: -dayMs / 2, max: dayMs }),
      )
      .map((byMs) => ({ call: ['jump', byMs], run: (world) => world.jump(byMs) })),
  ),
  // A minute contains a sweep. After three minutes the bots are no longer in memory.
  call(
    2,
    fc
      .constantFrom(60_000, 200_000)
      .map((byMs) => ({ call: ['advance', byMs], run: (world) => world.clock.advance(byMs) })),
  ),
)

test('whatever happens in between, a key returns its first update for 24 hours', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const world = new World()
      await world.start()
      await world.register()
      for (const each of steps) await each.run(world)
      await world.end()
    }),
    { numRuns: drawnRuns(150) },
  )
})
