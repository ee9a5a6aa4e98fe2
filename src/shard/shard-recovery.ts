/**
 * Whether a shard serves, and its way back when a write has failed.
 *
 *   closed --opened--> serving --a write fails--> poisoned --probe file can be fsynced--> reopened from disk --> serving
 *   any --stop--> closed
 *
 * After one failed write LevelDB goes on acknowledging writes that are gone at the next start, so a poisoned
 * shard writes nothing more through its handle: pushes are refused, reads go on, confirms move heads in
 * memory only, and recovery re-reads everything from disk (`onReset`), never from memory.
 */
import { type Clock, sleep } from '../clock.ts'
import { shardProbePeriodMs } from '../limits.ts'
import type { Store } from '../store/store.ts'

export type ShardStatus = 'closed' | 'serving' | 'poisoned'

export interface ShardLog {
  error(details: object, message: string): void
  info(details: object, message: string): void
}

export interface ShardRecoveryOptions {
  readonly index: number
  readonly store: Store
  readonly clock: Clock
  readonly log: ShardLog
  /** The shard was read anew from disk: whatever is in memory of its queues is void. */
  onReset(): void
  onFailed?(): void
  /** The database could not be opened again; it is tried once more after a pause. */
  onReopenFailed?(error: unknown): void
  /** Whether a file can be written and fsynced beside the database. */
  probe(): Promise<boolean>
}

export class ShardRecovery {
  readonly #options: ShardRecoveryOptions
  /** Empties what the shard itself has in memory of its database. */
  readonly #forget: () => void
  readonly #stopping = new AbortController()
  #status: ShardStatus = 'closed'
  #recovering: Promise<void> = Promise.resolve()

  constructor(options: ShardRecoveryOptions, forget: () => void) {
    this.#options = options
    this.#forget = forget
  }

  get status(): ShardStatus {
    return this.#status
  }

  opened(): void {
    this.#status = 'serving'
  }

  /** A write has failed. */
  poison(error: unknown): void {
    this.#status = 'poisoned'
    this.#options.log.error(
      { shard: this.#options.index, error: String(error) },
      'a write failed: the shard accepts nothing until its disk can be written again',
    )
    this.#options.onFailed?.()
    this.#recovering = this.#recover()
  }

  /** From here the shard takes nothing and no recovery begins; one that is at work ends at its next step. */
  stop(): void {
    this.#stopping.abort()
    this.#status = 'closed'
  }

  /** Resolves when nothing of a recovery is under way any more. */
  async stopped(): Promise<void> {
    await this.#recovering
    // The last write may have failed.
    this.#status = 'closed'
  }

  async #recover(): Promise<void> {
    const { clock, index, log, store } = this.#options
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await sleep(clock, shardProbePeriodMs, signal)
      if (signal.aborted) return
      try {
        if (!(await this.#options.probe())) continue
        await store.close()
        await store.open()
      } catch (error) {
        log.error({ shard: index, error: String(error) }, 'reopening failed')
        this.#options.onReopenFailed?.(error)
        continue
      }
      if (signal.aborted) return
      this.#forget()
      this.#status = 'serving'
      log.info({ shard: index }, 'the shard was read anew and serves again')
      this.#options.onReset()
      return
    }
  }
}
