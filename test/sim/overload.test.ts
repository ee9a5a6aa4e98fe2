/**
 * Overloads an endpoint of which refused requests take as much as others, so that it recovers only if deliveries come more
 * slowly than it can take them. The real state and the real pace of a dispatcher run on simulated time, with 40
 * connections and a response after 20 ms. A read takes a millisecond.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PendingUpdate } from '../../src/webhook/delivery-source.ts'
import { DeliveryPace } from '../../src/webhook/delivery-pace.ts'
import type { Lane } from '../../src/webhook/lane.ts'
import { DeliveryState } from '../../src/webhook/state.ts'
import { Luck } from '../support/simulation/luck.ts'

const connections = 40
const responseMs = 20
const readMs = 1
const seeds = [1, 2, 3, 4, 5]

/** Takes `perSecond` requests within any second, and counts those that it refuses, too. */
class StrainedEndpoint {
  perSecond: number
  isPoisoned: (key: string) => boolean = () => false
  #arrivedMs: number[] = []

  constructor(perSecond: number) {
    this.perSecond = perSecond
  }

  takes(key: string, nowMs: number): boolean {
    this.#arrivedMs = this.#arrivedMs.filter((atMs) => nowMs - atMs < 1_000)
    this.#arrivedMs.push(nowMs)
    return this.#arrivedMs.length <= this.perSecond && !this.isPoisoned(key)
  }
}

class Deliveries {
  readonly pace = new DeliveryPace()
  readonly endpoint: StrainedEndpoint
  /** When each update was delivered. */
  readonly deliveredMs = new Map<number, number>()
  nowMs = 0
  sent = 0
  #lastId = 0
  readonly #pending = new Map<number, PendingUpdate>()
  readonly #state: DeliveryState
  #reading: { readonly page: readonly PendingUpdate[]; readonly atMs: number } | undefined
  readonly #inFlight: { readonly lane: Lane; readonly atMs: number; readonly taken: boolean }[] = []

  constructor(endpoint: StrainedEndpoint, seed = 1) {
    this.endpoint = endpoint
    const luck = new Luck(seed)
    const random = (): number => luck.next()
    this.#state = new DeliveryState({ maxConnections: connections, random, afterId: 0 })
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  push(orderingKey: string): number {
    const updateId = ++this.#lastId
    this.#pending.set(updateId, {
      updateId,
      orderingKey,
      expiresAtS: 1e9,
      textBytes: 100,
      body: () => Buffer.alloc(0),
    })
    this.#state.pushed()
    return updateId
  }

  /** Lets time pass, a millisecond at a time. */
  run(seconds: number, each: () => void = () => undefined): void {
    for (const endMs = this.nowMs + seconds * 1_000; this.nowMs < endMs; this.nowMs++) {
      each()
      this.#receive()
      this.#pump()
    }
  }

  #pump(): void {
    this.#state.due(this.nowMs)
    this.pace.refresh(this.nowMs)
    do this.#read()
    while (this.#send())
  }

  #receive(): void {
    const now = { monotonicMs: this.nowMs, wallMs: this.nowMs }
    for (let next = this.#inFlight[0]; next !== undefined; next = this.#inFlight[0]) {
      if (next.atMs + responseMs > this.nowMs) return
      this.#inFlight.shift()
      const { lane, atMs, taken } = next
      if (taken) {
        const updateId = lane.first?.updateId ?? 0
        this.deliveredMs.set(updateId, this.nowMs)
        this.#pending.delete(updateId)
        this.pace.succeeded(this.nowMs)
        this.#state.delivered(lane)
      } else {
        this.pace.failed({ on: { startedMs: atMs }, lane }, this.nowMs)
        this.#state.failed(lane, undefined, now)
      }
      this.#pump()
    }
  }

  #read(): void {
    if (this.#reading !== undefined) {
      if (this.#reading.atMs + readMs > this.nowMs) return
      this.#state.loaded(this.#reading.page)
      this.#reading = undefined
    }
    const after = this.#state.nextRead()
    if (after === undefined) return
    const page: PendingUpdate[] = []
    const { readLimit } = this.#state
    for (let id = after + 1; id <= this.#lastId && page.length < readLimit; id++) {
      const update = this.#pending.get(id)
      if (update !== undefined) page.push(update)
    }
    this.#reading = { page, atMs: this.nowMs }
  }

  /** Returns whether a probe should be read. */
  #send(): boolean {
    const { nowMs: atMs } = this
    const now = { monotonicMs: atMs, wallMs: atMs }
    let isAnySent = false
    while (
      this.#inFlight.length < connections &&
      this.#state.readyLanes > 0 &&
      this.pace.waitMs(atMs) === 0
    ) {
      const lane = this.#state.take(now)
      if (lane === undefined) break
      isAnySent = true
      this.pace.taken(atMs)
      this.pace.sent({ monotonicMs: () => atMs })
      this.sent++
      this.#inFlight.push({ lane, atMs, taken: this.endpoint.takes(lane.key, atMs) })
    }
    return isAnySent && this.#state.isProbeMissing
  }
}

test('an endpoint that also counts what it refuses recovers from an overload of 20,000 keys', () => {
  const deliveries = new Deliveries(new StrainedEndpoint(50))
  for (let key = 0; key < 20_000; key++) deliveries.push(`key ${key}`)
  deliveries.run(20)
  const before = deliveries.deliveredMs.size
  deliveries.run(100)
  const perSecond = (deliveries.deliveredMs.size - before) / 100
  assert(perSecond >= 25, `it takes ${perSecond} per second`)
  deliveries.endpoint.perSecond = 10_000
  deliveries.run(90)
  assert.equal(deliveries.pendingCount, 0)
})

test('an endpoint that takes less than before its outage recovers while more updates are pushed', () => {
  const deliveries = new Deliveries(new StrainedEndpoint(2_000))
  const push = (): void => {
    if (deliveries.nowMs % 20 === 0) deliveries.push(`key ${deliveries.nowMs}`)
  }
  deliveries.run(10, push)
  deliveries.endpoint.perSecond = 0
  for (let key = 0; key < 20_000; key++) deliveries.push(`backlog ${key}`)
  deliveries.run(30, push)
  deliveries.endpoint.perSecond = 2_000
  deliveries.run(10, push)
  deliveries.endpoint.perSecond = 80
  deliveries.run(20, push)
  const before = deliveries.deliveredMs.size
  deliveries.run(100, push)
  const perSecond = (deliveries.deliveredMs.size - before) / 100
  assert(perSecond >= 50, `it takes ${perSecond} per second`)
})

test('among 10,000 keys that always fail, other keys are delivered at once, also after an outage', () => {
  const endpoint = new StrainedEndpoint(1_000)
  endpoint.isPoisoned = (key) => key.startsWith('failing')
  const deliveries = new Deliveries(endpoint)
  const pushedMs = new Map<number, number>()
  const push = (): void => {
    if (deliveries.nowMs % 200 !== 0) return
    pushedMs.set(deliveries.push(`other ${pushedMs.size % 500}`), deliveries.nowMs)
  }
  deliveries.run(1, push)
  for (let key = 0; key < 10_000; key++) deliveries.push(`failing ${key}`)
  deliveries.run(200, push)
  endpoint.perSecond = 0
  deliveries.run(60, push)
  endpoint.perSecond = 1_000
  deliveries.run(60, push)
  const fromMs = deliveries.nowMs
  deliveries.run(200, push)
  for (const [updateId, atMs] of pushedMs) {
    if (atMs < fromMs || atMs > deliveries.nowMs - 1_000) continue
    const tookMs = (deliveries.deliveredMs.get(updateId) ?? Number.POSITIVE_INFINITY) - atMs
    assert(tookMs < 1_000, `an update that was pushed at ${atMs} took ${tookMs} ms`)
  }
})

test('a key that does not fail is found within minutes after 10,000 keys that do, before any success', () => {
  const endpoint = new StrainedEndpoint(1_000)
  endpoint.isPoisoned = (key) => key.startsWith('failing')
  const deliveries = new Deliveries(endpoint)
  for (let key = 0; key < 10_000; key++) deliveries.push(`failing ${key}`)
  const updateId = deliveries.push('other')
  // With 100 failing attempts per second alone it takes 200 s.
  deliveries.run(400)
  assert(deliveries.deliveredMs.has(updateId))
})

test('keys that do not fail are found within 2 s behind 2,000 keys that do', () => {
  for (const seed of seeds) checkGoodKeysBehindFailing(0, seed)
})

test('keys that do not fail are found within 2 s behind 2,000 keys that have failed for 5 s', () => {
  for (const seed of seeds) checkGoodKeysBehindFailing(5, seed)
})

test('keys that do not fail are found within 2 s behind 2,000 keys that have failed for a minute', () => {
  for (const seed of seeds) checkGoodKeysBehindFailing(60, seed)
})

function checkGoodKeysBehindFailing(beforeS: number, seed: number): void {
  const endpoint = new StrainedEndpoint(Number.POSITIVE_INFINITY)
  endpoint.isPoisoned = (key) => key.startsWith('failing')
  const deliveries = new Deliveries(endpoint, seed)
  for (let key = 0; key < 2_000; key++) deliveries.push(`failing ${key}`)
  deliveries.run(beforeS)
  const others = Array.from({ length: 200 }, (_, key) => deliveries.push(`other ${key}`))
  const count = (): number => others.filter((id) => deliveries.deliveredMs.has(id)).length
  deliveries.run(2)
  assert(count() > 0, `with seed ${seed}`)
  deliveries.run(10)
  assert.equal(count(), 200, `with seed ${seed}`)
}
