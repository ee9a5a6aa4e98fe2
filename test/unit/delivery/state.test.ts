import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PendingUpdate } from '../../../src/delivery/delivery-source.ts'
import type { Lane } from '../../../src/delivery/lanes/lane.ts'
import { webhookWindowUpdatesMax } from '../../../src/delivery/lanes/lane-window.ts'
import { DeliveryState, webhookReadUpdatesMax } from '../../../src/delivery/state.ts'
import { feed, pendingUpdate as update } from '../../support/webhook/delivery-state.ts'
import { drawnRuns } from '../../support/kit/drawn-runs.ts'

function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const now = { monotonicMs: 0, wallMs: 1_000_000 }

function expiredIds(state: DeliveryState): number[] {
  return state.takeExpired().map((lost) => lost.update.updateId)
}

test('one update per key is in flight, and different keys are sent together', () => {
  const state = new DeliveryState({ maxConnections: 4, random: () => 0, afterId: 0 })
  feed(state, [update(1, 'a'), update(2, 'a'), update(3, 'b')])
  const first = state.take(now)
  const second = state.take(now)
  assert.equal(first?.first?.updateId, 1)
  assert.equal(second?.first?.updateId, 3)
  assert.equal(state.take(now), undefined)
  state.delivered(first)
  assert.equal(state.take(now)?.first?.updateId, 2)
})

test('a failing key holds back only its own updates', () => {
  const state = new DeliveryState({
    maxConnections: 2,
    random: () => 0,
    afterId: 0,
    windowUpdatesMax: 8,
  })
  let pending = Array.from({ length: 500 }, (_value, index) => update(index + 1, 'bad'))
  pending.push(update(501, 'good'))
  feed(state, pending)
  const bad = state.take(now)!
  assert.equal(bad.first?.updateId, 1)
  state.failed(bad, undefined, now)
  const good = state.take(now)!
  assert.equal(good.first?.updateId, 501)
  assert.equal(state.take(now), bad, 'the first retry is at once')
  state.failed(bad, undefined, now)
  state.delivered(good)
  pending = pending.filter((one) => one.updateId !== 501)
  assert.equal(state.take(now), undefined, 'the failing key waits 2 s')
  state.due(1_999)
  feed(state, pending)
  assert.equal(state.take(now), undefined)
  state.due(2_000)
  feed(state, pending)
  for (let updateId = 1; updateId <= 500; updateId++) {
    const lane = state.take(now)!
    assert.equal(lane.first?.updateId, updateId, 'then it goes on in order')
    state.delivered(lane)
    pending = pending.slice(1)
    feed(state, pending)
  }
  assert.equal(state.lanes, 0)
})

test('an update that would be retried only after its expiry is lost, and the next one starts without delay', () => {
  const state = new DeliveryState({ maxConnections: 1, random: () => 0, afterId: 0 })
  const pending = [update(1, 'a', 1_003), update(2, 'a')]
  feed(state, pending)
  state.failed(state.take(now)!, undefined, now)
  assert.deepEqual(expiredIds(state), [])
  const again = { monotonicMs: 1_500, wallMs: 1_001_500 }
  state.failed(state.take(again)!, undefined, again)
  assert.deepEqual(expiredIds(state), [1])
  const lane = state.take(again)!
  assert.equal(lane.first?.updateId, 2)
  assert.equal(lane.failures, 0)
})

test('an update is never sent at or after its expiry', () => {
  const state = new DeliveryState({ maxConnections: 1, random: () => 0, afterId: 0 })
  feed(state, [update(1, 'a', 1_000), update(2, 'a', 1_001)])
  assert.equal(state.take(now)?.first?.updateId, 2)
  assert.deepEqual(expiredIds(state), [1])
})

test('keys and loaded updates stay within their limits, and everything is delivered in the end', () => {
  const state = new DeliveryState({
    maxConnections: 2,
    random: () => 0,
    afterId: 0,
    windowUpdatesMax: 10,
    lanesMax: 20,
  })
  let pending = Array.from({ length: 100 }, (_value, index) => update(index + 1, `key ${index}`))
  const ms = { monotonicMs: 0, wallMs: 1_000_000 }
  const failed = new Set<number>()
  for (let turn = 0; pending.length > 0; turn++) {
    assert.ok(turn < 2_000)
    state.due(ms.monotonicMs)
    feed(state, pending)
    assert.ok(state.lanes <= 20)
    assert.ok(state.loadedUpdates <= 10)
    const lane = state.take(ms)
    if (lane === undefined) {
      ms.monotonicMs = state.firstDueMs!
      continue
    }
    const id = lane.first!.updateId
    if (failed.has(id)) {
      state.delivered(lane)
      pending = pending.filter((one) => one.updateId !== id)
    } else {
      failed.add(id)
      state.failed(lane, 5_000, ms)
    }
  }
})

test('a page of updates of a single key is read once, so that a backlog of one key is not read again and again', () => {
  const state = new DeliveryState({ maxConnections: 40, random: () => 0, afterId: 0 })
  let pending = Array.from({ length: 4_000 }, (_value, index) => update(index + 1, 'key'))
  feed(state, pending, webhookReadUpdatesMax)
  let reads = 0
  for (let lane = state.take(now); lane !== undefined; lane = state.take(now)) {
    state.delivered(lane)
    pending = pending.slice(1)
    reads += feed(state, pending, webhookReadUpdatesMax)
  }
  assert.equal(pending.length, 0)
  assert(reads <= 4_000 / webhookReadUpdatesMax + 1, `${reads} reads`)
})

test('each connection gets its share of the window, whatever other keys hold', () => {
  const state = new DeliveryState({ maxConnections: 40, random: () => 0, afterId: 0 })
  const pending = Array.from({ length: 40 * 1_000 }, (_value, index) =>
    update(index + 1, `key ${Math.floor(index / 1_000)}`),
  )
  const share = webhookWindowUpdatesMax / 40 / 2
  const lanes: Lane[] = []
  // Each hangs, and others are read.
  for (let nth = 0; nth < 40; nth++) {
    feed(state, pending, webhookReadUpdatesMax)
    const lane = state.take(now)
    if (lane !== undefined) lanes.push(lane)
  }
  assert.equal(lanes.length, 40)
  assert((lanes[0]?.size ?? 0) > webhookReadUpdatesMax)
  assert(lanes.every(({ size }) => size >= share))
  assert(state.loadedUpdates <= webhookWindowUpdatesMax)
})

test('a waiting key whose updates have left the queue is forgotten', () => {
  const state = new DeliveryState({ maxConnections: 1, random: () => 0, afterId: 0 })
  feed(state, [update(1, 'a'), update(2, 'b')])
  state.failed(state.take(now)!, 1_000, now)
  state.due(1_000)
  feed(state, [update(2, 'b')])
  assert.equal(state.lanes, 1)
})

/** Simulates a complete bot: the queue, the reads and the responses are all drawn from the seed. */
class Simulation {
  readonly #random: () => number
  readonly #state: DeliveryState
  readonly #maxConnections: number
  readonly #keys: number
  readonly #total: number
  readonly #failing: number
  readonly #time = { monotonicMs: 0, wallMs: 1_000_000 }
  #pending: PendingUpdate[] = []
  #page: PendingUpdate[] | undefined
  #after = 0
  readonly #inFlight: Lane[] = []
  readonly #lastOfKey = new Map<string, number>()
  readonly #dueOfKey = new Map<string, number>()
  #pushed = 0
  #ended = 0

  constructor(seed: number) {
    const random = seeded(seed)
    this.#random = random
    this.#maxConnections = 1 + Math.floor(random() * 6)
    this.#keys = 1 + Math.floor(random() * 12)
    this.#total = 50 + Math.floor(random() * 350)
    this.#failing = random() * 0.6
    this.#state = new DeliveryState({
      maxConnections: this.#maxConnections,
      random,
      afterId: 0,
      windowUpdatesMax: 4 + Math.floor(random() * 30),
      windowBytesMax: 100 + Math.floor(random() * 2_000),
      lanesMax: 3 + Math.floor(random() * 20),
    })
  }

  run(): void {
    for (let turn = 0; this.#ended < this.#total; turn++) {
      assert.ok(turn < 200_000, `lost: ${this.#total - this.#ended} of ${this.#total}`)
      this.#happen(this.#random())
      this.#state.due(this.#time.monotonicMs)
      this.#read()
      this.#send()
    }
    feed(this.#state, [])
    assert.equal(this.#state.loadedUpdates, 0)
    assert.equal(this.#state.loadedBytes, 0)
    assert.equal(this.#state.lanes, 0, 'nothing is remembered of an empty queue')
  }

  #happen(luck: number): void {
    const random = this.#random
    if (luck < 0.3) {
      if (this.#pushed < this.#total) this.#push()
    } else if (luck < 0.4) {
      const [lane] = this.#inFlight.splice(Math.floor(random() * this.#inFlight.length), 1)
      if (lane !== undefined) this.#settle(lane)
    } else if (luck < 0.42) {
      const lane = this.#inFlight.pop()
      if (lane !== undefined) this.#state.returned(lane)
    } else if (luck < 0.43) {
      this.#sweep()
    } else if (luck < 0.44) {
      this.#state.looksAhead = random() < 0.5
    } else if (luck < 0.5) {
      const stepMs = random() < 0.1 ? random() * 130_000 : random() * 500
      this.#time.monotonicMs += stepMs
      this.#time.wallMs += stepMs
    } else if (luck < 0.51) {
      this.#drop()
    }
  }

  /** Removes any update, as an operator does. */
  #drop(): void {
    const one = this.#pending[Math.floor(this.#random() * this.#pending.length)]
    if (one === undefined) return
    const isInFlight = this.#inFlight.some(({ first }) => first === one)
    assert.equal(this.#state.release(one), !isInFlight, 'only what is in flight stays')
    if (isInFlight) return
    this.#remove([one.updateId])
    this.#filterPage((other) => other !== one)
    this.#state.retry({ orderingKeys: [one.orderingKey], isPastRetryAfter: true })
    this.#dueOfKey.delete(one.orderingKey)
  }

  #push(): void {
    const ttlS = this.#random() < 0.1 ? 1 + Math.floor(this.#random() * 200) : 1_000_000
    const key = `key ${Math.floor(this.#random() ** 2 * this.#keys)}`
    const expiresAtS = Math.floor(this.#time.wallMs / 1_000) + ttlS
    const textBytes = Math.floor(this.#random() * 200)
    this.#pending.push(update(++this.#pushed, key, expiresAtS, textBytes))
    this.#state.pushed()
  }

  /** Removes expired updates that the dispatcher does not hold, as the sweeper does. */
  #sweep(): void {
    this.#state.expire(this.#time.wallMs)
    this.#remove(expiredIds(this.#state))
    const isSwept = (one: PendingUpdate): boolean =>
      one.expiresAtS * 1_000 <= this.#time.wallMs && !this.#state.holds(one)
    for (const { first } of this.#inFlight) assert.ok(this.#state.holds(first!))
    this.#remove(this.#pending.filter(isSwept).map(({ updateId }) => updateId))
    this.#filterPage((one) => !isSwept(one))
  }

  #filterPage(isLeft: (update: PendingUpdate) => boolean): void {
    if (this.#page?.every(isLeft) !== false) return
    this.#page = this.#page.filter(isLeft)
    // An empty page means that there is nothing more, so a source reads on.
    if (this.#page.length === 0) this.#page = this.#pageAfter(this.#after)
  }

  #settle(lane: Lane): void {
    const one = lane.first!
    if (this.#random() < this.#failing) {
      const retryAfterMs =
        this.#random() < 0.2 ? 1 + Math.floor(this.#random() * 100_000) : undefined
      this.#state.failed(lane, retryAfterMs, this.#time)
      if (retryAfterMs !== undefined && lane.status === 'waiting') {
        this.#dueOfKey.set(one.orderingKey, this.#time.monotonicMs + retryAfterMs)
      }
    } else {
      assert.ok(one.updateId > (this.#lastOfKey.get(one.orderingKey) ?? 0), 'order within a key')
      this.#lastOfKey.set(one.orderingKey, one.updateId)
      this.#state.delivered(lane)
      this.#remove([one.updateId])
    }
  }

  /** A read begins in one turn and is stored in another, with anything in between. */
  #read(): void {
    if (this.#page !== undefined) {
      this.#state.loaded(this.#page)
      this.#page = undefined
      return
    }
    const after = this.#state.nextRead()
    if (after === undefined) return
    this.#after = after
    this.#page = this.#pageAfter(after)
  }

  #pageAfter(after: number): PendingUpdate[] {
    const limit = 1 + Math.floor(this.#random() * 8)
    return this.#pending.filter((one) => one.updateId > after).slice(0, limit)
  }

  #send(): void {
    while (this.#inFlight.length < this.#maxConnections) {
      const lane = this.#state.take(this.#time)
      this.#remove(expiredIds(this.#state))
      if (lane === undefined) break
      const one = lane.first!
      assert.ok(one.expiresAtS * 1_000 > this.#time.wallMs, 'nothing is sent after its expiry')
      assert.ok(!this.#inFlight.includes(lane), 'one in flight a key')
      const dueMs = this.#dueOfKey.get(one.orderingKey) ?? 0
      assert.ok(this.#time.monotonicMs >= dueMs, 'no retry before its time')
      this.#dueOfKey.delete(one.orderingKey)
      const oldest = this.#pending.find((other) => other.orderingKey === one.orderingKey)
      assert.equal(one, oldest, 'the oldest of its key goes first')
      this.#inFlight.push(lane)
    }
  }

  #remove(ids: readonly number[]): void {
    this.#ended += ids.length
    this.#pending = this.#pending.filter((one) => !ids.includes(one.updateId))
  }
}

test('whatever happens, every update is delivered once and in the order of its key', () => {
  for (let seed = 1; seed <= drawnRuns(80); seed++) {
    try {
      new Simulation(seed).run()
    } catch (error) {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error })
    }
  }
})

test('an update that is pushed during a read that finds nothing is read afterwards', () => {
  const state = new DeliveryState({ maxConnections: 1, random: () => 0, afterId: 0 })
  assert.equal(state.nextRead(), 0)
  state.pushed()
  state.loaded([])
  assert.equal(state.nextRead(), 0)
  state.loaded([])
  assert.equal(state.nextRead(), undefined)
})

test('a key that has failed waits until it is tried again, even when it is due', () => {
  const state = new DeliveryState({ maxConnections: 4, random: () => 0, afterId: 0 })
  const pending = [update(1, 'a'), update(2, 'a'), update(3, 'b')]
  feed(state, pending)
  const lane = state.take(now)!
  state.failed(lane, undefined, now)
  assert.equal(state.waitingLanes, 1, 'at once')
  state.delivered(state.take(now)!)
  state.failed(state.take(now)!, 5_000, now)
  assert.equal(state.waitingLanes, 1, 'later')
  assert.deepEqual([...state.waitingKeys()], ['a'])
  state.due(5_000)
  assert.equal(state.waitingLanes, 1, 'to be read again')
  feed(state, pending)
  assert.equal(state.waitingLanes, 1)
  assert.deepEqual([...state.waitingKeys()], ['a'], 'also when its turn has come')
  assert.equal(state.take(now)?.first?.updateId, 1)
  assert.equal(state.waitingLanes, 0)
})

test('an abandoned update in flight is not sent again, whatever becomes of it, and its key goes on', () => {
  for (const end of ['delivered', 'failed', 'asked to wait', 'returned'] as const) {
    const state = new DeliveryState({ maxConnections: 2, random: () => 0, afterId: 0 })
    feed(state, [update(1, 'a'), update(2, 'a'), update(3, 'b')])
    const lane = state.take(now)!
    assert.equal(state.release(update(1, 'a')), false)
    state.abandon(update(1, 'a'))
    // It does not concern an update that is not in flight.
    state.abandon(update(3, 'b'))
    if (end === 'delivered') state.delivered(lane)
    else if (end === 'failed') state.failed(lane, undefined, now)
    else if (end === 'asked to wait') state.failed(lane, 60_000, now)
    else state.returned(lane)
    assert.deepEqual(expiredIds(state), [])
    const next = [state.take(now), state.take(now)].map((taken) => taken?.first?.updateId)
    assert.deepEqual(
      next.toSorted((a, b) => Number(a) - Number(b)),
      [2, 3],
      end,
    )
    assert.equal(state.release(update(1, 'a')), true)
    assert.equal(state.waitingLanes, 0)
  }
})

test('what the updates of a key wait for is its first one, also while that waits for its retry and after it has left', () => {
  const state = new DeliveryState({ maxConnections: 2, random: () => 0, afterId: 0 })
  const pending = [update(1, 'a'), update(2, 'a'), update(3, 'b')]
  const nextOf = (key: string): readonly unknown[] => {
    const { nextId, nextFailures, status } = state.laneOf(key) ?? {}
    return [nextId, nextFailures, status]
  }
  assert.equal(state.laneOf('a'), undefined)
  feed(state, pending)
  assert.deepEqual(nextOf('a'), [1, 0, 'ready'])
  state.failed(state.take(now)!, 5_000, now)
  assert.deepEqual(nextOf('a'), [1, 1, 'waiting'])
  assert.equal(state.laneOf('a')?.dueMs, 5_000)
  assert.deepEqual(nextOf('b'), [3, 0, 'ready'])
  state.due(5_000)
  assert.deepEqual(nextOf('a'), [1, 1, 'hungry'])
  feed(state, pending.slice(1))
  assert.deepEqual(nextOf('a'), [2, 0, 'ready'], 'the failures were those of the one that has left')
})
