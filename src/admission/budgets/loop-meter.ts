/**
 * Measures what a synchronous piece of work costs the event loop.
 *
 * On a busy machine the clock shows more than the cost, because another process may have had the CPU during that time. So
 * the time of a long piece is limited to the CPU time that this process has used since it began. Reading the CPU time
 * takes a system call, so it is read once in several pieces, and the limit may include what came in between: a few pieces,
 * a millisecond of many, or whatever else the process did in 10 ms.
 */
import type { Clock } from '../../kit/clock.ts'
import { loopCostFreeMs } from '../../http/limits.ts'

export interface LoopMeterOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Returns the CPU time of this process in milliseconds. */
  readonly cpuMs: () => number
}

/** The CPU time is read at most this often, and once in so many pieces; a reading takes 1 us, and far more in some sandboxes. */
const loopCpuReadingMs = 1
const loopCpuReadingPieces = 8
/** But a piece that begins later than this reads it. Chosen: few readings, and little that other work can have used. */
const loopCpuKnownMs = 10

export class LoopMeter {
  readonly #options: LoopMeterOptions
  #readAtMs = -Infinity
  #piecesSince = 0
  #cpuMs = 0

  constructor(options: LoopMeterOptions) {
    this.#options = options
  }

  /** @returns the start of a measurement, for `costMs` */
  begin(): number {
    const { clock, cpuMs } = this.#options
    const nowMs = clock.monotonicMs()
    const isManyPieces = ++this.#piecesSince >= loopCpuReadingPieces
    if (nowMs - this.#readAtMs >= (isManyPieces ? loopCpuReadingMs : loopCpuKnownMs)) {
      this.#readAtMs = nowMs
      this.#piecesSince = 0
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
