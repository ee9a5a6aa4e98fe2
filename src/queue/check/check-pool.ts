/**
 * Checks large updates off the event loop, in one thread per worker process. Measured as CPU us on Node 20 (on a busy
 * machine, so only the ratios count):
 *
 *                              in place   sent: event loop   sent: process
 *   one of 450 KB, structure        450                100             660
 *   one of 450 KB, Cyrillic         360                100             450
 *   one of 450 KB, ASCII             80                100             190
 *   one of 31 KB, structure          32                 80             180
 *
 * So the thread pays off from some 128 KiB on (`--check-over`), unless an update is one text in ASCII. Chunks of small
 * updates are checked in place: with one worker per CPU the thread would cost the machine more and relieve no worker
 * (bench case `ingest-pool`).
 *
 * A failure of the thread never refuses an update: its row stays unchecked, and the caller checks it in place. For that, the thread gets a copy of the bytes in reusable shared memory, which takes some 50 us for 450 KB.
 */
import { entryFiles } from '../../entry-files.ts'
import {
  endColumn,
  rowLength,
  typeColumn,
  uncheckedType,
  type UpdateRows,
  updateStartColumn,
} from '../../shard/update-rows.ts'
import { type CheckedBatch, setChecked, type UpdateBatch } from './check-batch.ts'
import { HelperThread } from '../../kit/helper-thread.ts'
import { addedTypes } from '../../kit/update-types.ts'
import { type ScratchMemory, SharedScratch } from '../shared-scratch.ts'
import { kib, mib } from '../../kit/limits.ts'

export interface CheckPoolOptions {
  /** The size from which on updates go to the thread, in bytes; undefined: no update does. */
  readonly updateBytesMin: number | undefined
  /** Called with every failure of the thread, but not if the pool is full or closed. */
  readonly onFailure: (error: unknown) => void
  readonly pendingMax?: number
  readonly idleMs?: number
}

/** The shared memory for updates on their way to the checking thread begins with this size; most workers need no more. */
const checkScratchBytesMin = 256 * kib
/**
 * Shared memory up to this size is kept for later updates: twice what all streams of a worker have under way
 * (`streamsWeightMax`).
 */
const checkScratchBytesMax = 16 * mib
/**
 * This many updates wait for the checking thread: at 1 to 2 ms each for the largest, the last one waits a tenth of a
 * second. Further ones are checked in place.
 */
const checkPendingMax = 64
/** The checking thread ends after this idle time, for the same reason as the compression thread (`compressIdleMs`). */
const checkIdleMs = 60_000

/** The checking thread of a worker. */
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
    this.#thread = new HelperThread({
      filename: entryFiles.checkUpdates.href,
      pendingMax,
      idleMs,
      onFailure,
      data: addedTypes(),
    })
  }

  /** True if an update of this size goes to the thread. */
  takes(bytes: number): boolean {
    return bytes >= this.#updateBytesMin
  }

  /** The number of live threads. */
  get threads(): number {
    return this.#thread.threads
  }

  /**
   * Checks updates in the thread and puts the results into their rows. Never rejects. The updates must not change until the
   * promise resolves. Rows that are not checked then are checked in place.
   *
   * @param nths - the numbers of the rows
   */
  async check(rows: UpdateRows, nths: readonly number[]): Promise<void> {
    const lent: ScratchMemory[] = []
    const checked = await this.#thread.run(() => {
      const batch = this.#batchOf(nths.map((nth) => rows.updateOf(nth)))
      lent.push(batch.memory)
      return batch
    })
    if (checked === undefined) return
    // Memory is not reused after a failure, because the thread may still be reading it.
    for (const memory of lent) this.#scratch.give(memory)
    for (const [at, nth] of nths.entries()) setChecked(checked, at, rows, nth)
  }

  /** Ends the thread. Tasks that it has not begun resolve to undefined. */
  close(): Promise<void> {
    return this.#thread.close()
  }

  #batchOf(updates: readonly Buffer[]): UpdateBatch {
    const numbers = new Int32Array(updates.length * rowLength)
    const memory = this.#scratch.take(updates.reduce((sum, { length }) => sum + length, 0))
    const bytes = new Uint8Array(memory)
    let at = 0
    for (const [nth, update] of updates.entries()) {
      bytes.set(update, at)
      numbers[nth * rowLength + updateStartColumn] = at
      at += update.length
      numbers[nth * rowLength + endColumn] = at
      numbers[nth * rowLength + typeColumn] = uncheckedType
    }
    return { memory, numbers }
  }
}
