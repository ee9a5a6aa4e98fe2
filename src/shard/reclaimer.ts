/**
 * Deletes dead `u` records: those below their queue's durable floor. Dead by definition already, they only
 * take up room, so deletions ride along with the next group or go out unsynced, at most 1,000 at a time, when no
 * group comes by. A group takes at least as many along as it stores, so that they keep up with any load. A crash
 * forgets what was left to do; the sweep of expired updates finds it (`Shard.reclaimLeftovers`).
 */
import { reclaimIdleMs, reclaimedPerWriteMax } from '../limits.ts'
import type { Clock, Timer } from '../clock.ts'
import type { QueueId } from './keys.ts'
import { updateKey } from './keys.ts'
import type { StoreOperation } from '../store/store.ts'

interface DeadRange {
  readonly queue: QueueId
  from: number
  readonly to: number
}

export interface ReclaimerOptions {
  readonly clock: Clock
  write(operations: readonly StoreOperation[]): Promise<void>
}

export class Reclaimer {
  readonly #options: ReclaimerOptions
  #ranges: DeadRange[] = []
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(options: ReclaimerOptions) {
    this.#options = options
  }

  /** Ids from `from` up to, but not including, `to` are dead, and that is durable. */
  add(range: Readonly<DeadRange>): void {
    this.#ranges.push({ ...range })
    this.#arm()
  }

  /** Adds up to 1,000 deletions, or as many as it has operations, to a batch that is written anyway. */
  join(batch: StoreOperation[]): void {
    let room = Math.max(reclaimedPerWriteMax, batch.length)
    while (room > 0) {
      const range = this.#ranges[0]
      if (range === undefined) break
      const end = Math.min(range.to, range.from + room)
      room -= end - range.from
      for (let updateId = range.from; updateId < end; updateId++) {
        batch.push({ type: 'del', key: updateKey(range.queue, updateId) })
      }
      range.from = end
      if (range.from >= range.to) this.#ranges.shift()
    }
  }

  /** Forgets the ranges of a queue whose records are being deleted by other means. */
  drop(queue: QueueId): void {
    this.#ranges = this.#ranges.filter((range) => range.queue !== queue)
  }

  clear(): void {
    this.#ranges = []
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    this.#timer = undefined
    this.clear()
    await this.#writing
  }

  #arm(): void {
    this.#timer ??= this.#options.clock.after(reclaimIdleMs, () => {
      this.#timer = undefined
      this.#writing = this.#writeSlice()
    })
  }

  async #writeSlice(): Promise<void> {
    const batch: StoreOperation[] = []
    this.join(batch)
    if (batch.length === 0) return
    try {
      await this.#options.write(batch)
    } catch {
      // Only room was at stake; the next group tells whether the database is well.
      return
    }
    if (this.#ranges.length > 0) this.#arm()
  }
}
