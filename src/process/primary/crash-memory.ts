/**
 * Remembers how the workers of one place died, if a damaged file of a shard can be the reason. LevelDB ends its process
 * by an assertion (SIGABRT). Reading a mapped table that the disk cannot read raises SIGBUS. A damaged length or address
 * raises SIGSEGV. The successor gets this information, so that it can check its shards before it opens them.
 */
import type { WorkerCrash } from '../channel/worker-control.ts'

const crashSignals = new Set(['SIGABRT', 'SIGBUS', 'SIGSEGV', 'SIGILL', 'SIGFPE'])

/**
 * Deaths of a worker that are further apart than this do not count as a row. Chosen: a compaction that meets the same
 * damage again does so within minutes of a start.
 */
export const crashMemoryMs = 600_000

export class CrashMemory {
  #last: (WorkerCrash & { readonly atMs: number }) | undefined

  /** Undefined if the last worker did not end by one of these signals. */
  get last(): WorkerCrash | undefined {
    if (this.#last === undefined) return undefined
    const { signal, inARow } = this.#last
    return { signal, inARow }
  }

  /**
   * Records the end of a worker.
   *
   * @param signal - the signal that ended the worker; undefined if it exited by itself
   * @param nowMs - monotonic time
   */
  note(signal: string | undefined, nowMs: number): void {
    if (signal === undefined || !crashSignals.has(signal)) {
      this.#last = undefined
      return
    }
    const before = this.#last
    const isRow = before !== undefined && nowMs - before.atMs <= crashMemoryMs
    this.#last = { signal, inARow: isRow ? before.inARow + 1 : 1, atMs: nowMs }
  }
}
