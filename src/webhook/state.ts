/**
 * Decides which update is delivered next: the deliveries of one bot as a pure state machine. It does no IO and knows only
 * the time it is passed. The dispatcher reports to it what was read and how each delivery ended.
 *
 * Updates are read in id order into a bounded window and sorted into lanes, one per ordering key. A lane that is full or
 * waits for a retry is skipped, and remembers the first id it has missed. When such a lane is empty and may continue (it
 * is hungry), the reading goes back (read-scan.ts). Until it is back at the frontier, every other read is there, and every
 * other delivery is for a key that has not failed (ready-lanes.ts).
 *
 * The cost per delivery is constant except for what is read again. That is bounded by the distance between a key's
 * updates, and concerns only keys that have failed or have a backlog.
 */
import { webhookLanesMax, webhookReadUpdatesMax } from './limits.ts'
import type { LostUpdate, PendingUpdate } from './delivery-source.ts'
import { DueHeap } from './due-heap.ts'
import { Lane } from './lane.ts'
import { LaneWindow, type LaneWindowOptions } from './lane-window.ts'
import { Probes, type ProbesOptions } from './probes.ts'
import { ReadScan } from './read-scan.ts'
import { ReadyLanes } from './ready-lanes.ts'
import { retryDelayMs } from './retry.ts'

/** The settings and limits of a `DeliveryState`. */
export interface DeliveryStateOptions extends LaneWindowOptions, ProbesOptions {
  /** Updates up to this id are ignored. */
  readonly afterId: number
}

/** One moment on both clocks, in milliseconds. */
export interface Moment {
  readonly monotonicMs: number
  readonly wallMs: number
}

type Tries = Pick<Lane, 'failures' | 'lastError'>

/**
 * The deliveries of one bot. The caller passes in reads, results and time, and gets the next read and the next delivery.
 */
export class DeliveryState {
  readonly #random: () => number
  readonly #maxConnections: number
  readonly #lanesMax: number

  readonly #lanes = new Map<string, Lane>()
  readonly #ready = new ReadyLanes()
  readonly #waiting = new DueHeap()
  readonly #hungry = new Set<Lane>()
  readonly #window: LaneWindow
  #lost: LostUpdate[] = []
  readonly #scan: ReadScan
  readonly #probes: Probes
  /** The lane for which the present read is. */
  #probed: Lane | undefined
  #atEnd = false
  /** An update was pushed since the last read began, so that read may not contain it. */
  #isPushed = false

  constructor(options: DeliveryStateOptions) {
    const { maxConnections } = options
    this.#random = options.random
    this.#maxConnections = maxConnections
    this.#window = new LaneWindow(options)
    this.#lanesMax = options.lanesMax ?? webhookLanesMax
    this.#scan = new ReadScan(options.afterId)
    this.#probes = new Probes(options)
  }

  /** The number of lanes that may be taken. */
  get readyLanes(): number {
    return this.isProbeMissing ? 0 : this.#ready.length
  }

  /** Whether the next delivery must be a probe that is still to be read. */
  get isProbeMissing(): boolean {
    if (!this.#probes.areDue || !this.#ready.awaitsProbe) return false
    return this.#probed !== undefined || (this.#probes.hasParked && this.#window.hasRoomForProbe)
  }

  get loadedUpdates(): number {
    return this.#window.updates
  }

  /** The number of lanes whose first update has failed and will be tried again, later or when its turn comes. */
  get waitingLanes(): number {
    let count = this.#waiting.size + this.#ready.againLength
    for (const lane of this.#hungry) if (lane.failures > 0) count++
    return count
  }

  /** The bytes of the texts of the loaded updates. */
  get loadedBytes(): number {
    return this.#window.bytes
  }

  get lanes(): number {
    return this.#lanes.size
  }

  /** When the first waiting lane is tried again, monotonic. */
  get firstDueMs(): number | undefined {
    return this.#waiting.firstDueMs
  }

  /** Tells whether an update is loaded. It may also return true for an update that is no longer pending. */
  holds({ updateId, orderingKey }: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean {
    const lane = this.#lanes.get(orderingKey)
    if (lane?.first === undefined) return false
    return updateId >= lane.first.updateId && updateId <= lane.loadedId
  }

  /** Reports that the source may have a new update at its end. */
  pushed(): void {
    this.#atEnd = false
    this.#isPushed = true
  }

  /**
   * Reports that the queue, empty at the moment, assigns lower ids from now on. The ids known here say nothing about
   * those.
   */
  renumbered(): void {
    for (const lane of this.#lanes.values()) {
      if (lane.first === undefined) this.#lanes.delete(lane.key)
      lane.loadedId = 0
      lane.missedId = 0
    }
    this.#waiting.clear()
    this.#hungry.clear()
    this.#probes.clear()
    this.#scan.restart()
    this.pushed()
  }

  /**
   * Decides what to read next.
   *
   * @returns the id after which to read; undefined if no read is needed or there is no room
   */
  nextRead(): number | undefined {
    this.#isPushed = false
    this.#probed = this.#nextProbed()
    if (this.#probed !== undefined) return this.#probed.missedId - 1
    if (!this.#window.hasRoom && !this.#probes.areWanted) return undefined
    const scan = this.#scan
    if (!scan.isRewound && this.#hungry.size > 0) scan.rewind(this.#hungry)
    const wantsNew = this.#wantsNew
    const wantsOld =
      scan.isRewound && this.#ready.length < this.#maxConnections * 2 && this.#window.hasRoom
    // The two kinds of read alternate, so that failing keys and new keys do not block each other.
    if (wantsOld && (scan.isAhead || !wantsNew)) return scan.readAgain()
    return wantsNew ? scan.readNew() : undefined
  }

  /** How many updates the read that `nextRead` returned should have at most. */
  get readLimit(): number {
    return this.#probed === undefined ? webhookReadUpdatesMax : 1
  }

  /**
   * Stores the updates read after the id that `nextRead` returned.
   *
   * @param updates - in id order; empty if there is nothing above that id
   */
  loaded(updates: readonly PendingUpdate[]): void {
    if (this.#probed !== undefined) this.#loadedProbe(this.#probed, updates)
    else if (this.#scan.isRewound && !this.#scan.isAhead) this.#loadedOld(updates)
    else this.#loadedNew(updates)
  }

  /**
   * Takes the next delivery. Expired updates before it are given up; `takeExpired` returns them.
   *
   * @param now - the current time
   * @returns the lane whose first update is to be sent, now in flight; undefined if no lane is ready
   */
  take(now: Moment): Lane | undefined {
    while (!this.isProbeMissing) {
      const lane = this.#ready.shift()
      if (lane === undefined) return undefined
      const update = lane.first
      if (update === undefined) continue
      if (update.expiresAtS * 1_000 > now.wallMs) {
        lane.status = 'in_flight'
        return lane
      }
      this.#lose(update, lane)
      this.#advance(lane)
    }
    return undefined
  }

  /** Ends the delivery of the lane's first update: delivered, or refused for good. */
  delivered(lane: Lane): void {
    this.#probes.succeeded()
    this.#advance(lane)
  }

  /** Puts a lane back because nothing was sent, as if it had not been taken. */
  returned(lane: Lane): void {
    lane.status = 'ready'
    this.#ready.push(lane)
  }

  /**
   * Reports that the delivery of the lane's first update failed. The update is given up if its retry would come after its
   * expiry.
   *
   * @param retryAfterMs - the delay that the endpoint asked for, in milliseconds
   * @param now - the current time
   */
  failed(lane: Lane, retryAfterMs: number | undefined, now: Moment): void {
    const update = lane.first
    if (update === undefined) return
    lane.failures++
    this.#probes.failed()
    const delayMs = retryDelayMs({ failures: lane.failures, retryAfterMs }, this.#random)
    if (now.wallMs + delayMs >= update.expiresAtS * 1_000) {
      this.#lose(update, lane)
      this.#advance(lane)
    } else if (delayMs === 0) {
      this.returned(lane)
    } else {
      this.#window.unload(lane, this.#scan.number)
      lane.status = 'waiting'
      lane.dueMs = now.monotonicMs + delayMs
      this.#waiting.push(lane)
    }
  }

  /** Makes the lanes hungry whose retry is due. */
  due(monotonicMs: number): void {
    for (
      let lane = this.#waiting.popDue(monotonicMs);
      lane !== undefined;
      lane = this.#waiting.popDue(monotonicMs)
    ) {
      this.#toHungry(lane)
    }
  }

  /**
   * Gives up all loaded updates that have expired, except in lanes that are in flight.
   *
   * @param wallMs - the current wall time in milliseconds
   */
  expire(wallMs: number): void {
    this.#ready.each((lane) => {
      this.#expireIn(lane, wallMs)
      this.#goOn(lane)
    })
  }

  /** Returns the updates that were given up because they expired, since the last call. */
  takeExpired(): readonly LostUpdate[] {
    if (this.#lost.length === 0) return none
    const lost = this.#lost
    this.#lost = []
    return lost
  }

  /** New lanes are for free connections and for probes, so there is no need to read ahead of them. */
  get #wantsNew(): boolean {
    if (this.#atEnd || this.#lanes.size >= this.#lanesMax) return false
    return this.#ready.freshLength < this.#maxConnections || this.#probes.areWanted
  }

  #lose(update: PendingUpdate, { failures: attempts, lastError }: Tries): void {
    this.#lost.push({ update, reason: 'expired', attempts, lastError })
  }

  #expireIn(lane: Lane, wallMs: number): void {
    const { first, failures, lastError } = lane
    for (const update of this.#window.dropExpired(lane, wallMs)) {
      this.#lose(update, update === first ? { failures, lastError } : noTries)
    }
  }

  /** Removes the lane's first update. */
  #advance(lane: Lane): void {
    this.#window.dropFirst(lane)
    this.#goOn(lane)
  }

  #goOn(lane: Lane): void {
    if (lane.first !== undefined) {
      this.returned(lane)
      return
    }
    this.#window.emptied()
    if (this.#scan.ranEmpty(lane)) this.#toHungry(lane)
    else this.#lanes.delete(lane.key)
  }

  #toHungry(lane: Lane): void {
    lane.status = 'hungry'
    this.#hungry.add(lane)
  }

  #nextProbed(): Lane | undefined {
    if (this.#hungry.size === 0) this.#probes.clear()
    if (this.#ready.hasProbe || !this.#window.hasRoomForProbe) return undefined
    return this.#probes.pick((lane) => this.#hungry.has(lane))
  }

  /** The lane stays one that has missed something: a scan must still read what follows the probed update. */
  #loadedProbe(lane: Lane, [update]: readonly PendingUpdate[]): void {
    this.#probed = undefined
    // Otherwise its updates have expired, and a scan finds that out.
    if (update?.orderingKey !== lane.key || !this.#hungry.delete(lane)) return
    this.#window.append(lane, update)
    lane.status = 'ready'
    this.#ready.pushProbe(lane)
  }

  #loadedNew(updates: readonly PendingUpdate[]): void {
    for (const update of updates) {
      if (!this.#place(update)) break
      this.#scan.passedNew(update.updateId)
    }
    if (updates.length === 0) this.#atEnd = !this.#isPushed
  }

  #loadedOld(updates: readonly PendingUpdate[]): void {
    const scan = this.#scan
    // Everything after the frontier is new and is read as such.
    if (updates.length === 0) scan.passedAgain(scan.frontier)
    for (const update of updates) {
      if (update.updateId > scan.frontier) {
        scan.passedAgain(scan.frontier)
        break
      }
      if (!this.#place(update)) break
      scan.passedAgain(update.updateId)
    }
    this.#endRewindIfDone()
  }

  /** Returns false if there is no room; the reading stops before this update. */
  #place(update: PendingUpdate): boolean {
    const lane = this.#lanes.get(update.orderingKey)
    if (lane === undefined) return this.#placeInNewLane(update)
    if (update.updateId <= lane.loadedId || this.#scan.isForAnotherRead(lane)) return true
    if (lane.status === 'waiting' || this.#window.isFull(lane)) {
      lane.miss(update.updateId, this.#scan.number)
      return true
    }
    if (!this.#window.hasRoom && !this.#probes.areWanted) return false
    if (this.#window.hasRoomFor(lane)) this.#append(lane, update)
    else lane.miss(update.updateId, this.#scan.number)
    return true
  }

  #append(lane: Lane, update: PendingUpdate): void {
    if (lane.missedId !== 0) this.#scan.feed(lane)
    this.#window.append(lane, update)
    if (lane.status === 'hungry') {
      this.#hungry.delete(lane)
      this.returned(lane)
    }
  }

  #placeInNewLane(update: PendingUpdate): boolean {
    // An update that was read before and has no lane any more was delivered since this read began.
    if (update.updateId <= this.#scan.frontier) return true
    const isFull = !this.#window.hasRoom || this.#ready.freshLength >= this.#maxConnections
    const isParked = isFull && this.#probes.areWanted
    if (this.#lanes.size >= this.#lanesMax || !(this.#window.hasRoom || isParked)) return false
    const lane = new Lane(update)
    this.#lanes.set(lane.key, lane)
    if (isParked) {
      lane.unload(this.#scan.number)
      this.#probes.park(lane)
      this.#toHungry(lane)
      return true
    }
    this.#ready.push(lane)
    this.#window.added(lane)
    return true
  }

  #endRewindIfDone(): void {
    for (const lane of this.#hungry) {
      if (!this.#scan.putsRight(lane)) continue
      if (!this.#scan.isAtFrontier) return
      // The scan has passed everything and the lane is still empty: its updates have left the queue (swept after their
      // expiry).
      this.#forget(lane)
    }
    this.#scan.end()
  }

  #forget(lane: Lane): void {
    this.#hungry.delete(lane)
    this.#lanes.delete(lane.key)
  }
}

const none: readonly LostUpdate[] = []
const noTries: Tries = { failures: 0, lastError: undefined }
