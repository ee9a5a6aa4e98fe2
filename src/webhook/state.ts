/**
 * Which update goes out next: the deliveries of one bot as a pure state machine. It does no IO and knows no
 * time but the `now` it is given; the dispatcher feeds it what it read and what became of each delivery.
 *
 * Updates are read in id order into a bounded window and sorted into lanes, one per ordering key. A lane
 * that is full, or waits for a retry, is passed over, and remembers from which id on it has missed
 * something. When such a lane has run empty and its time has come (it is hungry), the reading goes back:
 *
 *     id:   |......scanStart======cursor..........frontier........|
 *            removed   ^  read again ^   read before ^   not yet read
 *
 * A scan is contiguous from scanStart, so a lane that missed something after scanStart in an earlier
 * scan has all of it put right in this one; others must leave what they see (order within a key). When all
 * hungry lanes are fed, the reading jumps ahead to the frontier.
 *
 * The cost per delivery is constant, apart from what is read again: that is bounded by the distance of a
 * key's updates from each other, for keys which have failed or have a backlog of their own.
 */

import { webhookLanesMax, webhookWindowUpdatesMax } from '../limits.ts'
import type { LostUpdate, PendingUpdate } from './delivery-source.ts'
import { DueHeap } from './due-heap.ts'
import { Fifo } from './fifo.ts'
import { Lane } from './lane.ts'
import { retryDelayMs } from './retry.ts'

export interface DeliveryStateOptions {
  readonly maxConnections: number
  readonly random: () => number
  /** Updates up to this id are none of ours. */
  readonly afterId: number
  readonly lanesMax?: number
  readonly windowUpdatesMax?: number
}

export interface Moment {
  readonly monotonicMs: number
  readonly wallMs: number
}

export class DeliveryState {
  readonly #random: () => number
  readonly #maxConnections: number
  readonly #windowMax: number
  readonly #laneMax: number
  readonly #lanesMax: number

  readonly #lanes = new Map<string, Lane>()
  readonly #ready = new Fifo<Lane>()
  readonly #waiting = new DueHeap()
  readonly #hungry = new Set<Lane>()
  #loaded = 0
  #expired: LostUpdate[] = []

  #cursor: number
  #frontier: number
  #atEnd = false
  /** Something was pushed since the last read began, which that read may not have seen. */
  #isPushed = false
  #scan = 1
  #scanStart: number
  #isRewound = false
  /** Lanes that this rewound scan has put right so far. */
  #fed: Lane[] = []

  constructor(options: DeliveryStateOptions) {
    this.#random = options.random
    this.#maxConnections = options.maxConnections
    this.#windowMax = Math.max(
      options.windowUpdatesMax ?? webhookWindowUpdatesMax,
      options.maxConnections * 2,
    )
    // So that lanes whose deliveries hang cannot fill the window while a connection is free.
    this.#laneMax = Math.max(Math.floor(this.#windowMax / options.maxConnections), 1)
    this.#lanesMax = options.lanesMax ?? webhookLanesMax
    this.#cursor = options.afterId
    this.#frontier = options.afterId
    this.#scanStart = options.afterId
  }

  get readyLanes(): number {
    return this.#ready.length
  }

  get loadedUpdates(): number {
    return this.#loaded
  }

  /** Those whose first update has failed and is tried again later. */
  get waitingLanes(): number {
    return this.#waiting.size
  }

  get lanes(): number {
    return this.#lanes.size
  }

  /** Monotonic; when the first waiting lane is to be tried again. */
  get firstDueMs(): number | undefined {
    return this.#waiting.firstDueMs
  }

  /** The source may have something new at its end. */
  pushed(): void {
    this.#atEnd = false
    this.#isPushed = true
  }

  /** The id after which to read now, or undefined when there is no need or no room. */
  nextRead(): number | undefined {
    this.#isPushed = false
    if (this.#loaded >= this.#windowMax) return undefined
    if (!this.#isRewound && this.#hungry.size > 0) this.#rewind()
    if (this.#isRewound) return this.#cursor
    if (this.#atEnd || this.#lanes.size >= this.#lanesMax) return undefined
    // Free connections are what new lanes are for: no need to read ahead of them.
    return this.#ready.length < this.#maxConnections ? this.#cursor : undefined
  }

  /** Takes in what was read after the id that `nextRead` gave. */
  loaded(updates: readonly PendingUpdate[]): void {
    for (const update of updates) {
      if (!this.#place(update)) break
      this.#cursor = update.updateId
      if (this.#cursor > this.#frontier) this.#frontier = this.#cursor
    }
    if (updates.length === 0) {
      if (this.#cursor >= this.#frontier) this.#atEnd = !this.#isPushed
      this.#cursor = this.#frontier
    }
    if (this.#isRewound) this.#endRewindIfDone()
  }

  /** The next delivery, its lane flying from now on; expired updates on the way are dropped. */
  take(now: Moment): Lane | undefined {
    for (let lane = this.#ready.shift(); lane !== undefined; lane = this.#ready.shift()) {
      const update = lane.first
      if (update !== undefined && update.expiresAtS * 1_000 > now.wallMs) {
        lane.status = 'flying'
        return lane
      }
      if (update !== undefined) this.#expire(lane, update)
      this.#advance(lane)
    }
    return undefined
  }

  delivered(lane: Lane): void {
    this.#advance(lane)
  }

  /** Nothing was sent after all: as if it had not been taken. */
  returned(lane: Lane): void {
    lane.status = 'ready'
    this.#ready.push(lane)
  }

  failed(lane: Lane, retryAfterMs: number | undefined, now: Moment): void {
    const update = lane.first
    if (update === undefined) return
    lane.failures++
    const delayMs = retryDelayMs({ failures: lane.failures, retryAfterMs }, this.#random)
    if (now.wallMs + delayMs >= update.expiresAtS * 1_000) {
      this.#expire(lane, update)
      this.#advance(lane)
    } else if (delayMs === 0) {
      this.returned(lane)
    } else {
      this.#loaded -= lane.unload(this.#scan)
      lane.status = 'waiting'
      lane.dueMs = now.monotonicMs + delayMs
      this.#waiting.push(lane)
    }
  }

  /** Wakes the lanes whose retry is due. */
  due(monotonicMs: number): void {
    for (
      let lane = this.#waiting.popDue(monotonicMs);
      lane !== undefined;
      lane = this.#waiting.popDue(monotonicMs)
    ) {
      this.#toHungry(lane)
    }
  }

  /** What was given up because of its expiry since the last call. */
  takeExpired(): readonly LostUpdate[] {
    if (this.#expired.length === 0) return none
    const expired = this.#expired
    this.#expired = []
    return expired
  }

  #expire(lane: Lane, update: PendingUpdate): void {
    const { failures: attempts, lastError } = lane
    this.#expired.push({ update, reason: 'expired', attempts, lastError })
  }

  /** Done with the lane's first update. */
  #advance(lane: Lane): void {
    lane.dropFirst()
    this.#loaded--
    if (lane.first !== undefined) {
      this.returned(lane)
    } else if (lane.missedId !== 0) {
      this.#toHungry(lane)
    } else if (this.#isRewound && lane.fedInScan === this.#scan) {
      // Run empty halfway: this same scan will show it the rest.
      lane.miss(this.#cursor + 1, this.#scan - 1)
      this.#toHungry(lane)
    } else {
      this.#lanes.delete(lane.key)
    }
  }

  #toHungry(lane: Lane): void {
    lane.status = 'hungry'
    this.#hungry.add(lane)
  }

  /** False where there is no room: the reading stops before this update. */
  #place(update: PendingUpdate): boolean {
    const lane = this.#lanes.get(update.orderingKey)
    if (lane === undefined) return this.#placeInNewLane(update)
    if (update.updateId <= lane.loadedId) return true
    if (lane.missedId !== 0 && !this.#putsRight(lane)) return true
    if (lane.status === 'waiting' || lane.size >= this.#laneMax) {
      lane.miss(update.updateId, this.#scan)
      return true
    }
    if (this.#loaded >= this.#windowMax) return false
    this.#append(lane, update)
    return true
  }

  #append(lane: Lane, update: PendingUpdate): void {
    if (lane.missedId !== 0) {
      lane.missedId = 0
      if (this.#isRewound && lane.fedInScan !== this.#scan) {
        lane.fedInScan = this.#scan
        this.#fed.push(lane)
      }
    }
    if (lane.first === undefined && update.updateId !== lane.failedId) {
      lane.failures = 0
      lane.lastError = undefined
    }
    lane.append(update)
    this.#loaded++
    if (lane.status === 'hungry') {
      this.#hungry.delete(lane)
      this.returned(lane)
    }
  }

  #placeInNewLane(update: PendingUpdate): boolean {
    // What was read before and has no lane any more has been delivered since this read began.
    if (update.updateId <= this.#frontier) return true
    if (this.#lanes.size >= this.#lanesMax || this.#loaded >= this.#windowMax) return false
    const lane = new Lane(update)
    this.#lanes.set(lane.key, lane)
    this.#ready.push(lane)
    this.#loaded++
    return true
  }

  /** Whether the present scan shows the lane everything that it has missed. */
  #putsRight(lane: Lane): boolean {
    return lane.missedInScan < this.#scan && lane.missedId > this.#scanStart
  }

  #rewind(): void {
    let from = this.#frontier
    for (const lane of this.#hungry) from = Math.min(from, lane.missedId - 1)
    this.#startScan(from)
    this.#isRewound = true
  }

  #startScan(after: number): void {
    this.#scan++
    this.#scanStart = after
    this.#cursor = after
    this.#fed = []
  }

  #endRewindIfDone(): void {
    const reachedFrontier = this.#cursor >= this.#frontier
    for (const lane of this.#hungry) {
      if (!this.#putsRight(lane)) continue
      if (!reachedFrontier) return
      // Shown everything and still empty: its updates are gone from the queue (swept after their expiry).
      this.#forget(lane)
    }
    this.#isRewound = false
    if (reachedFrontier) {
      this.#fed = []
      return
    }
    // The lanes fed in this scan have not seen the rest of the way to the frontier.
    for (const lane of this.#fed) {
      if (lane.missedId === 0) lane.miss(this.#cursor + 1, this.#scan)
    }
    this.#startScan(this.#frontier)
  }

  #forget(lane: Lane): void {
    this.#hungry.delete(lane)
    this.#lanes.delete(lane.key)
  }
}

const none: readonly LostUpdate[] = []
