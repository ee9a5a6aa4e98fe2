/**
 * Spreads work over turns: a number of callers may begin in each turn, and the others wait for later turns in their
 * order. What a turn is, the owner decides: one of the event loop, or a few milliseconds.
 */
import assert from 'node:assert/strict'
import { Fifo } from './fifo.ts'

export class PerTurn {
  readonly #max: number
  readonly #endTurn: (end: () => void) => void
  readonly #waiting = new Fifo<() => void>()
  #begun = 0

  /**
   * @param max - how many callers may begin in a turn
   * @param endTurn - calls back when the turn is over that begins now
   */
  constructor(max: number, endTurn: (end: () => void) => void) {
    assert(max > 0, 'some caller begins in a turn')
    this.#max = max
    this.#endTurn = endTurn
  }

  /** Resolves when the caller may begin: immediately while this turn has room. */
  next(): Promise<void> {
    if (this.#begun >= this.#max) return new Promise((resolve) => this.#waiting.push(resolve))
    this.#begun += 1
    if (this.#begun === 1) this.#endTurn(() => this.#turn())
    return Promise.resolve()
  }

  #turn(): void {
    this.#begun = Math.min(this.#waiting.length, this.#max)
    if (this.#begun > 0) this.#endTurn(() => this.#turn())
    for (let left = this.#begun; left > 0; left--) this.#waiting.shift()?.()
  }
}
