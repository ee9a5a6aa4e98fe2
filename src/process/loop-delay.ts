/**
 * Measures how long a worker's event loop makes its work wait, as two gauges, and notes that it turns. Whatever blocks the
 * loop, such as a large request or a garbage collection, delays every bot of the worker.
 *
 * Every 20 ms Node checks in C++ how late one of its timers is, without running JavaScript. A gauge shows the worst value
 * of the last minute, so that Prometheus misses nothing between two scrapes and several readers see the same value.
 */
import { type Clock, type DelayHistogram, type Timer, every, watchEventLoop } from '../kit/clock.ts'
import type { WorkerStart } from './channel/worker-control.ts'
import type { SharedMemory } from './shared-memory/shared-memory.ts'
import type { GaugeName } from '../kit/metrics.ts'

interface Gauges {
  set(name: GaugeName, value: number): void
}

/**
 * The delay of the event loop is measured this often, so a delay may be this much longer than the gauge shows. An idle
 * worker spends 0.2 % of a core on it; with 10 ms it would be 0.3 %.
 */
export const loopDelayResolutionMs = 20
/** The gauges of the event-loop delay are updated this often. Chosen: Prometheus usually reads every 15 to 60 s. */
export const loopDelayPeriodMs = 10_000
/** A worker notes this often that its event loop turns. It costs microseconds. */
const loopTurnPeriodMs = 1_000

export class LoopDelay {
  readonly #gauges: Gauges
  readonly #histogram: DelayHistogram
  readonly #timers: readonly Timer[]
  readonly #maxUs: number[] = []
  readonly #p99Us: number[] = []

  /** @param turned - called once a second while the loop turns */
  constructor(
    clock: Clock,
    gauges: Gauges,
    turned: () => void,
    histogram: DelayHistogram = watchEventLoop(loopDelayResolutionMs),
  ) {
    this.#gauges = gauges
    this.#histogram = histogram
    this.#timers = [
      every(clock, loopDelayPeriodMs, () => this.#show()),
      every(clock, loopTurnPeriodMs, turned),
    ]
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel()
  }

  #show(): void {
    const gauges = this.#gauges
    const histogram = this.#histogram
    gauges.set('event_loop_delay_max_us', worstOf(this.#maxUs, delayUs(histogram.max)))
    gauges.set('event_loop_delay_p99_us', worstOf(this.#p99Us, delayUs(histogram.percentile(99))))
    histogram.reset()
  }
}

interface LoopDelayContext {
  readonly start: Pick<WorkerStart, 'worker'>
  readonly memory: Pick<SharedMemory, 'workerTable'>
  readonly clock: Clock
  readonly slot: Gauges
}

/** Watches the event loop of a worker, and shows in shared memory that it turns. */
export function loopDelayOf({ start, memory, clock, slot }: LoopDelayContext): LoopDelay {
  const turned = (): void => {
    memory.workerTable.turned(start.worker, process.pid, Math.floor(clock.machineMs() / 1_000))
  }
  return new LoopDelay(clock, slot, turned)
}

function delayUs(betweenNs: number): number {
  return Math.max(0, Math.round(betweenNs / 1_000) - loopDelayResolutionMs * 1_000)
}

/** The gauges show the worst of this many periods: one minute, which is as long as a usual scrape interval. */
export const loopDelayPeriodsShown = 6

/** Adds the latest value to those of the last minute and returns the worst. */
function worstOf(shown: number[], latest: number): number {
  shown.push(latest)
  if (shown.length > loopDelayPeriodsShown) shown.shift()
  return Math.max(...shown)
}
