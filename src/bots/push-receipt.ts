/** What comes of a batch of pushes, and how those that are refused count. */
import type { ErrorCode, PostboteError } from '../kit/errors.ts'
import { type MetricName, refusalMetrics } from '../kit/metrics.ts'
import type { Counters } from '../kit/surroundings.ts'

/** The result of a push whose idempotency key was used before: the id of the update that is already stored. */
export interface DuplicatePush {
  readonly duplicateOf: number
}

/** The update's id, or the reason why there is none. */
export type PushOutcome = number | DuplicatePush | 'filtered' | PostboteError

/** The two stages of a batch of pushes. */
export interface PushReceipt {
  /**
   * Resolves when the ids are allocated. A later push for the same bot gets higher ids. The indexes are those of the pushes
   * that are left to the next owner of their shard.
   */
  readonly accepted: Promise<ReadonlySet<number>>
  /** Resolves when every accepted update is synced, with one result per push, in the order of the pushes. */
  readonly results: Promise<readonly PushOutcome[]>
}

const metricOf: Readonly<Partial<Record<ErrorCode, MetricName>>> = refusalMetrics

/** Counts a push that gets an error: once by its code, and once in the sum of all codes. */
export function countRefusal(counters: Counters, code: ErrorCode): void {
  counters.add('updates_refused', 1)
  counters.add(metricOf[code] ?? refusalMetrics.OTHER, 1)
}
