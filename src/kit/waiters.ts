/** Callers that wait for the same event, each with its own timeout. */
import type { Clock } from './clock.ts'

export class Waiters {
  readonly #clock: Pick<Clock, 'after'>
  /** Each ends one wait. The oldest is first. */
  readonly #waiting = new Set<() => void>()

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Resolves at the next `release`, or after `timeoutMs`. */
  wait(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        timer.cancel()
        this.#waiting.delete(finish)
        resolve()
      }
      const timer = this.#clock.after(timeoutMs, finish)
      this.#waiting.add(finish)
    })
  }

  /** Ends all waits, or only the oldest `count` ones. */
  release(count = Number.POSITIVE_INFINITY): void {
    if (this.#waiting.size === 0) return
    let left = count
    for (const finish of this.#waiting) {
      if (left-- <= 0) return
      finish()
    }
  }
}
