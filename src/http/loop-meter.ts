/**
 * Measures what pieces of work that run in one go cost the event loop.
 *
 * The clock says how long a piece took, which on a busy machine is more than it did: another process had the CPU meanwhile.
 * So a piece that took long is held against the CPU time that this process has used since. That is read once in a
 * millisecond at most, since it takes a call of the system, and so may have a millisecond of other work in it.
 */
import type { Clock } from '../clock.ts'
import { loopCostFreeMs, loopCpuReadingMs } from '../limits.ts'

export interface LoopMeterOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** CPU time of this process, in milliseconds. */
  readonly cpuMs: () => number
}

export class LoopMeter {
  readonly #options: LoopMeterOptions
  #readAtMs = -Infinity
  #cpuMs = 0

  constructor(options: LoopMeterOptions) {
    this.#options = options
  }

  /** @returns What `costMs` wants to know. */
  begin(): number {
    const { clock, cpuMs } = this.#options
    const nowMs = clock.monotonicMs()
    if (nowMs - this.#readAtMs >= loopCpuReadingMs) {
      this.#readAtMs = nowMs
      this.#cpuMs = cpuMs()
    }
    return nowMs
  }

  /** @returns Milliseconds that the work since `begin` has cost. */
  costMs(sinceMs: number): number {
    const { clock, cpuMs } = this.#options
    const tookMs = clock.monotonicMs() - sinceMs
    return tookMs < loopCostFreeMs ? tookMs : Math.min(tookMs, cpuMs() - this.#cpuMs)
  }
}
