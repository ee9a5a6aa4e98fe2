/**
 * Paces the refusals of one bot (protocol.md §5.6), because several frameworks repeat a refused call without a pause.
 *
 * The first refusal is sent immediately. Another within 3 s of the last immediate one waits 3 s. At most 256 wait;
 * past that the oldest is sent.
 */
import type { Clock } from '../kit/clock.ts'
import { Waiters } from '../kit/waiters.ts'
import { refusalDelayMs } from '../kit/limits.ts'

/**
 * This many delayed conflicts wait per bot; past that the oldest is sent. Each holds a connection, which its client would keep
 * open anyway. Chosen: so many connections that repeat refused calls at once cause 85 calls a second, 1 % of a worker.
 */
export const delayedRefusalsPerBotMax = 256

export class RefusalPacer {
  readonly #clock: Clock
  /** Created by the first refusal that waits. There is a pacer for every bot, and most never refuse anything. */
  #delayed: Waiters | undefined
  #lastAtOnceMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get delayedCount(): number {
    return this.#delayed?.size ?? 0
  }

  /** Resolves when the refusal may be sent. An `alwaysDelayed` refusal is never sent immediately. */
  pace(options: { readonly alwaysDelayed: boolean }): Promise<void> {
    const nowMs = this.#clock.monotonicMs()
    if (!options.alwaysDelayed && nowMs - this.#lastAtOnceMs >= refusalDelayMs) {
      this.#lastAtOnceMs = nowMs
      return Promise.resolve()
    }
    const waiting = (this.#delayed ??= new Waiters(this.#clock))
    if (waiting.size >= delayedRefusalsPerBotMax) waiting.release(1)
    return waiting.wait(refusalDelayMs)
  }

  /** Releases all waiting refusals, as at a shutdown. */
  releaseAll(): void {
    this.#delayed?.release()
  }
}
