/**
 * Reads what a queue has on disk: page by page, so that no queue is ever in memory as a whole, and one piece of
 * work at a time, so that none sees another's half. Removals are not waited for: whoever must not see a record
 * that was removed a moment ago compares with what is known in memory.
 */
import type { QueueId } from '../store/keys.ts'
import type { Shard } from '../store/shard.ts'
import type { StoredUpdate, UpdatesRead } from '../store/stored.ts'

const pageUpdates = 500
const pageBytes = 8 * 1024 * 1024
/** Keys alone: 40 bytes each in memory. */
const pageIds = 5_000

/** From the first id up to, but not including, `to`. */
export interface IdRange {
  readonly from: number
  readonly to: number
}

export class QueueReader {
  readonly #shard: Shard
  readonly #queue: QueueId
  #working: Promise<void> | undefined

  constructor(shard: Shard, queue: QueueId) {
    this.#shard = shard
    this.#queue = queue
  }

  get isWorking(): boolean {
    return this.#working !== undefined
  }

  /** Runs `work` when all earlier work is done. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    while (this.#working !== undefined) await this.#working
    const working = work().finally(() => {
      this.#working = undefined
    })
    this.#working = working.then(ignore, ignore)
    return working
  }

  /** The first page of a range. */
  page(range: IdRange): Promise<UpdatesRead> {
    return this.#shard.readUpdates({
      ...range,
      queue: this.#queue,
      limit: pageUpdates,
      bytesMax: pageBytes,
    })
  }

  /** All pages of a range, for as long as `visit` wants more. */
  async scan(
    range: IdRange,
    visit: (updates: readonly StoredUpdate[]) => boolean | Promise<boolean>,
  ): Promise<void> {
    let from = range.from
    while (from < range.to) {
      const { updates, next } = await this.page({ from, to: range.to })
      if (!(await visit(updates))) return
      from = next
    }
  }

  /** The id of the `nth`-newest update of a range; of its oldest where it has fewer. */
  async newestId(nth: number, range: IdRange): Promise<number | undefined> {
    let { to } = range
    let left = nth
    let found: number | undefined
    while (left > 0) {
      const ids = await this.#shard.readNewestIds({
        queue: this.#queue,
        from: range.from,
        to,
        limit: Math.min(left, pageIds),
      })
      const last = ids.at(-1)
      if (last === undefined) break
      found = last
      to = last
      left -= ids.length
    }
    return found
  }
}

export function textBytesOf(updates: readonly StoredUpdate[]): number {
  return updates.reduce((sum, update) => sum + update.text.length, 0)
}

function ignore(): void {}
