/**
 * Lets a worker begin only so many connections to webhooks in a turn of the event loop. Each takes 0.3 ms and more, and
 * as much again once it is open; when the webhooks of 1,000 bots were brought to life at a start, hundreds
 * were begun in one turn, which held everything else of the worker up for a quarter of a second.
 */
import type { Clock } from '../clock.ts'
import { webhookOpeningsPerTurn } from '../limits.ts'

export class OpeningTurns {
  readonly #clock: Clock
  /** The first is the next. */
  #waiting: (() => void)[] = []
  #inThisTurn = 0
  #isTurnOver = true

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when the caller may begin; at once, as long as this turn's are not used up. */
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
