/**
 * Spreads work over turns: a number of callers may begin in each turn, and the others wait for later turns in their
 * order. What a turn is, the owner decides: one of the event loop, or a few milliseconds.
 */
import { Fifo } from './fifo.ts'

export interface PerTurnOptions {
  /** How many callers may begin in a turn. */
  readonly max: number
  /** Calls back when the turn is over that begins now. */
  readonly endTurn: (end: () => void) => void
}

export class PerTurn {
  readonly #options: PerTurnOptions
  readonly #waiting = new Fifo<() => void>()
  #begun = 0

  constructor(options: PerTurnOptions) {
    this.#options = options
  }

  /** Resolves when the caller may begin: immediately while this turn has room. */
  next(): Promise<void> {
    const { max } = this.#options
    if (this.#begun >= max) return new Promise((resolve) => this.#waiting.push(resolve))
    this.#begun += 1
    if (this.#begun === 1) this.#options.endTurn(() => this.#turn())
    return Promise.resolve()
  }

  #turn(): void {
    this.#begun = Math.min(this.#waiting.length, this.#options.max)
    if (this.#begun > 0) this.#options.endTurn(() => this.#turn())
    for (let left = this.#begun; left > 0; left--) this.#waiting.shift()?.()
  }
}
