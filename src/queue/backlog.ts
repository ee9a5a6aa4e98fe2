/**
 * What is pending of one queue: how much it is, and the loaded part of it. All in memory and all at once: what is
 * on disk is counted here, and read and written by others.
 *
 *      floor                    loadedTo                  visibleTo
 *   ---- | ---- in the window ---- | ---- on disk only ---- | -- being synced --
 *
 * Below `floor` nothing is live. While `loadedTo` equals `visibleTo` the window is complete and new updates join it; a
 * queue that is too deep keeps its newest on disk and reads them page by page when it gets there.
 *
 * Under a webhook the window is a cache of what was pushed of late: updates are read and removed wherever they lie, and
 * the window jumps to the end when all before it has been read. What is then left behind it is the gap:
 *
 *      floor                 windowFrom                  loadedTo = visibleTo
 *   ---- | -- the gap: on disk only -- | ---- in the window ---- | -- being synced --
 *
 * Whoever needs the oldest in memory closes the gap first: the window is given up and begins again at the floor.
 */
import { answerBytesMax, queueWindowBytesMax, updateEnvelopeBytes } from '../limits.ts'
import type { PushOperation } from '../shard/operations.ts'
import type { QueueState } from '../shard/record.ts'
import type { StoredUpdate, UpdatesRead } from '../shard/stored.ts'
import type { PendingUpdate } from '../webhook/delivery-source.ts'
import {
  type Removed,
  type RemovedEntries,
  Window,
  type WindowEntry,
  type WindowUpdate,
} from './window.ts'
import type { WindowBudget } from './window-budget.ts'

/** Updates that have left at the old end of the queue. */
export interface Advanced {
  /** The floor before. */
  readonly from: number
  readonly floor: number
  readonly removedCount: number
  readonly removedBytes: number
}

export class Backlog {
  readonly #budget: WindowBudget
  readonly #window = new Window()
  #floor: number
  #loadedTo: number
  #visibleTo: number
  /** Where the gap ends, while there is one. */
  #windowFrom: number
  /** How many are live in the gap; there is none where it is 0. */
  #gapCount = 0
  /** Visible and live, in the window and on disk. */
  #liveCount: number
  #liveBytes: number
  #isDetached = false

  constructor(state: QueueState, budget: WindowBudget) {
    this.#budget = budget
    this.#floor = state.liveCount === 0 ? state.nextId : state.floor
    this.#loadedTo = this.#floor
    this.#windowFrom = this.#floor
    this.#visibleTo = state.nextId
    this.#liveCount = state.liveCount
    this.#liveBytes = state.liveBytes
  }

  get liveCount(): number {
    return this.#liveCount
  }

  get liveBytes(): number {
    return this.#liveBytes
  }

  get floor(): number {
    return this.#floor
  }

  get loadedTo(): number {
    return this.#loadedTo
  }

  get visibleTo(): number {
    return this.#visibleTo
  }

  get hasGap(): boolean {
    return this.#gapCount > 0
  }

  get windowFrom(): number {
    return this.#windowFrom
  }

  get isDetached(): boolean {
    return this.#isDetached
  }

  /** All that is visible is in the window. */
  get isLoaded(): boolean {
    return this.#loadedTo >= this.#visibleTo
  }

  get loadedCount(): number {
    return this.#window.liveCount
  }

  /** The oldest loaded update. */
  first(): WindowEntry | undefined {
    return this.#window.first()
  }

  /** The id of the oldest pending update, or of the next one. Not above it where that is not loaded. */
  get oldestId(): number {
    if (this.#gapCount > 0) return this.#floor
    return this.#window.first()?.updateId ?? this.#loadedTo
  }

  /** How many there are below `to` is known only where the window reaches it, or where it is all of them. */
  isBeyondWindow(to: number): boolean {
    return to > this.#floor && to > this.#loadedTo && to < this.#visibleTo
  }

  /** An answer of `limit` updates takes more than what is loaded. */
  needsMoreFor(limit: number): boolean {
    return !this.isLoaded && this.#window.liveCount < limit && this.#window.bytes < answerBytesMax
  }

  page(limit: number, nowS: number): readonly WindowEntry[] | undefined {
    return this.#window.page(limit, nowS)
  }

  after(afterId: number, limit: number): readonly WindowEntry[] {
    return this.#window.after(afterId, limit)
  }

  /** Whether an update of this id would lie on disk alone. */
  isUnloaded(updateId: number): boolean {
    if (updateId < this.#floor || updateId >= this.#visibleTo) return false
    return updateId >= this.#loadedTo || this.isInGap(updateId)
  }

  isInGap(updateId: number): boolean {
    return this.#gapCount > 0 && updateId < this.#windowFrom
  }

  /** The id of the `nth`-newest update, where all are loaded. */
  newestId(nth: number): number | undefined {
    return this.#window.idBeforeNewest(nth - 1)
  }

  /** Counts an update that has become visible. Whether there is room to `keep` it, which must then be done now. */
  add(operation: PushOperation): boolean {
    const isLoaded = this.isLoaded
    this.#visibleTo = operation.updateId + 1
    this.#liveCount += 1
    this.#liveBytes += operation.text.length
    return isLoaded && !this.#budget.isSpent && this.#window.bytes < queueWindowBytesMax
  }

  keep(operation: PushOperation): void {
    if (this.#window.liveCount === 0 && this.#gapCount === 0) this.#floor = operation.updateId
    this.#append(operation)
    this.#loadedTo = this.#visibleTo
  }

  /** Takes in what was read of the disk, from `loadedTo` at the time or from before it. */
  load({ updates, next }: UpdatesRead): void {
    if (this.#isDetached) return
    const isFirst = this.#window.liveCount === 0
    this.#window.reserve(textBytesOf(updates) + updates.length * updateEnvelopeBytes)
    for (const update of updates) {
      if (update.updateId >= this.#loadedTo) this.#append(update)
    }
    this.#loadedTo = Math.max(this.#loadedTo, next)
    if (isFirst) this.#floor = Math.max(this.#floor, this.oldestId)
  }

  /** Removes everything below `to`, `onDisk` being those of it that are not loaded. Nothing where nothing is removed. */
  advance(to: number, onDisk: Readonly<Removed> = nothing): Advanced | undefined {
    if (to <= this.#floor) return undefined
    const from = this.#floor
    const removed = this.#remove(() => this.#window.removeBelow(to))
    let removedCount = removed.count + onDisk.count
    let removedBytes = removed.bytes + onDisk.bytes
    this.#liveCount -= onDisk.count
    this.#liveBytes -= onDisk.bytes
    if (to >= this.#visibleTo) {
      removedCount += this.#liveCount
      removedBytes += this.#liveBytes
      this.#liveCount = 0
      this.#liveBytes = 0
      this.#gapCount = 0
    }
    this.#floor = Math.min(to, this.#visibleTo)
    this.#loadedTo = Math.max(this.#loadedTo, this.#floor)
    if (removedCount === 0) return undefined
    return { from, floor: this.#floor, removedCount, removedBytes }
  }

  /** Takes out of the queue those of these updates that are loaded. */
  remove(updates: readonly { readonly updateId: number }[]): RemovedEntries {
    const removed = this.#remove(() => this.#window.remove(updates))
    if (removed.count > 0) {
      this.#raiseFloor(this.#liveCount === 0 ? this.#visibleTo : this.oldestId)
    }
    return removed
  }

  /** Counts one out that is not loaded. */
  removeUnloaded({ updateId, textBytes }: PendingUpdate): void {
    this.#liveCount -= 1
    this.#liveBytes -= textBytes
    if (this.isInGap(updateId)) this.#gapCount -= 1
    if (this.#liveCount === 0) this.#raiseFloor(this.#visibleTo)
    else if (this.#gapCount === 0) this.#raiseFloor(this.oldestId)
  }

  /** What was read from `from` on begins with `first`. */
  sawFirst(from: number, first: number): void {
    if (from <= this.#floor) this.#raiseFloor(Math.min(first, this.#visibleTo))
  }

  /** Everything has been read: the window begins anew at the end, and what is pending is left behind it. */
  jump(): void {
    if (this.#isDetached) return
    this.#clearWindow()
    this.#gapCount = this.#liveCount
    this.#windowFrom = this.#visibleTo
    this.#loadedTo = this.#visibleTo
    if (this.#gapCount === 0) this.#floor = this.#visibleTo
  }

  /** Lets go of the loaded part, which can be read again from the floor on. This closes the gap. */
  unload(): void {
    this.#raiseFloor(this.oldestId)
    this.#clearWindow()
    this.#gapCount = 0
    this.#loadedTo = this.#floor
  }

  /** The queue is empty and goes on at another id. */
  restartAt(nextId: number): void {
    this.#window.clear()
    this.#gapCount = 0
    this.#floor = nextId
    this.#loadedTo = nextId
    this.#visibleTo = nextId
  }

  /** Holds nothing any more and takes nothing in any more. */
  detach(): void {
    this.#isDetached = true
    this.#clearWindow()
    this.#gapCount = 0
    this.#floor = this.#visibleTo
    this.#loadedTo = this.#visibleTo
  }

  #raiseFloor(to: number): void {
    this.#floor = Math.max(this.#floor, to)
    this.#loadedTo = Math.max(this.#loadedTo, this.#floor)
  }

  #clearWindow(): void {
    this.#budget.add(-this.#window.bytes)
    this.#window.clear()
  }

  #append(update: WindowUpdate): void {
    const before = this.#window.bytes
    this.#window.append(update)
    this.#budget.add(this.#window.bytes - before)
  }

  /** Takes entries out of the window and out of the counts. */
  #remove<R extends Removed>(take: () => R): R {
    const before = this.#window.bytes
    const removed = take()
    this.#budget.add(this.#window.bytes - before)
    this.#liveCount -= removed.count
    this.#liveBytes -= removed.bytes
    return removed
  }
}

const nothing: Readonly<Removed> = { count: 0, bytes: 0 }

export function textBytesOf(updates: readonly StoredUpdate[]): number {
  return updates.reduce((sum, update) => sum + update.text.length, 0)
}
