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
 * caller checks in place. So the bytes are shared and not handed over.
 */

import type { PostboteError } from '../errors.ts'
import { checkIdleMs, checkPendingMax } from '../limits.ts'
import { type CheckedBatch, checkedUpdateOf, type UpdateBatch } from './check-batch.ts'
import type { CheckedUpdate } from './check-update.ts'
import { HelperThread } from './helper-thread.ts'

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
   * One result per update, in their order; undefined where they are to be checked in place. Never rejects. The bytes
   * must not change until it resolves: a single update over shared memory is read where it is, all others are copied.
   */
  async check(updates: readonly Buffer[]): Promise<readonly CheckResult[] | undefined> {
    const checked = await this.#thread.run(() => batchOf(updates))
    return checked && updates.map((update, nth) => checkedUpdateOf(checked, nth, update))
  }

  /** Ends the thread; what it has not begun resolves to undefined. */
  close(): Promise<void> {
    return this.#thread.close()
  }
}

function batchOf(updates: readonly Buffer[]): UpdateBatch {
  const [only] = updates
  if (only !== undefined && updates.length === 1 && only.buffer instanceof SharedArrayBuffer) {
    return { bytes: only, starts: Int32Array.of(0), ends: Int32Array.of(only.length) }
  }
  const starts = new Int32Array(updates.length)
  const ends = new Int32Array(updates.length)
  let bytesTotal = 0
  for (const [nth, { length }] of updates.entries()) {
    starts[nth] = bytesTotal
    bytesTotal += length
    ends[nth] = bytesTotal
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(bytesTotal))
  for (const [nth, update] of updates.entries()) bytes.set(update, starts[nth])
  return { bytes, starts, ends }
}
