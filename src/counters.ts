import type { MetricName } from './metrics.ts'

/** Where the layers count what they do. In a worker this is the worker's slot of the shared memory. */
export interface Counters {
  add(name: MetricName, amount: number): void
}
