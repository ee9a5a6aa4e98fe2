/**
 * Remembers how the workers of one place died, where a damaged file of a shard can be the reason: LevelDB ends its process
 * by an assertion (SIGABRT), a table that it has mapped and the disk cannot read by SIGBUS, and what it takes for a length
 * or an address by SIGSEGV. The successor is told, so that it can look at its shards before it opens them.
 */
import { crashMemoryMs } from '../../limits.ts'
import type { WorkerCrash } from '../channel/worker-control.ts'

const crashSignals = new Set(['SIGABRT', 'SIGBUS', 'SIGSEGV', 'SIGILL', 'SIGFPE'])

export class CrashMemory {
  #last: (WorkerCrash & { readonly atMs: number }) | undefined

  /** Undefined where the last worker ended in another way. */
  get last(): WorkerCrash | undefined {
    if (this.#last === undefined) return undefined
    const { signal, inARow } = this.#last
    return { signal, inARow }
  }

  /**
   * @param signal what ended the worker; undefined where it was no signal
   * @param nowMs monotonic
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
