/**
 * Checks large updates off the event loop: one thread a worker process, started with the first of them and ended when
 * idle. Measured as CPU us on Node 20 (a busy machine, so that only ratios count):
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
 * The thread is an aid and never a reason to refuse an update: where too much waits for it, it fails or the pool is
 * closed, `check` gives undefined and the caller checks in place. So the thread gets a copy of the bytes, in shared memory
 * that is used again: a copy of 450 KB takes some 50 us.
 */

import { Piscina } from 'piscina'
import type { PostboteError } from '../errors.ts'
import {
  checkIdleMs,
  checkPendingMax,
  checkScratchBytesMax,
  checkScratchBytesMin,
} from '../limits.ts'
import { type CheckedBatch, checkedUpdateOf, type UpdateBatch } from './check-batch.ts'
import type { CheckedUpdate } from './check-update.ts'
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
  readonly #options: CheckPoolOptions
  readonly #updateBytesMin: number
  readonly #pendingMax: number
  readonly #scratch = new SharedScratch({
    bytesMin: checkScratchBytesMin,
    keptBytesMax: checkScratchBytesMax,
  })
  #piscina: Piscina<UpdateBatch, CheckedBatch> | undefined
  #pending = 0
  #isClosed = false

  constructor(options: CheckPoolOptions) {
    this.#options = options
    this.#updateBytesMin = options.updateBytesMin ?? Infinity
    this.#pendingMax = options.pendingMax ?? checkPendingMax
  }

  /** Whether an update of this size is one for the thread. */
  takes(bytes: number): boolean {
    return bytes >= this.#updateBytesMin
  }

  /** Threads that live. */
  get threads(): number {
    return this.#piscina?.threads.length ?? 0
  }

  /**
   * One result per update, in their order; undefined where they are to be checked in place. Never rejects. The updates
   * must not change until it resolves.
   */
  async check(updates: readonly Buffer[]): Promise<readonly CheckResult[] | undefined> {
    if (this.#isClosed || this.#pending >= this.#pendingMax) return undefined
    this.#piscina ??= this.#start()
    this.#pending++
    try {
      const batch = this.#batchOf(updates)
      const checked = await this.#piscina.run(batch)
      // Not where the thread has failed: it may read on.
      this.#scratch.give(batch.memory)
      return updates.map((update, nth) => checkedUpdateOf(checked, nth, update))
    } catch (error) {
      if (!this.#isClosed) this.#options.onFailure(error)
      return undefined
    } finally {
      this.#pending--
    }
  }

  /** Ends the thread; what it has not begun resolves to undefined. */
  async close(): Promise<void> {
    this.#isClosed = true
    const piscina = this.#piscina
    this.#piscina = undefined
    await piscina?.close({ force: true })
  }

  #start(): Piscina<UpdateBatch, CheckedBatch> {
    const piscina = new Piscina<UpdateBatch, CheckedBatch>({
      filename,
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: this.#options.idleMs ?? checkIdleMs,
    })
    // A thread that dies between two tasks; unheard, it would end the process.
    piscina.on('error', this.#options.onFailure)
    return piscina
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
