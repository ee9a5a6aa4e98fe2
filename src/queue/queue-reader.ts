/**
 * The part of a queue that is on disk only, read page by page, so that no queue is ever in memory as a whole, and one
 * piece of work at a time, so that none sees another's half. Removals are not waited for: whoever must not see a record
 * that was removed a moment ago compares with what is known in memory.
 */
import { queuePageBytes, queuePageIds, queuePageUpdates } from '../limits.ts'
import type { QueueId } from '../store/keys.ts'
import type { Shard } from '../store/shard.ts'
import type { StoredUpdate, UpdatesRead } from '../store/stored.ts'
import { type Advanced, type Backlog, textBytesOf } from './backlog.ts'

/** From the first id up to, but not including, `to`. */
interface IdRange {
  readonly from: number
  readonly to: number
}

export class QueueReader {
  readonly #shard: Shard
  readonly #queue: QueueId
  readonly #backlog: Backlog
  #working: Promise<void> | undefined

  constructor(shard: Shard, queue: QueueId, backlog: Backlog) {
    this.#shard = shard
    this.#queue = queue
    this.#backlog = backlog
  }

  get isWorking(): boolean {
    return this.#working !== undefined
  }

  /** Reads the next page into the window. */
  loadMore(): Promise<void> {
    return this.#exclusively(async () => {
      const range = this.#unloaded()
      if (range.from < range.to) this.#backlog.load(await this.#page(range))
    })
  }

  async loadFor(limit: number): Promise<void> {
    while (this.#backlog.needsMoreFor(limit)) await this.loadMore()
  }

  /** As `Backlog.advance`, where part of what is removed is only on disk: that is counted there, and not loaded. */
  advance(to: number): Promise<Advanced | undefined> {
    return this.#exclusively(async () => {
      const onDisk = { count: 0, bytes: 0 }
      const from = this.#backlog.loadedTo
      await this.#scan({ from, to }, (updates) => {
        onDisk.count += updates.length
        onDisk.bytes += textBytesOf(updates)
        return this.#backlog.loadedTo === from
      })
      // Nothing, where everything was removed during the scan.
      return this.#backlog.advance(to, onDisk)
    })
  }

  /** Gives `remove` what has expired and is not loaded, some at a time. Reads the whole queue. */
  async eachExpired(
    nowS: number,
    remove: (expired: readonly StoredUpdate[]) => Promise<void>,
  ): Promise<void> {
    if (this.#backlog.isLoaded) return
    await this.#exclusively(() => {
      const range = this.#unloaded()
      return this.#scan(range, async (updates) => {
        // Everything was removed during the read.
        if (this.#backlog.loadedTo !== range.from) return false
        const expired = updates.filter((update) => update.expiresAtS <= nowS)
        if (expired.length > 0) await remove(expired)
        return true
      })
    })
  }

  /** The id of the `nth`-newest update, loaded or not; of the oldest where there are fewer. */
  async newestId(nth: number): Promise<number | undefined> {
    const from = this.#backlog.floor
    let to = this.#backlog.visibleTo
    let left = nth
    let found: number | undefined
    while (left > 0) {
      const ids = await this.#shard.readNewestIds({
        queue: this.#queue,
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

  #unloaded(): IdRange {
    return { from: this.#backlog.loadedTo, to: this.#backlog.visibleTo }
  }

  /** Runs `work` when all earlier work is done. */
  async #exclusively<T>(work: () => Promise<T>): Promise<T> {
    while (this.#working !== undefined) await this.#working
    const working = work().finally(() => {
      this.#working = undefined
    })
    this.#working = working.then(ignore, ignore)
    return working
  }

  /** The first page of a range. */
  #page(range: IdRange): Promise<UpdatesRead> {
    return this.#shard.readUpdates({
      ...range,
      queue: this.#queue,
      limit: queuePageUpdates,
      bytesMax: queuePageBytes,
    })
  }

  /** All pages of a range, for as long as `visit` wants more. */
  async #scan(
    range: IdRange,
    visit: (updates: readonly StoredUpdate[]) => boolean | Promise<boolean>,
  ): Promise<void> {
    let from = range.from
    while (from < range.to) {
      const { updates, next } = await this.#page({ from, to: range.to })
      if (!(await visit(updates))) return
      from = next
    }
  }
}

function ignore(): void {}
