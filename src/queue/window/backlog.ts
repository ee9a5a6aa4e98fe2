/**
 * The pending updates of one queue: their counts and the loaded part. Everything here is in memory and synchronous. What
 * is on disk is only counted here; `QueueReader` and `UpdateQueue` read and write it.
 *
 *      floor                    loadedTo                  visibleTo
 *   ---- | ---- in the window ---- | ---- on disk only ---- | -- being synced --
 *
 * No update below `floor` is live. While `loadedTo` equals `visibleTo`, the window is complete and new updates join it. A
 * queue that is too deep keeps its newest updates on disk and reads them page by page when it reaches them.
 *
 * With a webhook, the window is a cache of recent updates: they are read and removed in any order, and the window jumps
 * to the end once everything before it has been read. Updates that stay pending before the window form the gap:
 *
 *      floor                 windowFrom                  loadedTo = visibleTo
 *   ---- | -- the gap: on disk only -- | ---- in the window ---- | -- being synced --
 *
 * A caller that needs the oldest updates in memory closes the gap first: the window is unloaded and begins again at the
 * floor.
 */
import assert from 'node:assert/strict'
import { responseBytesMax, updateEnvelopeBytes, windowChunkBytesMax } from '../limits.ts'
import { type PushOperation, textBytesOf } from '../../shard/operations.ts'
import type { QueueState } from '../../shard/records/record.ts'
import type { StoredUpdate, UpdatesRead } from '../../shard/records/stored-records.ts'
import type { PendingUpdate } from '../../delivery/delivery-source.ts'
import {
  type Removed,
  type RemovedEntries,
  Window,
  type WindowEntry,
  type WindowUpdate,
  type WindowBudget,
} from './window.ts'
import type { StoredRun } from '../kept/stored-runs.ts'
import { mib } from '../../kit/limits.ts'

/** Updates that were removed at the old end of the queue. */
export interface AdvancedRange {
  /** The floor before the removal. */
  readonly from: number
  readonly floor: number
  readonly removedCount: number
  readonly removedBytes: number
}

/** The result of removing them. */
export interface Advanced extends AdvancedRange {
  /** When the updates were stored, except those that were not read. */
  readonly stored: readonly StoredRun[]
  /** The first id that was not in memory. */
  readonly unreadFrom: number
  /** Those in memory that have a trace, if any. */
  readonly traced?: readonly WindowEntry[]
}

export type IsHeld = (update: WindowEntry) => boolean

/**
 * A queue keeps at most this many pushed bytes in memory, two of the largest responses; older or further updates are read
 * from disk when they are needed. Updates that were removed count, too, while pending ones keep their chunk in memory.
 */
export const queueWindowBytesMax = 8 * mib

/** The counts and the window of one queue. */
export class Backlog {
  readonly #budget: WindowBudget
  readonly #window = new Window()
  #floor: number
  #loadedTo: number
  #visibleTo: number
  /** The end of the gap, if there is one. */
  #windowFrom: number
  /** The number of live updates in the gap; 0 if there is no gap. */
  #gapCount = 0
  /** The number of visible live updates, in the window and on disk. */
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

  /** True if all visible updates are in the window. */
  get isLoaded(): boolean {
    return this.#loadedTo >= this.#visibleTo
  }

  /** The number of live updates that are only on disk. */
  get unloadedCount(): number {
    return this.#liveCount - this.#window.liveCount
  }

  get loadedCount(): number {
    return this.#window.liveCount
  }

  /**
   * The id of the oldest pending update, or the next id if none is pending. If the oldest update is not loaded, this is a
   * lower bound of its id.
   */
  first(): WindowEntry | undefined {
    return this.#window.first()
  }

  /**
   * The id of the oldest pending update, or the next id if none is pending. A lower id if the oldest update is not
   * loaded.
   */
  get oldestId(): number {
    if (this.#gapCount > 0) return this.#floor
    return this.#window.first()?.updateId ?? this.#loadedTo
  }

  /**
   * True if the number of updates below `to` is unknown. It is known only if the window reaches `to`, or if `to` is past
   * all updates.
   */
  isBeyondWindow(to: number): boolean {
    return to > this.#floor && to > this.#loadedTo && to < this.#visibleTo
  }

  /** True if a reply of `limit` updates needs more than what is loaded. */
  needsMoreFor(limit: number): boolean {
    return !this.isLoaded && this.#window.liveCount < limit && this.#window.bytes < responseBytesMax
  }

  /** Whether the windows of the worker hold too much. */
  get isBudgetSpent(): boolean {
    return this.#budget.isSpent
  }

  /** Whether they do, and this one is not small. */
  get isOverBudget(): boolean {
    return this.#budget.isSpent && this.#window.heldBytes > windowChunkBytesMax
  }

  page(limit: number, nowS: number): readonly WindowEntry[] | undefined {
    return this.#window.page(limit, nowS)
  }

  after(afterId: number, limit: number): readonly WindowEntry[] {
    return this.#window.after(afterId, limit)
  }

  /** True if an update with this id would be only on disk. */
  isUnloaded(updateId: number): boolean {
    if (updateId < this.#floor || updateId >= this.#visibleTo) return false
    return updateId >= this.#loadedTo || this.isInGap(updateId)
  }

  isInGap(updateId: number): boolean {
    return this.#gapCount > 0 && updateId < this.#windowFrom
  }

  /** Returns the id of the `nth`-newest update. All updates must be loaded. */
  newestId(nth: number): number | undefined {
    assert(this.isLoaded, 'all updates are loaded')
    return this.#window.idBeforeNewest(nth - 1)
  }

  /**
   * Counts an update that has become visible.
   *
   * @returns whether there is room to `keep` it; the caller must do that immediately
   */
  add(operation: PushOperation): boolean {
    const isLoaded = this.isLoaded
    this.#visibleTo = operation.updateId + 1
    this.#liveCount += 1
    this.#liveBytes += textBytesOf(operation)
    return isLoaded && !this.#budget.isSpent && this.#window.heldBytes < queueWindowBytesMax
  }

  /** Appends to the window the update that `add` has just counted, stored at this wall time. */
  keep(operation: PushOperation, storedAtMs?: number): void {
    if (this.#window.liveCount === 0 && this.#gapCount === 0) this.#floor = operation.updateId
    this.#append(operation, storedAtMs)
    this.#loadedTo = this.#visibleTo
  }

  /** Appends updates read from disk. The read began at the current `loadedTo` or below. */
  load({ updates, next }: UpdatesRead): void {
    if (this.#isDetached) return
    assert((updates.at(-1)?.updateId ?? -1) < next, 'a read goes on after its last update')
    const isFirst = this.#window.liveCount === 0
    this.#window.reserve(textBytesSum(updates) + updates.length * updateEnvelopeBytes)
    for (const update of updates) {
      if (update.updateId >= this.#loadedTo) this.#append(update)
    }
    this.#loadedTo = Math.max(this.#loadedTo, next)
    if (isFirst) this.#floor = Math.max(this.#floor, this.oldestId)
  }

  /**
   * Removes everything below `to`.
   *
   * @param onDisk - the updates below `to` that are not loaded
   * @returns undefined if nothing was removed
   */
  advance(to: number, onDisk: Readonly<Removed> = nothing): Advanced | undefined {
    if (to <= this.#floor) return undefined
    const from = this.#floor
    const unreadFrom = Math.max(from, this.#loadedTo)
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
    const stored = [...removed.stored, ...onDisk.stored]
    const advanced = { from, floor: this.#floor, removedCount, removedBytes, stored, unreadFrom }
    return removed.traced === undefined ? advanced : { ...advanced, traced: removed.traced }
  }

  /** Removes those of `updates` that are loaded. */
  remove(updates: readonly { readonly updateId: number }[]): RemovedEntries {
    const removed = this.#remove(() => this.#window.remove(updates))
    if (removed.count > 0) {
      this.#raiseFloor(this.#liveCount === 0 ? this.#visibleTo : this.oldestId)
    }
    return removed
  }

  /** Removes one update that is not loaded from the counts. */
  removeUnloaded({ updateId, textBytes }: PendingUpdate): void {
    this.#liveCount -= 1
    this.#liveBytes -= textBytes
    if (this.isInGap(updateId)) this.#gapCount -= 1
    if (this.#liveCount === 0) this.#raiseFloor(this.#visibleTo)
    else if (this.#gapCount === 0) this.#raiseFloor(this.oldestId)
  }

  /** Reports that the first update found by a read from `from` on has the id `first`. */
  sawFirst(from: number, first: number): void {
    if (from <= this.#floor) this.#raiseFloor(Math.min(first, this.#visibleTo))
  }

  /**
   * Everything has been read: the window begins again at the end, and all pending updates become the gap.
   *
   * @param isHeld - whether a dispatcher holds an update, which then stays in memory
   */
  jump(isHeld: IsHeld): void {
    if (this.#isDetached) return
    this.#clearWindow(isHeld)
    this.#gapCount = this.#liveCount
    this.#windowFrom = this.#visibleTo
    this.#loadedTo = this.#visibleTo
    if (this.#gapCount === 0) this.#floor = this.#visibleTo
  }

  /**
   * Unloads the window, which can be read again from the floor on. This closes the gap.
   *
   * @param isHeld - as for `jump`
   */
  unload(isHeld: IsHeld): void {
    this.#raiseFloor(this.oldestId)
    this.#clearWindow(isHeld)
    this.#gapCount = 0
    this.#loadedTo = this.#floor
  }

  /** The queue is empty and continues at another id. */
  restartAt(nextId: number): void {
    this.#window.clear()
    this.#gapCount = 0
    this.#floor = nextId
    this.#loadedTo = nextId
    this.#visibleTo = nextId
  }

  /** Releases all updates and accepts none from now on. */
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

  #clearWindow(isHeld: IsHeld = () => false): void {
    for (const entry of this.#window.after(0, this.loadedCount)) {
      if (isHeld(entry)) entry.moveOut()
    }
    this.#budget.add(-this.#window.heldBytes)
    this.#window.clear()
  }

  #append(update: WindowUpdate, storedAtMs?: number): void {
    const before = this.#window.heldBytes
    this.#window.append(update, storedAtMs)
    this.#budget.add(this.#window.heldBytes - before)
  }

  /** Removes entries from the window and from the counts. */
  #remove<R extends Removed>(take: () => R): R {
    const before = this.#window.heldBytes
    const removed = take()
    this.#budget.add(this.#window.heldBytes - before)
    this.#liveCount -= removed.count
    this.#liveBytes -= removed.bytes
    return removed
  }
}

const nothing: Readonly<Removed> = { count: 0, bytes: 0, stored: [] }

/** Returns the bytes of the texts of all updates. */
export function textBytesSum(updates: readonly StoredUpdate[]): number {
  return updates.reduce((sum, update) => sum + update.text.length, 0)
}
