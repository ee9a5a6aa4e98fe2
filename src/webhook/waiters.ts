/** Callers that wait for the same event, each with its own timeout. */
import type { Clock } from '../clock.ts'

export class Waiters {
  readonly #clock: Clock
  #resolves: (() => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves at the next `release`, or after `timeoutMs`. */
  wait(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(timeoutMs, resolve)
      this.#resolves.push(() => {
        timer.cancel()
        resolve()
      })
    })
  }

  release(): void {
    if (this.#resolves.length === 0) return
    const resolves = this.#resolves
    this.#resolves = []
    for (const resolve of resolves) resolve()
  }
}
