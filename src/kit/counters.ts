import type { HistogramName } from './histograms.ts'
import type { MetricName } from './metrics.ts'

/** Where the layers count what they do. In a worker this is the worker's slot of the shared memory. */
export interface Counters {
  add(name: MetricName, amount: number): void
  /**
   * Adds to a histogram.
   *
   * @param timeMs - in milliseconds
   * @param count - the number of observations of this time. Default: 1.
   */
  observe(name: HistogramName, timeMs: number, count?: number): void
}
