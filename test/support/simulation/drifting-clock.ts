import type { Luck } from './luck.ts'

/** A monotonic clock that begins anywhere and runs at a rate of its own. */
export class DriftingClock {
  readonly #rate: number
  readonly #offsetMs: number

  /** @param drift - its rate differs from that of true time by up to this share */
  constructor(luck: Luck, drift: number) {
    this.#rate = 1 + (luck.next() * 2 - 1) * drift
    this.#offsetMs = luck.int(-1_000_000, 1_000_000)
  }

  localMs(trueMs: number): number {
    return trueMs * this.#rate + this.#offsetMs
  }

  trueMs(localMs: number): number {
    return (localMs - this.#offsetMs) / this.#rate
  }

  /** The true time at which so much time has passed on this clock. */
  afterMs(nowMs: number, localMs: number): number {
    return nowMs + localMs / this.#rate
  }
}
