/**
 * The updates of one ordering key that are on their way to an endpoint. At most one of them is in flight.
 *
 *     ready ----> in_flight --delivered, expired--> ready, or removed when nothing is left
 *       ^           |
 *       |           +--failed--> waiting --due--> hungry --loaded--> ready
 *       +--failed, immediate retry--+
 *
 * Only lanes that are ready or in flight (`in_flight`) hold updates. A waiting lane has released its updates, even the one
 * that failed, so that failing keys leave the window free for others however many they are. When its retry is due the
 * lane is hungry: its updates must be read again.
 */
import { changesOf } from '../../kit/changes-of.ts'
import type { PendingUpdate } from '../delivery-source.ts'

/** What a lane does now, as the drawing shows. */
export type LaneStatus = 'ready' | 'in_flight' | 'waiting' | 'hungry'

const changed = changesOf<LaneStatus>({
  // All of its updates may expire, some of which are not loaded.
  ready: ['ready', 'in_flight', 'hungry'],
  in_flight: ['ready', 'waiting', 'hungry'],
  waiting: ['hungry'],
  // A read may find none of its updates.
  hungry: ['ready', 'hungry'],
})

/**
 * Whose turn a lane shares: that of the keys whose last attempt succeeded, of those that were not tried, or of those whose
 * first update has failed (ready-lanes.ts).
 */
export type LaneTurn = 'first' | 'untried' | 'failed'

/** The state of one ordering key. `DeliveryState` changes it. */
export class Lane {
  readonly key: string
  #status: LaneStatus = 'ready'
  turn: LaneTurn = 'untried'
  /** The next update to be sent; undefined if the lane is waiting or hungry. */
  first: PendingUpdate | undefined
  /** The updates after `first`; most lanes never have any. */
  rest: PendingUpdate[] | undefined
  /** The bytes of the texts of all its updates. */
  bytes: number
  /** How often `first` has failed. */
  failures = 0
  /** The error of the last of these failures. */
  lastError: string | undefined
  /** The id of the update that `failures` counts for. */
  failedId = 0
  /** Every update of this key up to this id is loaded or gone. */
  loadedId: number
  /** Of the updates of this key that were read, none below this id is missing; 0 if none at all is. */
  missedId = 0
  /** None above this id is missing either. */
  missedToId = 0
  /** The read in which one of them was skipped. The same read cannot load what follows it. */
  skippedInRead = 0
  /** When a waiting lane is tried again, monotonic. */
  dueMs = 0
  /** Whether the endpoint has asked for this time, with Retry-After. */
  isAskedToWait = false
  /** Whether `first` was sent on a connection that the endpoint ended unanswered, and has not failed since. */
  isRepeated = false
  /** Whether `first`, which is in flight, is not sent again, because it has left the queue. */
  isAbandoned = false

  constructor(first: PendingUpdate) {
    this.key = first.orderingKey
    this.first = first
    this.loadedId = first.updateId
    this.bytes = first.textBytes
  }

  get status(): LaneStatus {
    return this.#status
  }

  /** The id of the update that comes next, as far as it is known; 0 if none of its updates was read. */
  get nextId(): number {
    return this.first?.updateId ?? this.missedId
  }

  /** How often the update that comes next has failed. */
  get nextFailures(): number {
    return this.first !== undefined || this.failedId === this.missedId ? this.failures : 0
  }

  to(status: LaneStatus): void {
    this.#status = changed(this.#status, status)
  }

  get size(): number {
    return (this.first === undefined ? 0 : 1) + (this.rest?.length ?? 0)
  }

  /** Adds an update at the end. If it becomes `first` and is not the update that failed, the failures are forgotten. */
  append(update: PendingUpdate): void {
    this.loadedId = update.updateId
    this.bytes += update.textBytes
    if (this.first === undefined) {
      if (update.updateId !== this.failedId) this.#forgetFailures()
      this.first = update
    } else if (this.rest === undefined) this.rest = [update]
    else this.rest.push(update)
  }

  /** Removes the first update. */
  dropFirst(): void {
    this.isAbandoned = false
    this.bytes -= this.first?.textBytes ?? 0
    this.first = this.rest?.shift()
    this.#forgetFailures()
  }

  /** Removes and returns the updates for which `isOver` returns true, wherever they are. */
  drop(isOver: (update: PendingUpdate) => boolean): readonly PendingUpdate[] {
    const held = this.first === undefined ? [] : [this.first, ...(this.rest ?? [])]
    const dropped = held.filter(isOver)
    if (dropped.length === 0) return dropped
    const [first, ...rest] = held.filter((update) => !isOver(update))
    if (this.first !== first) this.#forgetFailures()
    this.first = first
    this.rest = rest.length === 0 ? undefined : rest
    for (const update of dropped) this.bytes -= update.textBytes
    return dropped
  }

  /** Releases all updates from `first` on. */
  unload(): void {
    const { first } = this
    if (first === undefined) return
    this.failedId = first.updateId
    this.missedId = first.updateId
    this.missedToId = Math.max(this.missedToId, this.loadedId)
    this.loadedId = first.updateId - 1
    this.first = undefined
    this.rest = undefined
    this.bytes = 0
  }

  /** Records that an update was skipped while it was read for the first time. */
  miss(updateId: number): void {
    if (this.missedId === 0) this.missedId = updateId
    this.missedToId = updateId
  }

  /** Records that everything up to this id is loaded or gone. */
  missesOnlyAfter(updateId: number): void {
    this.missedId = updateId >= this.missedToId ? 0 : updateId + 1
  }

  /** The failures belonged to another `first`. */
  #forgetFailures(): void {
    this.failures = 0
    this.lastError = undefined
    this.isRepeated = false
    if (this.turn === 'failed') this.turn = 'untried'
  }
}
