/**
 * Deletes dead `u` records, which are those below the durable floor of their queue. They only occupy space, so their
 * deletions join the next group. If no group comes, they are written unsynced, at most 1,000 at a time. A group takes
 * along at least as many deletions as it stores records, so reclaiming keeps up with any load. A crash forgets the
 * remaining ranges; the sweep of expired updates finds them again (`Shard.reclaimLeftovers`).
 */
import assert from 'node:assert/strict'
import type { Clock, Timer } from '../kit/clock.ts'
import { kinds } from './kinds.ts'
import type { QueueId } from './records/record-keys.ts'
import type { StoreOperation } from '../store/store.ts'

interface DeadRange {
  readonly queue: QueueId
  from: number
  readonly to: number
}

/** One write deletes this many dead records; a group with more operations deletes as many as it stores. */
export const reclaimedPerWriteMax = 1_000
/**
 * Dead records are deleted in a write of their own if no group has been written for this long. Chosen: under load every
 * group takes some along, so this is for idle shards.
 */
const reclaimIdleMs = 100

export class Reclaimer {
  readonly #clock: Clock
  readonly #write: (operations: readonly StoreOperation[]) => Promise<void>
  #ranges: DeadRange[] = []
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(clock: Clock, write: (operations: readonly StoreOperation[]) => Promise<void>) {
    this.#clock = clock
    this.#write = write
  }

  /** Adds a range of dead ids: from `from` up to, but not including, `to`. The floor above them must be durable. */
  add(range: Readonly<DeadRange>): void {
    assert(range.from <= range.to, 'a range of dead ids does not end before it begins')
    this.#ranges.push({ ...range })
    this.#arm()
  }

  /** Adds deletions to a batch that is about to be written: up to 1,000, or as many as the batch has operations. */
  join(batch: StoreOperation[]): void {
    let room = Math.max(reclaimedPerWriteMax, batch.length)
    while (room > 0) {
      const range = this.#ranges[0]
      if (range === undefined) break
      const end = Math.min(range.to, range.from + room)
      room -= end - range.from
      for (let updateId = range.from; updateId < end; updateId++) {
        batch.push({ type: 'del', key: kinds.update.key(range.queue, updateId) })
      }
      range.from = end
      if (range.from >= range.to) this.#ranges.shift()
    }
  }

  /** Forgets the ranges of a queue whose records are deleted in another way. */
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
    this.#timer ??= this.#clock.after(reclaimIdleMs, () => {
      this.#timer = undefined
      this.#writing = this.#writeSlice()
    })
  }

  async #writeSlice(): Promise<void> {
    const batch: StoreOperation[] = []
    this.join(batch)
    if (batch.length === 0) return
    try {
      await this.#write(batch)
    } catch {
      // Only space was at stake. If the database has failed, the next group detects it.
      return
    }
    if (this.#ranges.length > 0) this.#arm()
  }
}
