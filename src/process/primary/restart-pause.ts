/** The pause before a worker that died, or that could not be started, is started again. It grows with each failure in a row. */
import type { Clock, Timer } from '../../kit/clock.ts'

/**
 * A worker that died is started again after these delays, the last one repeated. The first start is immediate because
 * requests wait 4 s; a worker that cannot start tries once a second, so that it does not burn a CPU.
 */
export const workerRestartDelaysMs: readonly number[] = [0, 250, 500, 1_000]

export class RestartPause {
  readonly #clock: Clock
  #timer: Timer | undefined
  #failures = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `start` after the pause. An earlier pause ends without its call. */
  begin(start: () => void): void {
    this.cancel()
    const last = workerRestartDelaysMs.length - 1
    const delayMs = workerRestartDelaysMs[Math.min(this.#failures, last)] ?? 0
    this.#failures++
    this.#timer = this.#clock.after(delayMs, start)
  }

  cancel(): void {
    this.#timer?.cancel()
  }

  /** Call this when a worker has served for long enough: the next pause is the shortest one. */
  reset(): void {
    this.#failures = 0
  }
}
