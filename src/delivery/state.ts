/**
 * Decides which update is delivered next: the deliveries of one bot as a pure state machine. It does no IO and knows only
 * the time it is passed. The dispatcher reports to it what was read and how each delivery ended.
 *
 * Updates are read in id order into a bounded window and sorted into lanes, one per ordering key. A lane that is full or
 * waits for a retry is skipped, and remembers which of its updates are missing. When such a lane is empty and may continue
 * (it is hungry), a page is read again from the first update that it has missed:
 *
 *     id:   |.......missedId......missedToId........frontier........|
 *            loaded or gone, read before            not yet read
 *
 * Any other lane that has missed nothing before this page gets its updates from it, too. The reads take turns, like the
 * deliveries (ready-lanes.ts): for keys whose last attempt succeeded, for untried ones, and for failed ones.
 *
 * While the pace of the endpoint is limited (`looksAhead`), the queue is read on to its end, and the keys found there are
 * parked: their lanes are hungry and hold no updates. As long as attempts fail, the newest of them comes first whenever no
 * other key is known to be good, so that keys that always fail do not hold back those behind them.
 *
 * The cost per delivery is constant except for what is read again. That is bounded by the distance between a key's
 * updates, and concerns only keys that have failed, are parked, or have a backlog.
 */
import type { LostUpdate, PendingUpdate } from './delivery-source.ts'
import { DueHeap, ReadyLanes } from './lanes/ready-lanes.ts'
import { Fifo } from '../kit/fifo.ts'
import { Lane, type LaneTurn } from './lanes/lane.ts'
import { LaneWindow, type LaneWindowOptions } from './lanes/lane-window.ts'
import { retryDelayMs } from './pace/retry.ts'

/** The settings and limits of a `DeliveryState`. */
export interface DeliveryStateOptions extends LaneWindowOptions {
  readonly random: () => number
  /** The delays of retries; undefined for the usual ones. */
  readonly retryDelaysS?: readonly number[] | undefined
  readonly lanesMax?: number
  /** Updates up to this id are ignored. */
  readonly afterId: number
}

/** The settings that may change while deliveries run. */
export type ChangedDelivery = Pick<DeliveryStateOptions, 'maxConnections' | 'retryDelaysS'>

/** Which keys that wait for a retry are tried now. */
export interface RetryNow {
  /** As they are stored; undefined for all. */
  readonly orderingKeys?: readonly string[] | undefined
  /** Whether also those are tried for which the endpoint has asked for a delay, with Retry-After. */
  readonly isPastRetryAfter: boolean
}

/** One moment on both clocks, in milliseconds. */
export interface Moment {
  readonly monotonicMs: number
  readonly wallMs: number
}

/** A read in progress. */
interface Read {
  readonly after: number
  readonly limit: number
  /** The lane for which updates are read again; undefined if updates are read for the first time. */
  readonly lane: Lane | undefined
}

type Tries = Pick<Lane, 'failures' | 'lastError'>

/**
 * This many ordering keys of one bot are known at a time, nearly all of them waiting for a retry. There are never more
 * than pending updates, 100,000 by default. A key takes 224 bytes, so 100,000 failing keys take 22 MB. With a lower
 * bound, new keys would wait for the failing ones.
 */
const webhookLanesMax = 1_000_000
/** One read from the queue returns this many updates: more would block the event loop, fewer would cost more calls. */
export const webhookReadUpdatesMax = 200

/**
 * The deliveries of one bot. The caller passes in reads, results and time, and gets the next read and the next delivery.
 */
export class DeliveryState {
  readonly #random: () => number
  #retryDelaysS: readonly number[] | undefined
  #maxConnections: number
  readonly #lanesMax: number

  readonly #lanes = new Map<string, Lane>()
  readonly #ready = new ReadyLanes()
  readonly #waiting = new DueHeap()
  /** Hungry lanes by whose turn they share. Untried ones are those that are parked, and others that were since fed. */
  readonly #hungry = { first: new Set<Lane>(), failed: new Set<Lane>() }
  #parked = new Fifo<Lane>()
  readonly #window: LaneWindow
  #lost: LostUpdate[] = []
  /** Whether the queue is read on to its end. */
  looksAhead = false
  #hasLastFailed = false
  /** Everything above this id has not been read yet. */
  #frontier: number
  #read: Read | undefined
  #readNumber = 0
  #readTurn = 0
  #atEnd = false
  /** An update was pushed since the last read began, so that read may not contain it. */
  #isPushed = false

  constructor(options: DeliveryStateOptions) {
    const { maxConnections } = options
    this.#random = options.random
    this.#retryDelaysS = options.retryDelaysS
    this.#maxConnections = maxConnections
    this.#window = new LaneWindow(options)
    this.#lanesMax = options.lanesMax ?? webhookLanesMax
    this.#frontier = options.afterId
  }

  /** Settings of the bot have changed. Failures and the times of retries that wait stay as they are. */
  change({ maxConnections, retryDelaysS }: ChangedDelivery): void {
    this.#maxConnections = maxConnections
    this.#retryDelaysS = retryDelaysS
    this.#window.fit(maxConnections)
  }

  /** The number of lanes that may be taken. */
  get readyLanes(): number {
    return this.#ready.length
  }

  get loadedUpdates(): number {
    return this.#window.updates
  }

  /** The number of lanes whose first update has failed and will be tried again, later or when its turn comes. */
  get waitingLanes(): number {
    return this.#waiting.size + this.#ready.count('failed') + this.#hungry.failed.size
  }

  /** The keys of these lanes. */
  *waitingKeys(): Iterable<string> {
    for (const { key } of this.#waiting.lanes) yield key
    for (const { key } of this.#ready.of('failed')) yield key
    for (const { key } of this.#hungry.failed) yield key
  }

  /** What is known of an ordering key; undefined if nothing is. */
  laneOf(
    orderingKey: string,
  ): Pick<Lane, 'status' | 'nextId' | 'nextFailures' | 'lastError' | 'dueMs'> | undefined {
    return this.#lanes.get(orderingKey)
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
      lane.missedToId = 0
    }
    this.#waiting.clear()
    this.#hungry.first.clear()
    this.#hungry.failed.clear()
    this.#parked = new Fifo()
    this.#frontier = 0
    this.#read = undefined
    this.pushed()
  }

  /**
   * Decides what to read next.
   *
   * @returns the id after which to read; undefined if no read is needed or there is no room
   */
  nextRead(): number | undefined {
    this.#isPushed = false
    // A read that failed has found nothing.
    if (this.#read?.lane !== undefined) this.#endRead(this.#read.lane)
    this.#read = undefined
    for (let tries = 0; tries < 3 && this.#read === undefined; tries++) {
      this.#readTurn = (this.#readTurn + 1) % 3
      if (this.#readTurn === 0) this.#read = this.#nextFirst()
      else this.#read = this.#readTurn === 1 ? this.#nextUntried() : this.#nextFailed()
    }
    return this.#read?.after
  }

  /** How many updates the read that `nextRead` returned should have at most. */
  get readLimit(): number {
    return this.#read?.limit ?? webhookReadUpdatesMax
  }

  /**
   * Stores the updates read after the id that `nextRead` returned.
   *
   * @param updates - in id order; empty if there is nothing above that id
   */
  loaded(updates: readonly PendingUpdate[]): void {
    const read = this.#read
    // The ids of before a new numbering are of no use.
    if (read === undefined) return
    this.#read = undefined
    this.#readNumber++
    if (read.lane === undefined) this.#loadedNew(updates)
    else this.#loadedAgain(read.lane, read.after, updates)
  }

  /**
   * Takes the next delivery. Expired updates before it are given up; `takeExpired` returns them.
   *
   * @returns the lane whose first update is to be sent, now in flight; undefined if no lane is ready
   */
  take(now: Moment): Lane | undefined {
    for (;;) {
      const lane = this.#ready.shift()
      if (lane === undefined) return undefined
      const update = lane.first
      if (update === undefined) continue
      if (update.expiresAtS * 1_000 > now.wallMs) {
        lane.to('in_flight')
        return lane
      }
      this.#lose(update, lane)
      this.#advance(lane)
    }
  }

  /** Ends the delivery of the lane's first update: delivered, or refused for good. */
  delivered(lane: Lane): void {
    this.#hasLastFailed = false
    lane.turn = 'first'
    this.#advance(lane)
  }

  /** Puts a lane back because nothing was sent, as if it had not been taken. */
  returned(lane: Lane): void {
    if (lane.isAbandoned) {
      this.#advance(lane)
      return
    }
    lane.to('ready')
    this.#ready.push(lane)
  }

  /**
   * Puts a lane back because the endpoint has ended the connection, which had answers before, unanswered: it may not have seen
   * the update.
   *
   * @returns false if the update was repeated for this reason already
   */
  repeat(lane: Lane): boolean {
    if (lane.isRepeated) return false
    lane.isRepeated = true
    this.returned(lane)
    return true
  }

  /**
   * Reports that the delivery of the lane's first update failed. The update is given up if its retry would come after its
   * expiry.
   *
   * @param retryAfterMs - the delay that the endpoint asked for
   */
  failed(lane: Lane, retryAfterMs: number | undefined, now: Moment): void {
    const update = lane.first
    if (update === undefined) return
    lane.failures++
    lane.isRepeated = false
    lane.turn = 'failed'
    this.#hasLastFailed = true
    if (lane.isAbandoned) {
      this.#advance(lane)
      return
    }
    const failure = { failures: lane.failures, retryAfterMs, delaysS: this.#retryDelaysS }
    const delayMs = retryDelayMs(failure, this.#random)
    if (now.wallMs + delayMs >= update.expiresAtS * 1_000) {
      this.#lose(update, lane)
      this.#advance(lane)
    } else if (delayMs === 0 && this.#ready.count('failed') < this.#maxConnections) {
      this.returned(lane)
    } else {
      this.#window.unload(lane)
      lane.to('waiting')
      lane.dueMs = now.monotonicMs + delayMs
      lane.isAskedToWait = retryAfterMs !== undefined
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
   * Makes lanes hungry whose retry is not due yet. Their failures stay, so a failure is followed by the same delay as before.
   *
   * @returns how many lanes
   */
  retry({ orderingKeys, isPastRetryAfter }: RetryNow): number {
    const lanes = this.#waiting.take(
      ({ key, isAskedToWait }) =>
        (orderingKeys?.includes(key) ?? true) && (isPastRetryAfter || !isAskedToWait),
    )
    for (const lane of lanes) this.#toHungry(lane)
    return lanes.length
  }

  /** Gives up all loaded updates that have expired, except in lanes that are in flight. */
  expire(wallMs: number): void {
    this.#ready.each((lane) => {
      this.#expireIn(lane, wallMs)
      this.#goOn(lane)
    })
  }

  /**
   * Lets go of an update that somebody else takes out of the queue.
   *
   * @returns false if it is in flight, so that it must stay
   */
  release({ updateId, orderingKey }: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): boolean {
    const lane = this.#lanes.get(orderingKey)
    const isIt = (update: PendingUpdate): boolean => update.updateId === updateId
    if (lane?.first === undefined) return true
    if (lane.status === 'in_flight') {
      if (isIt(lane.first)) return false
      this.#window.drop(lane, isIt)
      return true
    }
    this.#ready.each((other) => {
      if (other !== lane) return this.#ready.push(other)
      this.#window.drop(lane, isIt)
      return this.#goOn(lane)
    })
    return true
  }

  /** The update is in flight and leaves the queue meanwhile: whatever becomes of it, it is not sent again. */
  abandon({ updateId, orderingKey }: Pick<PendingUpdate, 'updateId' | 'orderingKey'>): void {
    const lane = this.#lanes.get(orderingKey)
    if (lane?.first?.updateId === updateId) lane.isAbandoned = true
  }

  /** Returns the updates that were given up because they expired, since the last call. */
  takeExpired(): readonly LostUpdate[] {
    if (this.#lost.length === 0) return none
    const lost = this.#lost
    this.#lost = []
    return lost
  }

  #lose(update: PendingUpdate, { failures: attempts, lastError }: Tries): void {
    this.#lost.push({ update, reason: 'expired', attempts, lastError })
  }

  #expireIn(lane: Lane, wallMs: number): void {
    const { first, failures, lastError } = lane
    const isOver = ({ expiresAtS }: PendingUpdate): boolean => expiresAtS * 1_000 <= wallMs
    for (const update of this.#window.drop(lane, isOver)) {
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
    if (lane.missedId === 0) this.#lanes.delete(lane.key)
    else this.#toHungry(lane)
  }

  #toHungry(lane: Lane): void {
    lane.to('hungry')
    if (lane.turn === 'untried') this.#parked.push(lane)
    else this.#hungry[lane.turn].add(lane)
  }

  /** A full window has room for one more lane of each turn, so that none of them starves. */
  #hasRoomIn(turn: LaneTurn): boolean {
    const count = this.#ready.count(turn)
    return count === 0 || (count < this.#maxConnections && this.#window.hasRoom)
  }

  /** While the queue is read on to its end, untried keys are parked until none is left, so that the newest can come first. */
  get #wantsUntried(): boolean {
    return this.looksAhead ? this.#ready.count('untried') === 0 : this.#hasRoomIn('untried')
  }

  #nextFirst(): Read | undefined {
    if (!this.#hasRoomIn('first')) return undefined
    const lane = firstOf(this.#hungry.first)
    if (lane !== undefined) return readFor(lane, webhookReadUpdatesMax)
    if (!this.#hasLastFailed || this.#ready.count('first') > 0) return undefined
    const newest = this.#nextParked(() => this.#parked.pop())
    if (newest === undefined) return undefined
    newest.turn = 'first'
    this.#toHungry(newest)
    return readFor(newest, 1)
  }

  #nextUntried(): Read | undefined {
    const isWanted = this.#wantsUntried
    const oldest = isWanted ? this.#nextParked(() => this.#parked.shift()) : undefined
    if (oldest !== undefined) return readFor(oldest, webhookReadUpdatesMax)
    if (this.#atEnd || this.#lanes.size >= this.#lanesMax) return undefined
    if (!this.looksAhead && !(isWanted && this.#window.hasRoom)) return undefined
    return { after: this.#frontier, limit: webhookReadUpdatesMax, lane: undefined }
  }

  /** Failed lanes are rarely close to each other, unless there are many. */
  #nextFailed(): Read | undefined {
    const lane = firstOf(this.#hungry.failed)
    if (lane === undefined || !this.#hasRoomIn('failed')) return undefined
    return readFor(lane, Math.min(this.#hungry.failed.size, webhookReadUpdatesMax))
  }

  #nextParked(next: () => Lane | undefined): Lane | undefined {
    for (let lane = next(); lane !== undefined; lane = next()) {
      if (lane.status === 'hungry' && lane.turn === 'untried') return lane
    }
    return undefined
  }

  #loadedNew(updates: readonly PendingUpdate[]): void {
    for (const update of updates) {
      if (!this.#place(update)) break
      this.#frontier = update.updateId
    }
    if (updates.length === 0) this.#atEnd = !this.#isPushed
  }

  /** Returns false if there is no room; the reading stops before this update. */
  #place(update: PendingUpdate): boolean {
    const lane = this.#lanes.get(update.orderingKey)
    if (lane === undefined) return this.#placeInNewLane(update)
    if (update.updateId <= lane.loadedId) return true
    if (lane.missedId === 0 && !this.#window.isFull(lane)) {
      if (!this.#window.hasRoom && !this.looksAhead) return false
      if (this.#window.hasRoomFor(lane)) {
        this.#window.append(lane, update)
        return true
      }
    }
    lane.miss(update.updateId)
    return true
  }

  #placeInNewLane(update: PendingUpdate): boolean {
    const isParked = this.looksAhead && !this.#wantsUntried
    const hasRoom = isParked || this.#window.hasRoom || this.#wantsUntried
    if (this.#lanes.size >= this.#lanesMax || !hasRoom) return false
    const lane = new Lane(update)
    this.#lanes.set(lane.key, lane)
    if (isParked) {
      lane.unload()
      this.#toHungry(lane)
    } else {
      this.#ready.push(lane)
      this.#window.added(lane)
    }
    return true
  }

  /** Takes in a page that begins with the first update that `lane` has missed. */
  #loadedAgain(lane: Lane, fromId: number, updates: readonly PendingUpdate[]): void {
    let toId = this.#frontier
    for (const update of updates) {
      toId = update.updateId
      if (toId > this.#frontier) break
      const other = this.#lanes.get(update.orderingKey)
      if (other !== undefined && other.missedId > fromId) this.#feed(other, update, lane)
    }
    if (lane.skippedInRead !== this.#readNumber) lane.missesOnlyAfter(toId)
    this.#endRead(lane)
  }

  #endRead(lane: Lane): void {
    if (lane.status !== 'hungry') return
    if (lane.missedId !== 0) {
      this.#toHungry(lane)
    } else {
      // Its updates have left the queue: they were swept after their expiry.
      this.#notHungry(lane)
      this.#lanes.delete(lane.key)
    }
  }

  /** Gives a lane its next missed update. */
  #feed(lane: Lane, update: PendingUpdate, target: Lane): void {
    if (update.updateId < lane.missedId || lane.skippedInRead === this.#readNumber) return
    if (!this.#mayFeed(lane, target)) {
      lane.missedId = update.updateId
      lane.skippedInRead = this.#readNumber
      return
    }
    const isHungry = lane.status === 'hungry'
    if (isHungry) this.#notHungry(lane)
    this.#window.append(lane, update)
    lane.missesOnlyAfter(update.updateId)
    if (isHungry) this.returned(lane)
  }

  /** Hungry lanes are fed only if they share the turn of the lane that is read for, so that those of other turns do not fill the window. */
  #mayFeed(lane: Lane, target: Lane): boolean {
    if (lane === target && lane.first === undefined) return true
    const isWanted =
      lane.status === 'hungry' ? lane.turn === target.turn : lane.status !== 'waiting'
    return isWanted && !this.#window.isFull(lane) && this.#window.hasRoomFor(lane)
  }

  /** A parked lane that is no longer hungry is left out when its turn comes. */
  #notHungry(lane: Lane): void {
    if (lane.turn !== 'untried') this.#hungry[lane.turn].delete(lane)
  }
}

function readFor(lane: Lane, limit: number): Read {
  return { after: lane.missedId - 1, limit, lane }
}

function firstOf(lanes: ReadonlySet<Lane>): Lane | undefined {
  for (const lane of lanes) return lane
  return undefined
}

const none: readonly LostUpdate[] = []
const noTries: Tries = { failures: 0, lastError: undefined }
