/**
 * Limits how many connections to webhooks a worker begins per turn of the event loop. Each takes at least 0.3 ms, and as
 * much again once it is open. When the webhooks of 1,000 bots were started together, hundreds of connections began in one
 * turn and blocked the worker for a quarter of a second.
 */
import type { Clock } from '../clock.ts'
import { webhookOpeningsPerTurn } from '../limits.ts'

export class OpeningTurns {
  readonly #clock: Clock
  /** Waiting callers; the first one is next. */
  #waiting: (() => void)[] = []
  #inThisTurn = 0
  #isTurnOver = true

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when the caller may begin: immediately, unless the openings of this turn are used up. */
  next(): Promise<void> {
    if (this.#inThisTurn >= webhookOpeningsPerTurn) {
      return new Promise((resolve) => this.#waiting.push(resolve))
    }
    this.#inThisTurn += 1
    this.#endTurnSoon()
    return Promise.resolve()
  }

  #endTurnSoon(): void {
    if (!this.#isTurnOver) return
    this.#isTurnOver = false
    this.#clock.soon(() => {
      this.#isTurnOver = true
      const admitted = this.#waiting.slice(0, webhookOpeningsPerTurn)
      this.#waiting = this.#waiting.slice(admitted.length)
      this.#inThisTurn = admitted.length
      if (admitted.length > 0) this.#endTurnSoon()
      for (const admit of admitted) admit()
    })
  }
}
