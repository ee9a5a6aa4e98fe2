/** What a server did in one minute. The nodes of a cluster add theirs. */
import { deliveryBoundsMs, deliveryHistograms, percentileMs } from './histograms.ts'
import { summaryMetrics } from './metrics.ts'
import { recordOf } from './record-of.ts'

/** A counter of the history. */
export type ServerCount = keyof typeof summaryMetrics
/** How bots get their updates. */
export type DeliveryMode = keyof typeof deliveryHistograms

export interface ServerMinute {
  /** Minutes since 1970. */
  readonly minute: number
  /** What each counter has counted in it. */
  readonly updates: Readonly<Record<ServerCount, number>>
  /** What each bucket of the delivery times has counted in it. */
  readonly delivery: Readonly<Record<DeliveryMode, readonly number[]>>
}

// The type of Object.keys does not keep the names.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const serverCounts = Object.keys(summaryMetrics) as readonly ServerCount[]
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const deliveryModes = Object.keys(deliveryHistograms) as readonly DeliveryMode[]

/** Returns the sum of a minute of two nodes. */
export function addServerMinutes(a: ServerMinute, b: ServerMinute): ServerMinute {
  return {
    minute: a.minute,
    updates: recordOf(serverCounts, (name) => a.updates[name] + b.updates[name]),
    delivery: recordOf(deliveryModes, (mode) =>
      a.delivery[mode].map((count, bucket) => count + (b.delivery[mode][bucket] ?? 0)),
    ),
  }
}

/** Returns a percentile of the delivery times in tenths of a millisecond; null if nothing was delivered. */
export function deliveryPercentileMs(
  minute: ServerMinute | undefined,
  mode: DeliveryMode,
  share: number,
): number | null {
  const ms = minute && percentileMs(deliveryBoundsMs, minute.delivery[mode], share)
  return ms === undefined ? null : Math.round(ms * 10) / 10
}
