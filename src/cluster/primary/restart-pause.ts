/** The pause before a worker that died, or that could not be started, is started again. It grows with each failure in a row. */
import type { Clock, Timer } from '../../clock.ts'
import { workerRestartDelaysMs } from '../limits.ts'

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
