/**
 * Removes idempotency keys of past half-days, also in shards where keys are no longer used.
 *
 * It works in slices with a pause after each, because twice a day all keys of half a day are due at the same time. It
 * is separate from the sweep of expired updates, which it would delay by minutes.
 */
import { type Clock, type Timer, every, sleep } from '../clock.ts'
import { expirySweepPeriodMs, idempotencySweepPauseMs } from './limits.ts'
import type { Shard } from '../shard/shard.ts'

export interface KeySweeperOptions {
  readonly clock: Clock
  readonly bots: { readonly shards: Iterable<Shard> }
  readonly log: { error(details: object, message: string): void }
}

export class KeySweeper {
  readonly #options: KeySweeperOptions
  readonly #timer: Timer
  readonly #stopping = new AbortController()

  constructor(options: KeySweeperOptions) {
    this.#options = options
    this.#timer = every(options.clock, expirySweepPeriodMs, () => this.sweep())
  }

  close(): void {
    this.#stopping.abort()
    this.#timer.cancel()
  }

  /** Sweeps one shard after the other, so that the pauses limit the load of all of them together. */
  async sweep(): Promise<void> {
    for (const shard of this.#options.bots.shards) {
      try {
        await this.#sweepShard(shard)
      } catch (error) {
        if (this.#stopping.signal.aborted) return
        this.#options.log.error(
          { shard: shard.index, error: String(error) },
          'old idempotency keys could not be removed; the next try is in a minute',
        )
      }
    }
  }

  async #sweepShard(shard: Shard): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#stopping
    let after: Buffer | undefined
    while (!signal.aborted && shard.status === 'serving') {
      after = await shard.idempotency.removeOld(shard.clock.nowMs(), after)
      if (after === undefined) return
      await sleep(clock, idempotencySweepPauseMs, signal)
    }
  }
}
