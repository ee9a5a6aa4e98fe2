/**
 * Reads what a backlog has only on disk: pages for the window and for a webhook, counts of what is removed unseen, the
 * newest ids.
 *
 * What changes the window or counts is one piece of work at a time, so that none sees another's half; a webhook reads
 * beside it. Removals are not waited for: those of updates that are not in the window are remembered until no read can
 * meet them any more, and others have been waited for (`settled`) where a read goes below the window.
 */
import type { Clock } from '../clock.ts'
import { queuePageBytes, queuePageIds, queuePageUpdates, webhookPageBytes } from '../limits.ts'
import type { QueueId } from '../shard/keys.ts'
import type { Shard } from '../shard/shard.ts'
import type { UpdatesRead } from '../shard/stored.ts'
import type { PendingUpdate } from '../webhook/delivery-source.ts'
import { type Advanced, type Backlog, textBytesOf } from './backlog.ts'
import { DiskEntry, type QueuedUpdate } from './queued-update.ts'
import { UnwrittenRemovals } from './unwritten-removals.ts'
import type { RemovedEntries } from './window.ts'
import { Mutex } from '../kit/mutex.ts'

export interface QueueReaderOptions {
  readonly shard: Shard
  readonly queue: QueueId
  readonly backlog: Backlog
  readonly clock: Clock
  /** Resolves when every removal so far is written. */
  settled(): Promise<void>
}

/** From the first id up to, but not including, `to`. */
interface IdRange {
  readonly from: number
  readonly to: number
}

/** Updates of one page of the disk, counted as they are to be removed together. */
interface Counted {
  readonly from: number
  to: number
  count: number
  bytes: number
}

export class QueueReader {
  readonly #options: QueueReaderOptions
  readonly #backlog: Backlog
  readonly #removals = new UnwrittenRemovals()
  readonly #work = new Mutex()
  /** The window was given up: what was removed from it may still be read. */
  #isUnsettled = false
  /** Those an advance has counted so far. */
  #counted: Counted | undefined
  /** The page last given to a webhook, which may not have taken it in yet. */
  #handed: IdRange = { from: 0, to: 0 }

  constructor(options: QueueReaderOptions) {
    this.#options = options
    this.#backlog = options.backlog
  }

  get isWorking(): boolean {
    return this.#work.isBusy || this.#removals.isReading
  }

  /** The page a webhook is given at this moment has this id in it. */
  isBeingGiven(updateId: number): boolean {
    return updateId >= this.#handed.from && updateId < this.#handed.to
  }

  /** Lets go of the window; whoever needs it next has it read from the floor on. */
  unload(): void {
    this.#backlog.unload()
    this.#isUnsettled = true
  }

  /** Reads the next page into the window. */
  loadMore(): Promise<void> {
    return this.#exclusively(async () => {
      const range = { from: this.#backlog.loadedTo, to: this.#backlog.visibleTo }
      if (range.from < range.to) {
        await this.#read(pageOf(range), (page) => this.#backlog.load(page))
      }
    })
  }

  async loadFor(limit: number): Promise<void> {
    while (this.#backlog.needsMoreFor(limit)) await this.loadMore()
  }

  /**
   * Pending updates above `afterId`: from the window where that has them, else one page of the disk, which does not go
   * through the window. A reader that has come to the end finds new ones in the window from then on.
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

  /** Counts out those of these updates that are not loaded. Gives what was removed now. */
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
      const counted = this.#counted
      if (counted === undefined || updateId < counted.from || updateId >= counted.to) continue
      counted.count -= 1
      counted.bytes -= textBytes
    }
  }

  /** The deletion of these is written. */
  written(updateIds: readonly number[]): void {
    this.#removals.written(updateIds)
  }

  /** As `Backlog.advance`, where part of what is removed is only on disk: that is counted there, and not loaded. */
  advance(to: number): Promise<Advanced | undefined> {
    return this.#exclusively(async () => {
      const from = this.#backlog.loadedTo
      const counted: Counted = { from, to: from, count: 0, bytes: 0 }
      this.#counted = counted
      try {
        await this.#scan({ from, to }, ({ updates, next }) => {
          counted.to = next
          counted.count += updates.length
          counted.bytes += textBytesOf(updates)
          return this.#backlog.floor < to
        })
      } finally {
        this.#counted = undefined
      }
      // Nothing, where everything was removed during the scan.
      return this.#backlog.advance(to, counted)
    })
  }

  /** Shows `visit` every update that is not loaded, some at a time. */
  async eachUnloaded(
    visit: (updates: readonly QueuedUpdate[]) => void | Promise<void>,
  ): Promise<void> {
    const backlog = this.#backlog
    if (backlog.isLoaded && !backlog.hasGap) return
    await this.#exclusively(async () => {
      await this.#options.settled()
      const scan = (range: IdRange): Promise<void> =>
        this.#scan(range, async ({ updates }) => {
          const unloaded = updates.filter(({ updateId }) => backlog.isUnloaded(updateId))
          await visit(unloaded.map((update) => new DiskEntry(update)))
          return backlog.floor < range.to
        })
      if (backlog.hasGap) await scan({ from: backlog.floor, to: backlog.windowFrom })
      await scan({ from: backlog.loadedTo, to: backlog.visibleTo })
    })
  }

  /** When the oldest pending update was accepted, without loading it. */
  async oldestAcceptedAtS(): Promise<number | undefined> {
    let oldestS: number | undefined
    await this.#options.settled()
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

  /** The id of the `nth`-newest update, loaded or not; of the oldest where there are fewer. */
  async newestId(nth: number): Promise<number | undefined> {
    const from = this.#backlog.floor
    let to = this.#backlog.visibleTo
    let left = nth
    let found: number | undefined
    while (left > 0) {
      const ids = await this.#options.shard.readNewestIds({
        queue: this.#options.queue,
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

  async #pendingOnDisk(range: IdRange, limit: number): Promise<readonly QueuedUpdate[]> {
    // Else a reader that knows of nothing yet would see what another has delivered.
    if (range.from <= this.#backlog.floor) await this.#options.settled()
    const page = { ...range, limit, bytesMax: webhookPageBytes }
    const { updates, next } = await this.#read(page, (read) => {
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
    this.#options.clock.soon(() => {
      if (this.#handed === range) this.#handed = { from: 0, to: 0 }
    })
  }

  /** Not under the eyes of work that goes by where the window is. */
  #jump(): void {
    if (!this.#backlog.isLoaded && !this.#work.isBusy) this.#backlog.jump()
  }

  /** Runs `work` when all earlier work is done. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#work.run(async () => {
      if (this.#isUnsettled) {
        await this.#options.settled()
        this.#isUnsettled = false
      }
      return work()
    })
  }

  /** Gives `use` what is stored in the first page of a range and has not been removed meanwhile. */
  #read<R>(page: Page, use: (read: UpdatesRead) => R): Promise<R> {
    const { shard, queue } = this.#options
    return this.#removals.during(
      () => shard.readUpdates({ ...page, queue }),
      ({ updates, next }) => {
        this.#backlog.sawFirst(page.from, updates[0]?.updateId ?? next)
        const present = updates.filter(({ updateId }) => !this.#removals.has(updateId))
        return use({ updates: present, next })
      },
    )
  }

  /** All pages of a range, for as long as `visit` wants more. */
  async #scan(
    range: IdRange,
    visit: (read: UpdatesRead) => boolean | Promise<boolean>,
    limit = queuePageUpdates,
  ): Promise<void> {
    let from = range.from
    while (from < range.to) {
      const goesOn = await this.#read({ ...pageOf({ from, to: range.to }), limit }, (read) => {
        from = read.next
        return visit(read)
      })
      if (!goesOn) return
    }
  }
}

interface Page extends IdRange {
  readonly limit: number
  readonly bytesMax: number
}

function pageOf(range: IdRange): Page {
  return { ...range, limit: queuePageUpdates, bytesMax: queuePageBytes }
}

const none: readonly QueuedUpdate[] = []
