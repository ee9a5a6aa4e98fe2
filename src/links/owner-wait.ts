/** How long a call looks for the owner of its shard, while the shard passes from one to the next. */
import type { Clock } from '../kit/clock.ts'
import { PostboteError } from '../kit/errors.ts'
import { ownerWaitMs, ownerWaitMsMax } from '../api/limits.ts'

/**
 * Nothing was done, and the shard is on its way: the worker that was asked says who has it, or the next one could not be reached
 * yet.
 */
export class ShardMoves extends PostboteError {
  /** Whether it was named where nobody has asked yet: no need to wait before that. */
  readonly isElsewhere: boolean

  constructor(cause: unknown, isElsewhere = false) {
    super('STORE_UNAVAILABLE', { cause })
    this.isElsewhere = isElsewhere
  }
}

/**
 * The wait of one call: `ownerWaitMs` without a word about the shard. A planned move says where the shard goes, and whoever hears
 * that waits anew, so that a shard that opens slowly fails nobody.
 */
export class OwnerWait {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #sinceMs: number
  #untilMs: number

  constructor(clock: Pick<Clock, 'monotonicMs'>, sinceMs = clock.monotonicMs()) {
    this.#clock = clock
    this.#sinceMs = sinceMs
    this.#untilMs = sinceMs + ownerWaitMs
  }

  /** How long the call has waited. */
  get waitedMs(): number {
    return this.#clock.monotonicMs() - this.#sinceMs
  }

  get isOver(): boolean {
    return this.#clock.monotonicMs() >= this.#untilMs
  }

  /** Somebody has said who has the shard. */
  renew(): void {
    const untilMs = this.#clock.monotonicMs() + ownerWaitMs
    this.#untilMs = Math.min(untilMs, this.#sinceMs + ownerWaitMsMax)
  }
}
