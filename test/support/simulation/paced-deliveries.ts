/**
 * Runs the real state, pace and flood gate of a dispatcher against an endpoint on simulated time. It leaves out sockets and
 * everything else that the simulation of whole lives has (simulation.ts), so that hours with 20,000 keys take a second.
 */
import type { PendingUpdate } from '../../../src/delivery/delivery-source.ts'
import { DeliveryPace } from '../../../src/delivery/pace/delivery-pace.ts'
import { FloodGate } from '../../../src/delivery/pace/flood-gate.ts'
import type { Lane } from '../../../src/delivery/lanes/lane.ts'
import { DeliveryState } from '../../../src/delivery/state.ts'
import { pendingUpdate } from '../webhook/delivery-state.ts'
import { Luck } from './luck.ts'

/** Rejected is an answer of its own, such as 500; sick is one such as 503, or none. */
export type Outcome = 'taken' | 'rejected' | 'sick'

export interface SimulatedEndpoint {
  /** Called when a request arrives. */
  answer(key: string, nowMs: number): Outcome
}

export interface PacedDeliveriesOptions {
  readonly endpoint: SimulatedEndpoint
  readonly seed?: number
  readonly connections?: number
  readonly responseMs?: number
  readonly readMs?: number
}

interface Delivery {
  readonly lane: Lane
  readonly startedMs: number
  readonly outcome: Outcome
}

export class PacedDeliveries {
  readonly pace = new DeliveryPace()
  /** When each update was delivered. */
  readonly deliveredMs = new Map<number, number>()
  nowMs = 0
  sent = 0
  /** What was read from the queue: pages, and updates in them. */
  pagesRead = 0
  updatesRead = 0
  readonly #endpoint: SimulatedEndpoint
  readonly #state: DeliveryState
  readonly #gate: FloodGate
  readonly #responseMs: number
  readonly #readMs: number
  #connections = 0
  #lastId = 0
  readonly #pending = new Map<number, PendingUpdate>()
  /** The ids of pending updates, and of some that are not pending any more. */
  #ids: number[] = []
  #reading: { readonly page: readonly PendingUpdate[]; readonly endMs: number } | undefined
  readonly #inFlight: Delivery[] = []

  constructor(options: PacedDeliveriesOptions) {
    const { endpoint, seed = 1, connections = 40, responseMs = 20, readMs = 1 } = options
    const luck = new Luck(seed)
    this.#endpoint = endpoint
    this.#gate = new FloodGate(connections)
    this.#state = new DeliveryState({ maxConnections: connections, random: luck.next, afterId: 0 })
    this.#responseMs = responseMs
    this.#readMs = readMs
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  get loadedUpdates(): number {
    return this.#state.loadedUpdates
  }

  push(orderingKey: string): number {
    const updateId = ++this.#lastId
    this.#pending.set(updateId, pendingUpdate(updateId, orderingKey, 1e9, 100))
    this.#ids.push(updateId)
    this.#state.pushed()
    return updateId
  }

  /** Lets time pass from event to event. */
  run(seconds: number, isOver: () => boolean = () => false): void {
    const endMs = this.nowMs + seconds * 1_000
    for (this.#pump(); !isOver(); this.#pump()) {
      const nextMs = Math.max(Math.ceil(this.#nextMs), this.nowMs + 1)
      if (nextMs >= endMs) {
        this.nowMs = endMs
        return
      }
      this.nowMs = nextMs
      this.#receive()
    }
  }

  get #nextMs(): number {
    const [first] = this.#inFlight
    const waitMs = this.#state.readyLanes === 0 ? Number.POSITIVE_INFINITY : this.#waitMs
    return Math.min(
      first === undefined ? Number.POSITIVE_INFINITY : first.startedMs + this.#responseMs,
      this.#reading?.endMs ?? Number.POSITIVE_INFINITY,
      this.#state.firstDueMs ?? Number.POSITIVE_INFINITY,
      this.nowMs + waitMs,
    )
  }

  get #waitMs(): number {
    const paceMs = this.pace.waitMs(this.nowMs)
    if (this.#inFlight.length < this.#connections) return paceMs
    return Math.max(paceMs, this.#gate.waitMs(this.nowMs, this.#connections))
  }

  #pump(): void {
    this.#state.due(this.nowMs)
    this.pace.refresh(this.nowMs)
    this.#state.looksAhead = this.pace.endpointPerSecond !== undefined
    this.#read()
    this.#send()
  }

  #receive(): void {
    for (let [next] = this.#inFlight; next !== undefined; [next] = this.#inFlight) {
      if (next.startedMs + this.#responseMs > this.nowMs) return
      this.#inFlight.shift()
      this.#end(next)
      this.#pump()
    }
  }

  #end({ lane, startedMs, outcome }: Delivery): void {
    const ended = { on: { startedMs }, lane }
    if (outcome === 'taken') {
      const updateId = lane.first?.updateId ?? 0
      this.deliveredMs.set(updateId, this.nowMs)
      this.#pending.delete(updateId)
      this.#gate.succeeded(this.nowMs)
      this.pace.succeeded(ended, this.nowMs)
      this.#state.delivered(lane)
    } else {
      this.pace.failed(ended, outcome === 'sick', this.nowMs)
      this.#state.failed(lane, undefined, { monotonicMs: this.nowMs, wallMs: this.nowMs })
    }
  }

  #read(): void {
    if (this.#reading !== undefined) {
      if (this.#reading.endMs > this.nowMs) return
      this.#state.loaded(this.#reading.page)
      this.#reading = undefined
    }
    const after = this.#state.nextRead()
    if (after === undefined) return
    const page = this.#page(after, this.#state.readLimit)
    this.pagesRead++
    this.updatesRead += page.length
    this.#reading = { page, endMs: this.nowMs + this.#readMs }
  }

  #page(after: number, limit: number): PendingUpdate[] {
    if (this.#ids.length > 2 * this.#pending.size + 100) this.#ids = [...this.#pending.keys()]
    const page: PendingUpdate[] = []
    for (let at = firstAbove(this.#ids, after); at < this.#ids.length; at++) {
      const update = this.#pending.get(this.#ids[at] ?? 0)
      if (update !== undefined) page.push(update)
      if (page.length === limit) break
    }
    return page
  }

  #send(): void {
    const now = { monotonicMs: this.nowMs, wallMs: this.nowMs }
    while (this.#state.readyLanes > 0 && this.#waitMs === 0) {
      const lane = this.#state.take(now)
      if (lane === undefined) return
      if (this.#inFlight.length === this.#connections) {
        this.#connections++
        this.#gate.opened(this.nowMs)
      }
      this.pace.taken(this.nowMs)
      this.pace.sent({ monotonicMs: () => this.nowMs })
      this.sent++
      const outcome = this.#endpoint.answer(lane.key, this.nowMs)
      this.#inFlight.push({ lane, startedMs: this.nowMs, outcome })
    }
  }
}

function firstAbove(ids: readonly number[], id: number): number {
  let low = 0
  let high = ids.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((ids[middle] ?? 0) <= id) low = middle + 1
    else high = middle
  }
  return low
}
