/**
 * Tries the pace of an endpoint (src/delivery/pace/endpoint-pace.ts) on simulated time: keys that fail among good ones, endpoints
 * that are overloaded, and the end of an outage. Each seed draws the numbers of connections, the times of responses and
 * reads, and what came before. `SEEDS=10000 node dist/test/sim/overload.test.js` tries more of them than each run of the
 * tests, and `FIRST=123 SEEDS=1` only one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { Luck } from '../support/simulation/luck.ts'
import {
  type Outcome,
  PacedDeliveries,
  type PacedDeliveriesOptions,
  type SimulatedEndpoint,
} from '../support/simulation/paced-deliveries.ts'

const { SEEDS = drawnRuns(25), FIRST = '1' } = process.env

/** Runs a case with each seed, and says which one broke it. */
function withSeeds(run: (seed: number, luck: Luck) => void): void {
  for (let seed = Number(FIRST); seed < Number(FIRST) + Number(SEEDS); seed++) {
    try {
      run(seed, new Luck(seed + 0xface))
    } catch (error) {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error })
    }
  }
}

function drawn(
  seed: number,
  luck: Luck,
  endpoint: SimulatedEndpoint,
): PacedDeliveriesOptions & { readonly endpoint: SimulatedEndpoint } {
  const connections = luck.pick([10, 40])
  return { endpoint, seed, connections, responseMs: luck.int(1, 40), readMs: luck.int(1, 4) }
}

/** Takes `perSecond` requests within any second, and rejects keys that begin with "failing". */
class StrainedEndpoint implements SimulatedEndpoint {
  perSecond: number
  /** Whether requests that it refuses count, too. */
  countsRefused = true
  refusal: Outcome = 'sick'
  #arrivedMs: number[] = []

  constructor(perSecond: number) {
    this.perSecond = perSecond
  }

  answer(key: string, nowMs: number): Outcome {
    if (key.startsWith('failing')) return 'rejected'
    if (this.perSecond === Number.POSITIVE_INFINITY) return 'taken'
    while (nowMs - (this.#arrivedMs[0] ?? nowMs) >= 1_000) this.#arrivedMs.shift()
    const isTaken = this.#arrivedMs.length < this.perSecond
    if (isTaken || this.countsRefused) this.#arrivedMs.push(nowMs)
    return isTaken ? 'taken' : this.refusal
  }
}

/** Is down until `downToMs`, and for a time whenever it gets more than 50 requests in a second. */
class FallingEndpoint implements SimulatedEndpoint {
  falls = 0
  downToMs: number
  readonly #downMs: number
  readonly #failure: Outcome
  #arrivedMs: number[] = []

  constructor(options: { downToMs: number; downMs: number; failure: Outcome }) {
    this.downToMs = options.downToMs
    this.#downMs = options.downMs
    this.#failure = options.failure
  }

  answer(_key: string, nowMs: number): Outcome {
    if (nowMs < this.downToMs) return this.#failure
    while (nowMs - (this.#arrivedMs[0] ?? nowMs) >= 1_000) this.#arrivedMs.shift()
    this.#arrivedMs.push(nowMs)
    if (this.#arrivedMs.length <= 50) return 'taken'
    this.falls++
    this.downToMs = nowMs + this.#downMs
    this.#arrivedMs = []
    return this.#failure
  }
}

test('20 keys that are taken get their first update within 1 s and 200 within 5 s, among thousands that always fail', () => {
  withSeeds((seed, luck) => {
    const deliveries = new PacedDeliveries(drawn(seed, luck, new StrainedEndpoint(1e9)))
    const failing = luck.chance(0.1) ? 20_000 : 2_000
    for (let key = 0; key < failing; key++) deliveries.push(`failing ${key}`)
    deliveries.run(luck.pick([0.5, 1, luck.int(1, 300)]))
    const fromMs = deliveries.nowMs
    const isByKey = luck.chance(0.5)
    const ids = Array.from({ length: 200 }, (_value, index) =>
      deliveries.push(`good ${isByKey ? Math.floor(index / 10) : index % 20}`),
    )
    deliveries.run(5)
    const times = ids.map((id) => (deliveries.deliveredMs.get(id) ?? Infinity) - fromMs)
    const [first, last] = [Math.min(...times), Math.max(...times)]
    assert(first <= 1_000 && last <= 5_000, `${failing} keys: ${first} ms, ${last} ms`)
  })
})

test('an endpoint that takes 50 requests a second recovers from an overload, whether or not it counts what it refuses', () => {
  withSeeds((seed, luck) => {
    const endpoint = new StrainedEndpoint(50)
    endpoint.countsRefused = luck.chance(0.7)
    const isSick = luck.chance(0.8)
    endpoint.refusal = isSick ? 'sick' : 'rejected'
    const deliveries = new PacedDeliveries(drawn(seed, luck, endpoint))
    const keys = luck.chance(0.1) ? 20_000 : 4_000
    for (let key = 0; key < keys; key++) deliveries.push(`key ${key}`)
    deliveries.run(20)
    const before = deliveries.deliveredMs.size
    deliveries.run(60)
    const perSecond = (deliveries.deliveredMs.size - before) / 60
    // One that answers 500 looks as if only its keys fail, and recovers when their delays are long and random.
    assert(!isSick || perSecond >= 20, `it takes ${perSecond} per second`)
    deliveries.run(3_600, () => deliveries.pendingCount === 0)
    assert.equal(deliveries.pendingCount, 0)
  })
})

test('after an outage of 10 minutes 2,000 updates are taken with at most 4 falls of an endpoint that falls over above 50', () => {
  withSeeds((seed, luck) => {
    const failure: Outcome = luck.chance(0.7) ? 'sick' : 'rejected'
    const downMs = luck.pick([1_000, 2_000, 5_000])
    const endpoint = new FallingEndpoint({ downToMs: 600_000, downMs, failure })
    const deliveries = new PacedDeliveries(drawn(seed, luck, endpoint))
    const isAtOnce = luck.chance(0.5)
    const keys = luck.pick([2_000, 500])
    for (let nth = 0; nth < 2_000; nth++) {
      deliveries.push(`key ${nth % keys}`)
      if (!isAtOnce) deliveries.run(0.3)
    }
    deliveries.run(600 - deliveries.nowMs / 1_000)
    deliveries.run(600, () => deliveries.pendingCount === 0)
    assert.equal(deliveries.pendingCount, 0)
    // One that answers 500 is not known to be sick, so a short fall may not slow it down.
    const most = failure === 'sick' ? 4 : 8
    assert(endpoint.falls <= most, `${endpoint.falls} falls, each for ${downMs} ms, ${failure}`)
  })
})

test('a total outage gets few attempts and reads', () => {
  for (const outcome of ['sick', 'rejected'] as const) {
    const deliveries = new PacedDeliveries({ endpoint: { answer: () => outcome }, responseMs: 1 })
    for (let key = 0; key < 20_000; key++) deliveries.push(`key ${key}`)
    deliveries.run(60)
    const { sent, updatesRead } = deliveries
    deliveries.run(100)
    const most = outcome === 'sick' ? 1.1 : 10
    const attempts = (deliveries.sent - sent) / 100
    assert(attempts <= most, `${outcome}: ${attempts} attempts a second`)
    const read = (deliveries.updatesRead - updatesRead) / 100
    assert(read <= 20 * most, `${outcome}: ${read} updates a second are read`)
    assert(deliveries.loadedUpdates <= 500, `${deliveries.loadedUpdates} updates are held`)
  }
})

test('an endpoint that takes less than before its outage recovers while more updates are pushed', () => {
  const endpoint = new StrainedEndpoint(2_000)
  const deliveries = new PacedDeliveries({ endpoint })
  const runAndPush = (seconds: number): void => {
    for (let nth = 0; nth < seconds * 50; nth++) {
      deliveries.push(`key ${deliveries.nowMs}`)
      deliveries.run(0.02)
    }
  }
  runAndPush(10)
  endpoint.perSecond = 0
  for (let key = 0; key < 20_000; key++) deliveries.push(`backlog ${key}`)
  runAndPush(30)
  endpoint.perSecond = 2_000
  runAndPush(2)
  endpoint.perSecond = 80
  runAndPush(20)
  const before = deliveries.deliveredMs.size
  runAndPush(100)
  const perSecond = (deliveries.deliveredMs.size - before) / 100
  assert(perSecond >= 50, `it takes ${perSecond} per second`)
})

test('among 10,000 keys that always fail, other keys are delivered at once, also after an outage', () => {
  const endpoint = new StrainedEndpoint(1_000)
  const deliveries = new PacedDeliveries({ endpoint })
  const pushedMs = new Map<number, number>()
  const runAndPush = (seconds: number): void => {
    for (let nth = 0; nth < seconds * 5; nth++) {
      pushedMs.set(deliveries.push(`other ${pushedMs.size % 500}`), deliveries.nowMs)
      deliveries.run(0.2)
    }
  }
  runAndPush(1)
  for (let key = 0; key < 10_000; key++) deliveries.push(`failing ${key}`)
  runAndPush(200)
  endpoint.perSecond = 0
  runAndPush(60)
  endpoint.perSecond = 1_000
  runAndPush(130)
  const fromMs = deliveries.nowMs
  runAndPush(200)
  for (const [updateId, atMs] of pushedMs) {
    if (atMs < fromMs || atMs > deliveries.nowMs - 1_000) continue
    const tookMs = (deliveries.deliveredMs.get(updateId) ?? Number.POSITIVE_INFINITY) - atMs
    assert(tookMs < 1_000, `an update that was pushed at ${atMs} took ${tookMs} ms`)
  }
})

test('a key is found in the middle of 4,000 that fail, before any success', () => {
  const deliveries = new PacedDeliveries({ endpoint: new StrainedEndpoint(1_000), responseMs: 50 })
  for (let key = 0; key < 2_000; key++) deliveries.push(`failing ${key}`)
  const updateId = deliveries.push('other')
  for (let key = 2_000; key < 4_000; key++) deliveries.push(`failing ${key}`)
  deliveries.run(600)
  assert(deliveries.deliveredMs.has(updateId))
})
