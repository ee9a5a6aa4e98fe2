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

/** The CPU time is read at most this often, and once in so many pieces; a reading takes 1 us, and far more in some sandboxes. */
const loopCpuReadingMs = 1
const loopCpuReadingPieces = 8
/** But a piece that begins later than this reads it. Chosen: few readings, and little that other work can have used. */
const loopCpuKnownMs = 10

export class LoopMeter {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #cpuTimeMs: () => number
  #readAtMs = -Infinity
  #piecesSince = 0
  #cpuMs = 0

  /** @param cpuTimeMs - returns the CPU time of this process in milliseconds */
  constructor(clock: Pick<Clock, 'monotonicMs'>, cpuTimeMs: () => number) {
    this.#clock = clock
    this.#cpuTimeMs = cpuTimeMs
  }

  /** @returns the start of a measurement, for `costMs` */
  begin(): number {
    const nowMs = this.#clock.monotonicMs()
    const isManyPieces = ++this.#piecesSince >= loopCpuReadingPieces
    if (nowMs - this.#readAtMs >= (isManyPieces ? loopCpuReadingMs : loopCpuKnownMs)) {
      this.#readAtMs = nowMs
      this.#piecesSince = 0
      this.#cpuMs = this.#cpuTimeMs()
    }
    return nowMs
  }

  /** @returns what the work since `begin` has cost, in milliseconds */
  costMs(sinceMs: number): number {
    const tookMs = this.#clock.monotonicMs() - sinceMs
    return tookMs < loopCostFreeMs ? tookMs : Math.min(tookMs, this.#cpuTimeMs() - this.#cpuMs)
  }
}
