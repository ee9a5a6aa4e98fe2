/**
 * Decides when an operator hears that a webhook fails, and that it does so no more:
 *
 *     fine --several failures in a row--> failing --a success--> doubtful --quiet for long, or many successes--> fine
 *                                            ^------- a failure -------+
 *
 * A webhook that fails every other time is one that fails. It is reported once, and not twice a minute.
 */
import type { Clock, Timer } from '../../kit/clock.ts'
import type { AttemptOutcome } from './attempt-log.ts'

/**
 * A webhook has recovered after this many successes in a row, or after this time without a failure. Chosen: an endpoint that
 * fails once in twenty times needs its operator still, and one with few updates must not be in doubt for an hour.
 */
export const recoveredSuccesses = 20
export const recoveredAfterMs = 5 * 60_000

export class RecoveryWatch {
  readonly #clock: Clock
  readonly #onFailing: (error: string) => void
  readonly #onRecovered: () => void
  #isTold = false
  #successes = 0
  #lastFailureMs = Number.NEGATIVE_INFINITY
  #recovery: Timer | undefined

  constructor(clock: Clock, onFailing: (error: string) => void, onRecovered: () => void) {
    this.#clock = clock
    this.#onFailing = onFailing
    this.#onRecovered = onRecovered
  }

  /** The webhook failed before, and its operator was told so, perhaps by another process. */
  toldFailing(): void {
    this.#isTold = true
  }

  /**
   * Learns of an attempt.
   *
   * @param error - of an attempt that has failed
   * @param fails - whether the webhook fails now
   */
  attempted(outcome: AttemptOutcome, { error, fails }: { error: string; fails: boolean }): void {
    // An endpoint that refuses an update for good responds as it should.
    if (outcome === 'delivered' || outcome === 'refused_for_good') {
      if (this.#isTold) this.#succeeded()
      return
    }
    this.#forget()
    this.#lastFailureMs = this.#clock.monotonicMs()
    if (fails && !this.#isTold) {
      this.#isTold = true
      this.#onFailing(error)
    }
  }

  /** Nothing more is attempted here. Whoever goes on knows nothing of a doubt, so it ends as it stands. */
  close(): void {
    if (this.#successes > 0) this.#recovered()
  }

  #succeeded(): void {
    this.#successes += 1
    if (this.#successes >= recoveredSuccesses) {
      this.#recovered()
      return
    }
    const quietMs = Math.max(this.#lastFailureMs + recoveredAfterMs - this.#clock.monotonicMs(), 0)
    this.#recovery ??= this.#clock.after(quietMs, () => this.#recovered())
  }

  #recovered(): void {
    this.#forget()
    this.#isTold = false
    this.#onRecovered()
  }

  #forget(): void {
    this.#successes = 0
    this.#recovery?.cancel()
    this.#recovery = undefined
  }
}
