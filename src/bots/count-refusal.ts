import type { Counters } from '../kit/surroundings.ts'
import type { ErrorCode } from '../kit/errors.ts'
import { type MetricName, refusalMetrics } from '../kit/metrics.ts'

const metricOf: Readonly<Partial<Record<ErrorCode, MetricName>>> = refusalMetrics

/** Counts a push that gets an error: once by its code, and once in the sum of all codes. */
export function countRefusal(counters: Counters, code: ErrorCode): void {
  counters.add('updates_refused', 1)
  counters.add(metricOf[code] ?? refusalMetrics.OTHER, 1)
}
