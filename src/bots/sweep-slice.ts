/** The time that a sweep takes at once. */
import { type Clock, nextTurn } from '../kit/clock.ts'

/** A sweep lets other work run after this time, so that it does not delay requests noticeably. */
const sweepSliceMs = 10

export class SweepSlice {
  readonly #clock: Clock
  #startMs: number

  /** The first slice begins now. */
  constructor(clock: Clock) {
    this.#clock = clock
    this.#startMs = clock.monotonicMs()
  }

  /** Lets other work run if the slice is over; then the next one begins. Call this after each piece of the sweep. */
  async rest(): Promise<void> {
    if (this.#clock.monotonicMs() - this.#startMs < sweepSliceMs) return
    await nextTurn(this.#clock)
    this.#startMs = this.#clock.monotonicMs()
  }
}
