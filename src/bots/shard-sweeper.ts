/** Removes what is old from one shard after the other in the background, so that their load is never added up. */
import { type Clock, every, type Timer } from '../kit/clock.ts'
import type { Shard } from '../shard/shard.ts'
import type { Log } from '../kit/surroundings.ts'

export interface SweeperSurroundings {
  readonly clock: Clock
  readonly bots: { readonly shards: Iterable<Shard> }
  readonly log: Pick<Log, 'error'>
}

export interface ShardSweeperOptions extends SweeperSurroundings {
  /** What is logged if a sweep of a shard fails. The next sweep tries again. */
  readonly failure: string
  /** Removes what is old. It ends soon after `signal` was aborted. */
  readonly sweepShard: (shard: Shard, signal: AbortSignal) => Promise<void>
}

/**
 * Expired updates and old idempotency keys are removed this often. An expired update is never sent, but it uses memory
 * and disk for up to this long.
 */
const expirySweepPeriodMs = 60_000

export class ShardSweeper {
  readonly #options: ShardSweeperOptions
  readonly #timer: Timer
  readonly #stopping = new AbortController()

  constructor(options: ShardSweeperOptions) {
    this.#options = options
    this.#timer = every(options.clock, expirySweepPeriodMs, () => this.sweep())
  }

  close(): void {
    this.#stopping.abort()
    this.#timer.cancel()
  }

  async sweep(): Promise<void> {
    const { bots, sweepShard } = this.#options
    for (const shard of bots.shards) {
      await sweepShard(shard, this.#stopping.signal).catch((error: unknown) => {
        this.report(shard, error)
      })
    }
  }

  /** Logs a failure that does not end the sweep of the shard. */
  report(shard: Shard, error: unknown): void {
    if (this.#stopping.signal.aborted) return
    const { failure, log } = this.#options
    log.error({ shard: shard.index, error: String(error) }, failure)
  }
}
