/**
 * What code takes from its process as a parameter, so that tests can control it. Options take the parts that they need:
 * `extends Pick<Surroundings, 'clock' | 'counters'>`.
 */
import type { Clock } from './clock.ts'
import type { HistogramName } from './histograms.ts'
import type { MetricName } from './metrics.ts'

/** The part of pino that is used: a method takes fields and a sentence. */
export interface Log {
  debug(fields: object, text: string): void
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}

export interface Surroundings {
  readonly clock: Clock
  readonly log: Log
  readonly counters: Counters
  /** Returns a random number from 0 up to, but not including, 1. */
  readonly random: () => number
}

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
