/**
 * Measures what a synchronous piece of work costs the event loop.
 *
 * On a busy machine the clock shows more than the cost, because another process may have had the CPU during that time. So
 * the time of a long piece is limited to the CPU time that this process has used since it began. Reading the CPU time
 * takes a system call, so it is read at most once per millisecond, and the limit may include a millisecond of other work.
 */
import type { Clock } from '../clock.ts'
import { loopCostFreeMs } from './limits.ts'

export interface LoopMeterOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Returns the CPU time of this process in milliseconds. */
  readonly cpuMs: () => number
}

/** The CPU time is read at most this often; a reading takes 1 us. */
const loopCpuReadingMs = 1

export class LoopMeter {
  readonly #options: LoopMeterOptions
  #readAtMs = -Infinity
  #cpuMs = 0

  constructor(options: LoopMeterOptions) {
    this.#options = options
  }

  /** @returns the start of a measurement, for `costMs` */
  begin(): number {
    const { clock, cpuMs } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#readAtMs >= loopCpuReadingMs) {
      this.#readAtMs = nowMs
      this.#cpuMs = cpuMs()
    }
    return nowMs
  }

  /** @returns what the work since `begin` has cost, in milliseconds */
  costMs(sinceMs: number): number {
    const { clock, cpuMs } = this.#options
    const tookMs = clock.monotonicMs() - sinceMs
    return tookMs < loopCostFreeMs ? tookMs : Math.min(tookMs, cpuMs() - this.#cpuMs)
  }
}
