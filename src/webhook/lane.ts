/**
 * The updates of one ordering key that are on their way to an endpoint. One is in flight at a time.
 *
 *     ready ----> flying --delivered, expired--> ready, or gone when nothing is left
 *       ^           |
 *       |           +--failed--> waiting --due--> hungry --loaded--> ready
 *       +--failed, again at once--+
 *
 * Only ready and flying lanes hold updates. A waiting lane has let go of its own, even of the one that
 * failed, so that any number of failing keys leaves the window free for the others; when its time has come
 * it is hungry: its updates have to be read again.
 */

import type { PendingUpdate } from './delivery-source.ts'

export type LaneStatus = 'ready' | 'flying' | 'waiting' | 'hungry'

export class Lane {
  readonly key: string
  status: LaneStatus = 'ready'
  /** The next to be sent; undefined while waiting or hungry. */
  first: PendingUpdate | undefined
  /** Those behind `first`; most lanes never have any. */
  rest: PendingUpdate[] | undefined
  /** Of the texts of all of them. */
  bytes: number
  /** How often `first` has failed. */
  failures = 0
  /** What the last of these failures was. */
  lastError: string | undefined
  /** The update that `failures` is about. */
  failedId = 0
  /** Everything of this key up to this id is loaded, or gone. */
  loadedId: number
  /** Something of this key at or above this id was passed over while reading; 0 where nothing was. */
  missedId = 0
  /** The scan in which it was passed over: the same scan cannot make up for it. */
  missedInScan = 0
  /** The scan that has put it right, though perhaps only up to where that scan is now. */
  fedInScan = 0
  /** Monotonic; when a waiting lane is tried again. */
  dueMs = 0

  constructor(first: PendingUpdate) {
    this.key = first.orderingKey
    this.first = first
    this.loadedId = first.updateId
    this.bytes = first.textBytes
  }

  get size(): number {
    return (this.first === undefined ? 0 : 1) + (this.rest?.length ?? 0)
  }

  append(update: PendingUpdate): void {
    this.loadedId = update.updateId
    this.bytes += update.textBytes
    if (this.first === undefined) {
      if (update.updateId !== this.failedId) this.#forgetFailures()
      this.first = update
    } else if (this.rest === undefined) this.rest = [update]
    else this.rest.push(update)
  }

  dropFirst(): void {
    this.bytes -= this.first?.textBytes ?? 0
    this.first = this.rest?.shift()
    this.#forgetFailures()
  }

  /** Takes out those that have expired, wherever they stand. */
  dropExpired(wallMs: number): readonly PendingUpdate[] {
    const held = this.first === undefined ? [] : [this.first, ...(this.rest ?? [])]
    const expired = held.filter((update) => update.expiresAtS * 1_000 <= wallMs)
    if (expired.length === 0) return expired
    const [first, ...rest] = held.filter((update) => update.expiresAtS * 1_000 > wallMs)
    if (this.first !== first) this.#forgetFailures()
    this.first = first
    this.rest = rest.length === 0 ? undefined : rest
    for (const update of expired) this.bytes -= update.textBytes
    return expired
  }

  /** Lets go of all updates from `first` on. */
  unload(scan: number): void {
    const { first } = this
    if (first === undefined) return
    this.failedId = first.updateId
    this.missedId = first.updateId
    this.missedInScan = scan
    this.loadedId = first.updateId - 1
    this.first = undefined
    this.rest = undefined
    this.bytes = 0
  }

  miss(updateId: number, scan: number): void {
    this.missedId = updateId
    this.missedInScan = scan
  }

  /** They were those of another `first`. */
  #forgetFailures(): void {
    this.failures = 0
    this.lastError = undefined
  }
}
