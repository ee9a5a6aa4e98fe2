/** A payer whose turns the test gives, and which notes what is charged. */
import { PostboteError } from '../../../src/kit/errors.ts'
import type { LoopPayer } from '../../../src/http/loop-payer.ts'

export class TestPayer implements LoopPayer {
  /** What each part was charged, in milliseconds. */
  readonly charges: number[] = []
  /** How many turns were measured. */
  measured = 0
  /** While it is over its budget, its work waits for `goOn`, or is refused. */
  isOver: 'waits' | 'refused' | false = false
  readonly #waiting: (() => void)[] = []

  /** How much of its work waits. */
  get waiting(): number {
    return this.#waiting.length
  }

  goOn(): void {
    for (const start of this.#waiting.splice(0)) start()
  }

  turn(): Promise<void> | undefined {
    if (this.isOver === false) return undefined
    if (this.isOver === 'waits') return new Promise((resolve) => this.#waiting.push(resolve))
    return Promise.reject(new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: 1 }))
  }

  charge(costMs: number): void {
    this.charges.push(costMs)
  }

  begin(): number {
    return 0
  }

  spent(): void {
    this.measured += 1
  }
}
