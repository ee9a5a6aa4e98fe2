/**
 * Tracks whether a shard serves, and recovers it after a failed write.
 *
 *   closed --opened--> serving --a write fails--> poisoned --the probe succeeds--> reopened --> serving
 *   any --close--> closed
 *
 * After a failed write, LevelDB continues to acknowledge writes that are gone at the next start. A poisoned shard
 * therefore writes nothing more through its handle: pushes are refused, reads continue, and confirms take effect in
 * memory only. While the database is opened again, reads wait for it. Recovery rereads everything (`onReset`) and trusts nothing in memory. A database is asked instead of a
 * disk: opening it again settles what became of the write.
 */
import { type Clock, sleep } from '../kit/clock.ts'
import { changesOf } from '../kit/changes-of.ts'
import { Waiters } from '../kit/waiters.ts'
import { NotOwnerError } from '../store/store-engine.ts'
import type { Store } from '../store/store.ts'
import type { Log } from '../kit/surroundings.ts'

export type ShardStatus = 'closed' | 'serving' | 'poisoned'

const changed = changesOf<ShardStatus>({
  // The last write of a shard that is stopped may fail, too.
  closed: ['serving', 'poisoned', 'closed'],
  serving: ['poisoned', 'closed'],
  poisoned: ['serving', 'closed'],
})

export type ShardLog = Pick<Log, 'error' | 'info'>

export interface ShardRecoveryOptions {
  readonly index: number
  readonly store: Store
  readonly clock: Clock
  readonly log: ShardLog
  /** Called when the shard was reopened: all queue state in memory is void. */
  onReset(): void
  onFailed?(): void
  /**
   * Called when the database could not be reopened. The next attempt follows after a pause. Returns true if reads should not
   * wait for it, because it takes an operator.
   */
  onReopenFailed?(error: unknown): boolean
  /** Returns whether a file beside the database can be written and fsynced. */
  probe(): Promise<boolean>
}

/**
 * A poisoned shard tests its disk, or asks its database, this often at the most; pushes are refused until that succeeds,
 * so the outage lasts at most this much longer than the failure.
 */
const shardProbePeriodMs = 1_000
/** The pause before the first of these tests; it doubles up to `shardProbePeriodMs`. A failover is over this soon. */
const shardFirstProbeMs = 50
/**
 * A read waits this long while its shard is opened again, or its database is silent, as a request does for a worker that is
 * not there (`peerConnectWaitMs`): clients give up after 5 s.
 */
export const reopenWaitMs = 4_000

export class ShardRecovery {
  readonly #options: ShardRecoveryOptions
  /** Discards the state of the database that the shard itself holds in memory. */
  readonly #forget: () => void
  readonly #stopping = new AbortController()
  #status: ShardStatus = 'closed'
  #recovering: Promise<void> = Promise.resolve()
  /** Whether the database is closed, to be opened again. */
  #isReopening = false
  readonly #waiters: Waiters

  constructor(options: ShardRecoveryOptions, forget: () => void) {
    this.#options = options
    this.#forget = forget
    this.#waiters = new Waiters(options.clock)
  }

  /**
   * Undefined while the database can be read. Otherwise resolves when it was opened again and everything in memory is void, or
   * after `reopenWaitMs`.
   */
  reopened(): Promise<void> | undefined {
    return this.#isReopening ? this.#waiters.wait(reopenWaitMs) : undefined
  }

  get status(): ShardStatus {
    return this.#status
  }

  opened(): void {
    this.#to('serving')
  }

  /** Called after a failed write: stops accepting operations and starts the recovery. */
  poison(error: unknown): void {
    this.#to('poisoned')
    this.#options.log.error(
      { shard: this.#options.index, error: String(error) },
      'a shard cannot be written: it refuses changes until its disk or database can be written again',
    )
    this.#options.onFailed?.()
    this.#recovering = this.#recover()
  }

  /**
   * Stops the shard: it accepts nothing more, and no recovery begins. A recovery in progress ends at its next step.
   */
  close(): void {
    this.#stopping.abort()
    this.#to('closed')
    this.#reopen(false)
  }

  /** Resolves when no recovery is in progress. */
  async stopped(): Promise<void> {
    await this.#recovering
    // The last write may have failed and changed the status.
    this.#to('closed')
  }

  #to(status: ShardStatus): void {
    this.#status = changed(this.#status, status)
  }

  async #recover(): Promise<void> {
    const { clock, index, log, store } = this.#options
    const { signal } = this.#stopping
    for (
      let pauseMs = shardFirstProbeMs;
      !signal.aborted;
      pauseMs = Math.min(pauseMs * 2, shardProbePeriodMs)
    ) {
      await sleep(clock, pauseMs, signal)
      if (signal.aborted) return
      try {
        if (!(await this.#options.probe())) continue
        this.#reopen(!signal.aborted)
        await store.close()
        await store.open()
      } catch (error) {
        if (error instanceof NotOwnerError) {
          // Whoever decides about shards drops it soon.
          log.info({ shard: index, error: String(error) }, 'a shard belongs to another node now')
          continue
        }
        log.error({ shard: index, error: String(error) }, 'a shard could not be reopened')
        if (this.#options.onReopenFailed?.(error) === true) this.#reopen(false)
        continue
      }
      if (signal.aborted) return
      this.#forget()
      this.#to('serving')
      log.info({ shard: index }, 'the shard was opened again and is served again')
      this.#options.onReset()
      this.#reopen(false)
      return
    }
  }

  #reopen(isReopening: boolean): void {
    this.#isReopening = isReopening
    if (!isReopening) this.#waiters.release()
  }
}
