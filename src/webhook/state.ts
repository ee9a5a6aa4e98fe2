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
 * hungry lanes are fed, the reading jumps ahead to the frontier. Until then every other read is made at the
 * frontier, and every other delivery is of a key that has not failed: however many keys fail, and however
 * often, new ones get their turn.
 *
 * The cost per delivery is constant, apart from what is read again: that is bounded by the distance of a
 * key's updates from each other, for keys which have failed or have a backlog of their own.
 */

import { webhookLanesMax, webhookLoadedBytesMax, webhookWindowUpdatesMax } from '../limits.ts'
import type { LostUpdate, PendingUpdate } from './delivery-source.ts'
import { DueHeap } from './due-heap.ts'
import { Fifo } from '../kit/fifo.ts'
import { Lane } from './lane.ts'
import { retryDelayMs } from './retry.ts'

export interface DeliveryStateOptions {
  readonly maxConnections: number
  readonly random: () => number
  /** Updates up to this id are none of ours. */
  readonly afterId: number
  readonly lanesMax?: number
  readonly windowUpdatesMax?: number
  readonly windowBytesMax?: number
}

export interface Moment {
  readonly monotonicMs: number
  readonly wallMs: number
}

type Tries = Pick<Lane, 'failures' | 'lastError'>

export class DeliveryState {
  readonly #random: () => number
  readonly #maxConnections: number
  readonly #windowMax: number
  readonly #windowBytesMax: number
  readonly #laneMax: number
  readonly #laneBytesMax: number
  readonly #lanesMax: number

  readonly #lanes = new Map<string, Lane>()
  /** Ready lanes whose first update has not failed yet, and those that try again: each has its turn. */
  readonly #fresh = new Fifo<Lane>()
  readonly #again = new Fifo<Lane>()
  #isTurnOfAgain = false
  readonly #waiting = new DueHeap()
  readonly #hungry = new Set<Lane>()
  #loaded = 0
  #loadedBytes = 0
  /** Lanes that hold updates, ready or flying. */
  #activeLanes = 0
  #lost: LostUpdate[] = []

  #cursor: number
  #frontier: number
  #atEnd = false
  /** Something was pushed since the last read began, which that read may not have seen. */
  #isPushed = false
  #scan = 1
  #scanStart: number
  #isRewound = false
  /** The last read began at the frontier, in the middle of a rewound scan. */
  #isAhead = false
  /** Lanes that this rewound scan has put right so far. */
  #fed: Lane[] = []

  constructor(options: DeliveryStateOptions) {
    const { maxConnections } = options
    this.#random = options.random
    this.#maxConnections = maxConnections
    this.#windowMax = Math.max(
      options.windowUpdatesMax ?? webhookWindowUpdatesMax,
      maxConnections * 2,
    )
    this.#windowBytesMax = options.windowBytesMax ?? webhookLoadedBytesMax
    // So that lanes whose deliveries hang cannot fill the window while a connection is free.
    this.#laneMax = Math.max(Math.floor(this.#windowMax / maxConnections), 1)
    this.#laneBytesMax = Math.max(Math.floor(this.#windowBytesMax / maxConnections), 1)
    this.#lanesMax = options.lanesMax ?? webhookLanesMax
    this.#cursor = options.afterId
    this.#frontier = options.afterId
    this.#scanStart = options.afterId
  }

  get readyLanes(): number {
    return this.#fresh.length + this.#again.length
  }

  get loadedUpdates(): number {
    return this.#loaded
  }

  /** Those whose first update has failed and is to be tried again: later, or when its turn comes. */
  get waitingLanes(): number {
    let count = this.#waiting.size + this.#again.length
    for (const lane of this.#hungry) if (lane.failures > 0) count++
    return count
  }

  /** Of the texts of the loaded updates. */
  get loadedBytes(): number {
    return this.#loadedBytes
  }

  get lanes(): number {
    return this.#lanes.size
  }

  /** Monotonic; when the first waiting lane is to be tried again. */
  get firstDueMs(): number | undefined {
    return this.#waiting.firstDueMs
  }

  /** Whether this update is loaded. Of one that is not pending any more it may say so too. */
  holds({ updateId, orderingKey }: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean {
    const lane = this.#lanes.get(orderingKey)
    if (lane?.first === undefined) return false
    return updateId >= lane.first.updateId && updateId <= lane.loadedId
  }

  /** The source may have something new at its end. */
  pushed(): void {
    this.#atEnd = false
    this.#isPushed = true
  }

  /** The queue, empty at the moment, gives lower ids from now on: no id known here says anything about those. */
  renumbered(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.first === undefined) this.#lanes.delete(lane.key)
      lane.loadedId = 0
      lane.missedId = 0
    }
    this.#waiting.clear()
    this.#hungry.clear()
    this.#isRewound = false
    this.#isAhead = false
    this.#frontier = 0
    this.#startScan(0)
    this.pushed()
  }

  /** The id after which to read now, or undefined when there is no need or no room. */
  nextRead(): number | undefined {
    this.#isPushed = false
    if (!this.#hasRoom) return undefined
    if (!this.#isRewound && this.#hungry.size > 0) this.#rewind()
    // Free connections are what new lanes are for: no need to read ahead of them.
    const wantsNew =
      !this.#atEnd && this.#lanes.size < this.#lanesMax && this.#fresh.length < this.#maxConnections
    const wantsOld = this.#isRewound && this.readyLanes < this.#maxConnections * 2
    // In turn: keys that fail again and again must not keep new ones out, nor these them.
    if (wantsOld && (this.#isAhead || !wantsNew)) {
      this.#isAhead = false
      return this.#cursor
    }
    if (!wantsNew) return undefined
    this.#isAhead = this.#isRewound
    return this.#frontier
  }

  /** Takes in what was read after the id that `nextRead` gave. */
  loaded(updates: readonly PendingUpdate[]): void {
    if (this.#isRewound && !this.#isAhead) this.#loadedOld(updates)
    else this.#loadedNew(updates)
  }

  /** The next delivery, its lane flying from now on; expired updates on the way are dropped. */
  take(now: Moment): Lane | undefined {
    for (let lane = this.#shiftReady(); lane !== undefined; lane = this.#shiftReady()) {
      const update = lane.first
      if (update === undefined) continue
      if (update.expiresAtS * 1_000 > now.wallMs) {
        lane.status = 'flying'
        return lane
      }
      this.#lose(update, lane)
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
    if (lane.failures > 0) this.#again.push(lane)
    else this.#fresh.push(lane)
  }

  failed(lane: Lane, retryAfterMs: number | undefined, now: Moment): void {
    const update = lane.first
    if (update === undefined) return
    lane.failures++
    const delayMs = retryDelayMs({ failures: lane.failures, retryAfterMs }, this.#random)
    if (now.wallMs + delayMs >= update.expiresAtS * 1_000) {
      this.#lose(update, lane)
      this.#advance(lane)
    } else if (delayMs === 0) {
      this.returned(lane)
    } else {
      this.#loaded -= lane.size
      this.#loadedBytes -= lane.bytes
      this.#activeLanes--
      lane.unload(this.#scan)
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

  /** Gives up what has expired of all that is loaded, but for the lanes that are flying. */
  expire(wallMs: number): void {
    for (const ready of [this.#fresh, this.#again]) {
      for (let left = ready.length; left > 0; left--) {
        const lane = ready.shift()
        if (lane === undefined) break
        this.#expireIn(lane, wallMs)
        this.#goOn(lane)
      }
    }
  }

  /** What was given up because of its expiry since the last call. */
  takeExpired(): readonly LostUpdate[] {
    if (this.#lost.length === 0) return none
    const lost = this.#lost
    this.#lost = []
    return lost
  }

  /** A lane may always have its first update while there may be a connection for it. */
  get #hasRoom(): boolean {
    if (this.#loaded >= this.#windowMax) return false
    return this.#loadedBytes < this.#windowBytesMax || this.#activeLanes < this.#maxConnections
  }

  #shiftReady(): Lane | undefined {
    this.#isTurnOfAgain = !this.#isTurnOfAgain
    return this.#isTurnOfAgain
      ? (this.#again.shift() ?? this.#fresh.shift())
      : (this.#fresh.shift() ?? this.#again.shift())
  }

  #lose(update: PendingUpdate, { failures: attempts, lastError }: Tries): void {
    this.#lost.push({ update, reason: 'expired', attempts, lastError })
  }

  #expireIn(lane: Lane, wallMs: number): void {
    const { first, failures, lastError } = lane
    for (const update of lane.dropExpired(wallMs)) {
      this.#loaded--
      this.#loadedBytes -= update.textBytes
      this.#lose(update, update === first ? { failures, lastError } : noTries)
    }
  }

  /** Done with the lane's first update. */
  #advance(lane: Lane): void {
    this.#loaded--
    this.#loadedBytes -= lane.first?.textBytes ?? 0
    lane.dropFirst()
    this.#goOn(lane)
  }

  #goOn(lane: Lane): void {
    if (lane.first !== undefined) {
      this.returned(lane)
      return
    }
    this.#activeLanes--
    if (lane.missedId !== 0) {
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

  #loadedNew(updates: readonly PendingUpdate[]): void {
    for (const update of updates) {
      if (!this.#place(update)) break
      this.#frontier = update.updateId
      if (!this.#isRewound) this.#cursor = update.updateId
    }
    if (updates.length === 0) this.#atEnd = !this.#isPushed
  }

  #loadedOld(updates: readonly PendingUpdate[]): void {
    // Behind the frontier everything is new, and read as such.
    if (updates.length === 0) this.#cursor = this.#frontier
    for (const update of updates) {
      if (update.updateId > this.#frontier) {
        this.#cursor = this.#frontier
        break
      }
      if (!this.#place(update)) break
      this.#cursor = update.updateId
    }
    this.#endRewindIfDone()
  }

  /** False where there is no room: the reading stops before this update. */
  #place(update: PendingUpdate): boolean {
    const lane = this.#lanes.get(update.orderingKey)
    if (lane === undefined) return this.#placeInNewLane(update)
    if (update.updateId <= lane.loadedId || this.#isForAnotherRead(lane)) return true
    if (
      lane.status === 'waiting' ||
      lane.size >= this.#laneMax ||
      lane.bytes >= this.#laneBytesMax
    ) {
      lane.miss(update.updateId, this.#scan)
      return true
    }
    if (!this.#hasRoom) return false
    if (lane.first !== undefined && this.#loadedBytes >= this.#windowBytesMax) {
      lane.miss(update.updateId, this.#scan)
    } else {
      this.#append(lane, update)
    }
    return true
  }

  /** Something before this update has not been shown to the lane yet. */
  #isForAnotherRead(lane: Lane): boolean {
    if (this.#isAhead) return lane.missedId !== 0 || lane.fedInScan === this.#scan
    return lane.missedId !== 0 && !this.#putsRight(lane)
  }

  #append(lane: Lane, update: PendingUpdate): void {
    if (lane.missedId !== 0) {
      lane.missedId = 0
      if (this.#isRewound && lane.fedInScan !== this.#scan) {
        lane.fedInScan = this.#scan
        this.#fed.push(lane)
      }
    }
    if (lane.first === undefined) this.#activeLanes++
    lane.append(update)
    this.#loaded++
    this.#loadedBytes += update.textBytes
    if (lane.status === 'hungry') {
      this.#hungry.delete(lane)
      this.returned(lane)
    }
  }

  #placeInNewLane(update: PendingUpdate): boolean {
    // What was read before and has no lane any more has been delivered since this read began.
    if (update.updateId <= this.#frontier) return true
    if (this.#lanes.size >= this.#lanesMax || !this.#hasRoom) return false
    const lane = new Lane(update)
    this.#lanes.set(lane.key, lane)
    this.#fresh.push(lane)
    this.#activeLanes++
    this.#loaded++
    this.#loadedBytes += update.textBytes
    return true
  }

  /** Whether the present scan shows the lane everything that it has missed. */
  #putsRight(lane: Lane): boolean {
    return lane.missedInScan < this.#scan && lane.missedId > this.#scanStart
  }

  #rewind(): void {
    this.#isAhead = true
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
const noTries: Tries = { failures: 0, lastError: undefined }
