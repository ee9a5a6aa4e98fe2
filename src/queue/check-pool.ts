/**
 * Checks large updates off the event loop: one thread a worker process. Measured as CPU us on Node 20 (a busy machine, so
 * that only ratios count):
 *
 *                              in place   sent: event loop   sent: process
 *   one of 450 KB, structure        880                 90            1040
 *   one of 450 KB, a text           510                 60             490
 *   one of 31 KB, structure          56                 41             223
 *   200 of 300 B                    211                 86             379
 *
 * So it pays from about 128 KiB on (`--check-over`). Chunks of small updates are checked where they are: with a worker per
 * CPU the machine would do more and no worker less (bench case `ingest-pool`).
 *
 * The thread is an aid and never a reason to refuse an update: where it does not check, `check` gives undefined and the
 * caller checks in place. So it gets a copy of the bytes, in shared memory that is used again: some 50 us for 450 KB.
 */

import type { PostboteError } from '../errors.ts'
import {
  checkIdleMs,
  checkPendingMax,
  checkScratchBytesMax,
  checkScratchBytesMin,
} from '../limits.ts'
import { type CheckedBatch, checkedUpdateOf, type UpdateBatch } from './check-batch.ts'
import type { CheckedUpdate } from './check-update.ts'
import { HelperThread } from './helper-thread.ts'
import { SharedScratch } from './shared-scratch.ts'

export type CheckResult = CheckedUpdate | PostboteError

export interface CheckPoolOptions {
  /** Updates of this size and more are sent to the thread; undefined for none. */
  readonly updateBytesMin: number | undefined
  /** Told of every failure of the thread; not of a full or closed pool. */
  readonly onFailure: (error: unknown) => void
  readonly pendingMax?: number
  readonly idleMs?: number
}

const filename = new URL('../../workers/check-updates.js', import.meta.url).href

export class CheckPool {
  readonly #updateBytesMin: number
  readonly #thread: HelperThread<UpdateBatch, CheckedBatch>
  readonly #scratch = new SharedScratch({
    bytesMin: checkScratchBytesMin,
    keptBytesMax: checkScratchBytesMax,
  })

  constructor({
    updateBytesMin = Infinity,
    onFailure,
    pendingMax = checkPendingMax,
    idleMs = checkIdleMs,
  }: CheckPoolOptions) {
    this.#updateBytesMin = updateBytesMin
    this.#thread = new HelperThread({ filename, pendingMax, idleMs, onFailure })
  }

  /** Whether an update of this size is one for the thread. */
  takes(bytes: number): boolean {
    return bytes >= this.#updateBytesMin
  }

  /** Threads that live. */
  get threads(): number {
    return this.#thread.threads
  }

  /**
   * One result per update, in their order; undefined where they are to be checked in place. Never rejects. The updates
   * must not change until it resolves.
   */
  async check(updates: readonly Buffer[]): Promise<readonly CheckResult[] | undefined> {
    const lent: SharedArrayBuffer[] = []
    const checked = await this.#thread.run(() => {
      const batch = this.#batchOf(updates)
      lent.push(batch.memory)
      return batch
    })
    if (checked === undefined) return undefined
    // Not where the thread has failed: it may read on.
    for (const memory of lent) this.#scratch.give(memory)
    return updates.map((update, nth) => checkedUpdateOf(checked, nth, update))
  }

  /** Ends the thread; what it has not begun resolves to undefined. */
  close(): Promise<void> {
    return this.#thread.close()
  }

  #batchOf(updates: readonly Buffer[]): UpdateBatch {
    const starts = new Int32Array(updates.length)
    const ends = new Int32Array(updates.length)
    let bytesTotal = 0
    for (const [nth, { length }] of updates.entries()) {
      starts[nth] = bytesTotal
      bytesTotal += length
      ends[nth] = bytesTotal
    }
    const memory = this.#scratch.take(bytesTotal)
    const bytes = new Uint8Array(memory)
    for (const [nth, update] of updates.entries()) bytes.set(update, starts[nth])
    return { memory, starts, ends }
  }
}
