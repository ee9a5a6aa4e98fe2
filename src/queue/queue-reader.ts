/**
 * Reads the part of a backlog that is only on disk: pages for the window and for a webhook, the sizes of updates that are
 * removed without being loaded, and the newest ids.
 *
 * Work that changes the window or the counts runs one piece at a time, so that no piece sees a half-finished state of
 * another; reads for a webhook run beside it. Removals are not awaited. The reader remembers removed updates that are not
 * in the window until no read can return them. Before a read that goes below the window it waits for all other removals
 * (`settled`).
 *
 * A queue has no update that its counts do not have, and none of them can be missing: whoever has read all of it compares. The
 * ids alone do not tell, because updates leave in any order.
 */
import assert from 'node:assert/strict'
import type { Clock } from '../kit/clock.ts'
import type { QueueId } from '../shard/records/record-keys.ts'
import type { Operation } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import type { UpdatesRead } from '../shard/records/stored-records.ts'
import type { PendingUpdate } from '../delivery/delivery-source.ts'
import { type Advanced, type Backlog, type IsHeld, textBytesSum } from './window/backlog.ts'
import { DiskEntry, isQueued, type QueuedUpdate } from './queued-update.ts'
import { addRead, addStored, type StoredRun } from './kept/stored-runs.ts'
import type { RemovedEntries } from './window/window.ts'
import { Mutex } from '../kit/mutex.ts'
import { mib } from '../kit/limits.ts'

/** A queue as it is stored: what all that works on one queue shares. */
export interface StoredQueue {
  readonly id: QueueId
  readonly shard: Shard
  /** Makes operations of this queue durable. `waited` says that a caller waits for the result. */
  commit(operations: readonly Operation[], waited: boolean): Promise<void>
  /** Resolves when everything committed so far can be read from disk. */
  settled(): Promise<void>
}

/** The ids from `from` up to, but not including, `to`. */
interface IdRange {
  readonly from: number
  readonly to: number
}

/** A range of updates on disk that `advance` has counted in order to remove them together. */
interface Counted {
  readonly from: number
  to: number
  count: number
  bytes: number
  readonly stored: StoredRun[]
}

/** One read of a queue that is too long for memory returns this many updates: five getUpdates responses. */
export const queuePageUpdates = 500
/** One read of ids alone returns this many; each takes 40 bytes in memory, so this is 200 KB. */
export const queuePageIds = 5_000
/**
 * One read from disk returns at most this many bytes, because updates that do not fit beside the loaded ones are read
 * again.
 */
const webhookPageBytes = 1 * mib

export class QueueReader {
  readonly #stored: StoredQueue
  readonly #backlog: Backlog
  readonly #isHeld: IsHeld
  readonly #clock: Clock
  readonly #removals = new UnwrittenRemovals()
  readonly #work = new Mutex()
  /** The window was unloaded, so updates removed from it may still be on disk. */
  #isUnsettled = false
  /** What the current `advance` has counted so far. */
  #counted: Counted | undefined
  /** The page last returned to a webhook's dispatcher, which may not have loaded it yet. */
  #handed: IdRange = { from: 0, to: 0 }
  /** How many updates were reported that the counts have and that are not there. */
  #missingCount = 0

  /** @param isHeld - whether a dispatcher holds an update in memory */
  constructor(stored: StoredQueue, backlog: Backlog, isHeld: IsHeld, clock: Clock) {
    this.#stored = stored
    this.#backlog = backlog
    this.#isHeld = isHeld
    this.#clock = clock
  }

  get isWorking(): boolean {
    return this.#work.isBusy || this.#removals.isReading
  }

  /** True if the page that a dispatcher receives at this moment contains this id. */
  isBeingGiven(updateId: number): boolean {
    return updateId >= this.#handed.from && updateId < this.#handed.to
  }

  /** Unloads the window. The next access reads it again, from the floor on. */
  unload(): void {
    this.#backlog.unload(this.#isHeld)
    this.#isUnsettled = true
  }

  /** Reads the next page into the window, of at most `limit` updates. */
  loadMore(limit = queuePageUpdates): Promise<void> {
    return this.#exclusively(async () => {
      const range = { from: this.#backlog.loadedTo, to: this.#backlog.visibleTo }
      if (range.from < range.to) {
        await this.#read({ ...pageOf(range), limit }, (page) => this.#backlog.load(page))
        if (this.#backlog.isLoaded) this.#compare(0)
      }
    })
  }

  /** Reads pages until the window can serve a reply of `limit` updates. */
  async loadFor(limit: number): Promise<void> {
    while (this.#backlog.needsMoreFor(limit)) {
      // What is left over would not be kept.
      await this.loadMore(this.#backlog.isBudgetSpent ? limit : queuePageUpdates)
    }
  }

  /**
   * Returns pending updates above `afterId`: from the window if it has them, otherwise one page from disk, which bypasses
   * the window. A caller that has reached the end finds later updates in the window.
   */
  pendingAfter(
    afterId: number,
    limit: number,
  ): readonly QueuedUpdate[] | Promise<readonly QueuedUpdate[]> {
    const backlog = this.#backlog
    const from = Math.max(afterId + 1, backlog.floor)
    if (backlog.isInGap(from)) {
      return this.#pendingOnDisk({ from, to: backlog.windowFrom }, limit)
    }
    const found = backlog.after(afterId, limit)
    if (found.length > 0) return found
    const range = { from: Math.max(from, backlog.loadedTo), to: backlog.visibleTo }
    if (range.from < range.to) return this.#pendingOnDisk(range, limit)
    this.#jump()
    return none
  }

  /** Removes those of `updates` that are not loaded from the counts, and adds them to `removed`. */
  removeUnloaded(updates: readonly PendingUpdate[], removed: RemovedEntries): void {
    if (this.#backlog.isLoaded && !this.#backlog.hasGap) return
    for (const update of updates) {
      const { updateId, textBytes } = update
      if (!this.#backlog.isUnloaded(updateId) || this.#removals.has(updateId)) continue
      this.#removals.add(updateId)
      this.#backlog.removeUnloaded(update)
      removed.count += 1
      removed.bytes += textBytes
      removed.updateIds.push(updateId)
      if (isQueued(update)) addStored(removed.stored, update.storedAtMs)
      const counted = this.#counted
      if (counted === undefined || updateId < counted.from || updateId >= counted.to) continue
      counted.count -= 1
      counted.bytes -= textBytes
    }
  }

  /** The deletion of these updates is written. */
  written(updateIds: readonly number[]): void {
    this.#removals.written(updateIds)
  }

  /** Like `Backlog.advance`, for a range that is partly only on disk. That part is counted on disk and not loaded. */
  advance(to: number): Promise<Advanced | undefined> {
    return this.#exclusively(async () => {
      const from = this.#backlog.loadedTo
      const counted: Counted = { from, to: from, count: 0, bytes: 0, stored: [] }
      this.#counted = counted
      try {
        await this.#scan({ from, to }, ({ updates, next }) => {
          counted.to = next
          counted.count += updates.length
          counted.bytes += textBytesSum(updates)
          addRead(counted.stored, updates)
          return this.#backlog.floor < to
        })
      } finally {
        this.#counted = undefined
      }
      // A dispatcher may have read updates before they were damaged. They were not counted, and have left.
      const [count, bytes] = [Math.max(counted.count, 0), Math.max(counted.bytes, 0)]
      // Returns undefined if other calls have removed everything during the scan.
      return this.#backlog.advance(to, { ...counted, count, bytes })
    })
  }

  /** Calls `visit` with all updates that are not loaded, page by page. */
  async eachUnloaded(
    visit: (updates: readonly QueuedUpdate[]) => void | Promise<void>,
  ): Promise<void> {
    const backlog = this.#backlog
    if (backlog.isLoaded && !backlog.hasGap) return
    await this.#exclusively(async () => {
      await this.#stored.settled()
      let found = 0
      const scan = (range: IdRange): Promise<void> =>
        this.#scan(range, async ({ updates }) => {
          const unloaded = updates.filter(({ updateId }) => backlog.isUnloaded(updateId))
          found += unloaded.length
          await visit(unloaded.map((update) => new DiskEntry(update)))
          return backlog.floor < range.to
        })
      const before = contentsOf(backlog)
      if (backlog.hasGap) await scan({ from: backlog.floor, to: backlog.windowFrom })
      await scan({ from: backlog.loadedTo, to: backlog.visibleTo })
      // Whatever came or went meanwhile may be counted and not found, or found and not counted.
      if (contentsOf(backlog) === before) this.#compare(found)
    })
  }

  /** Calls `use` with the pending update that has this id, if it is not loaded; in the turn in which it was read. */
  async withUnloaded<R>(
    updateId: number,
    use: (update: QueuedUpdate) => R,
  ): Promise<R | undefined> {
    return this.#exclusively(async () => {
      await this.#stored.settled()
      const page = { from: updateId, to: updateId + 1, limit: 1, bytesMax: webhookPageBytes }
      return this.#read(page, ({ updates: [update] }) => {
        const isPending = update !== undefined && this.#backlog.isUnloaded(updateId)
        return isPending ? use(new DiskEntry(update)) : undefined
      })
    })
  }

  /** Returns when the oldest pending update was accepted, in seconds of wall time, without loading it. */
  async oldestAcceptedAtS(): Promise<number | undefined> {
    let oldestS: number | undefined
    await this.#stored.settled()
    const range = { from: this.#backlog.floor, to: this.#backlog.visibleTo }
    await this.#scan(
      range,
      ({ updates: [oldest] }) => {
        oldestS = oldest?.acceptedAtS
        return oldest === undefined
      },
      1,
    )
    return oldestS
  }

  /** Returns when updates that are confirmed and not in memory were stored: the first of them, before they are deleted. */
  async storedOf({ unreadFrom, floor }: Advanced): Promise<StoredRun[]> {
    const { shard, id: queue } = this.#stored
    const page = {
      queue,
      from: unreadFrom,
      to: floor,
      limit: queuePageUpdates,
      bytesMax: webhookPageBytes,
    }
    const { updates } = await shard.readUpdates(page)
    const stored: StoredRun[] = []
    addRead(stored, updates)
    return stored
  }

  /** Returns the id of the `nth`-newest update, loaded or not, or the oldest id if there are fewer updates. */
  async newestId(nth: number): Promise<number | undefined> {
    assert(nth > 0, 'the newest update is the first')
    const from = this.#backlog.floor
    let to = this.#backlog.visibleTo
    let left = nth
    let found: number | undefined
    while (left > 0) {
      const ids = await this.#stored.shard.readNewestIds({
        queue: this.#stored.id,
        from,
        to,
        limit: Math.min(left, queuePageIds),
      })
      const last = ids.at(-1)
      if (last === undefined) break
      found = last
      to = last
      left -= ids.length
    }
    return found
  }

  /** Reports updates that the counts have, and that are neither in memory nor among those that were found on disk. */
  #compare(foundOnDisk: number): void {
    const { id: queue, shard } = this.#stored
    const missing = this.#backlog.unloadedCount - foundOnDisk
    if (this.#backlog.isDetached || missing <= this.#missingCount) return
    this.#missingCount = missing
    shard.noteMissing(queue, missing)
  }

  async #pendingOnDisk(range: IdRange, limit: number): Promise<readonly QueuedUpdate[]> {
    // Otherwise a new dispatcher would read updates that an earlier one has delivered.
    if (range.from <= this.#backlog.floor) await this.#stored.settled()
    const page = { ...range, limit, bytesMax: webhookPageBytes }
    const backlog = this.#backlog
    // Some may be before the window, and others after it.
    const isAllWanted = backlog.hasGap
      ? backlog.isLoaded && range.from <= backlog.floor
      : range.from <= backlog.loadedTo
    const before = contentsOf(backlog)
    const { updates, next } = await this.#read(page, (read) => {
      const isAll = isAllWanted && read.next >= range.to && contentsOf(backlog) === before
      if (isAll) this.#compare(read.updates.length)
      if (read.next >= this.#backlog.visibleTo) this.#jump()
      this.#hand({ from: range.from, to: read.next })
      return read
    })
    if (updates.length === 0) return this.pendingAfter(next - 1, limit)
    return updates
      .filter(({ updateId }) => updateId >= this.#backlog.floor)
      .map((update) => new DiskEntry(update))
  }

  #hand(range: IdRange): void {
    this.#handed = range
    this.#clock.soon(() => {
      if (this.#handed === range) this.#handed = { from: 0, to: 0 }
    })
  }

  /** The window must not move while other work relies on its position. */
  #jump(): void {
    if (!this.#backlog.isLoaded && !this.#work.isBusy) {
      this.#backlog.jump(this.#isHeld)
    }
  }

  /** Runs `work` after all earlier work. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#work.run(async () => {
      if (this.#isUnsettled) {
        await this.#stored.settled()
        this.#isUnsettled = false
      }
      return work()
    })
  }

  /** Reads the first page of a range and calls `use` with the updates that have not been removed since. */
  #read<R>(page: Page, use: (read: UpdatesRead) => R): Promise<R> {
    const { shard, id: queue } = this.#stored
    return this.#removals.during(
      () => shard.readUpdates({ ...page, queue }),
      ({ updates, next }) => {
        this.#backlog.sawFirst(page.from, updates[0]?.updateId ?? next)
        const present = updates.filter(({ updateId }) => !this.#removals.has(updateId))
        return use({ updates: present, next })
      },
    )
  }

  /** Reads the pages of a range as long as `visit` returns true. */
  async #scan(
    range: IdRange,
    visit: (read: UpdatesRead) => boolean | Promise<boolean>,
    limit = queuePageUpdates,
  ): Promise<void> {
    let from = range.from
    while (from < range.to) {
      const goesOn = await this.#read({ ...pageOf({ from, to: range.to }), limit }, (read) => {
        assert(read.next > from, 'a scan goes on')
        from = read.next
        return visit(read)
      })
      if (!goesOn) return
    }
  }
}

/** Changes with whatever comes into a queue, leaves it, or is loaded. */
function contentsOf({ visibleTo, windowFrom, liveCount, loadedCount }: Backlog): string {
  return [visibleTo, windowFrom, liveCount, loadedCount].join()
}

interface Page extends IdRange {
  readonly limit: number
  readonly bytesMax: number
}

/**
 * One read of a queue that is too long for memory returns at most this many bytes: two of the largest getUpdates
 * responses.
 */
const queuePageBytes = 8 * mib

function pageOf(range: IdRange): Page {
  return { ...range, limit: queuePageUpdates, bytesMax: queuePageBytes }
}

const none: readonly QueuedUpdate[] = []

/**
 * The ids of updates that have left the queue in memory but may still appear in reads from disk, because their deletion
 * is not written yet or was not written when a current read began. Only updates outside the window are listed here; the
 * window knows its own removals.
 */
export class UnwrittenRemovals {
  /** Created with the first id: an empty set takes 230 bytes, and most queues never need it. */
  #ids: Set<number> | undefined
  /** Ids whose deletion was written during a read that may have begun before. */
  #written: number[] | undefined
  #reads = 0

  get isReading(): boolean {
    return this.#reads > 0
  }

  has(updateId: number): boolean {
    return this.#ids?.has(updateId) === true
  }

  add(updateId: number): void {
    this.#ids ??= new Set()
    this.#ids.add(updateId)
  }

  /** The deletion of these updates is written. They are forgotten once no current read can return them. */
  written(updateIds: readonly number[]): void {
    if (this.#ids === undefined) return
    if (this.#reads > 0) {
      this.#written ??= []
      // One at a time: there may be more of them than a call can take as arguments.
      for (const updateId of updateIds) this.#written.push(updateId)
      return
    }
    for (const updateId of updateIds) this.#ids.delete(updateId)
    if (this.#ids.size === 0) this.#ids = undefined
  }

  /** Reads, and calls `use` with the result in the same turn, while `has` still covers that read. */
  async during<T, R>(read: () => Promise<T>, use: (read: T) => R): Promise<R> {
    this.#reads += 1
    try {
      return use(await read())
    } finally {
      this.#reads -= 1
      if (this.#reads === 0) this.#forgetWritten()
    }
  }

  #forgetWritten(): void {
    const written = this.#written
    this.#written = undefined
    if (written !== undefined) this.written(written)
  }
}
