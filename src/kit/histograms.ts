/**
 * All histograms that workers fill in shared memory. The position of a row is its place in a slot (metric-slot.ts), so the rules of
 * metrics.ts hold: append only, do not reorder, at most `histogramsMax` rows, and a row keeps its bounds.
 *
 * Everything here is in milliseconds. /metrics shows seconds, the base unit of Prometheus.
 */
import { recordOf } from './record-of.ts'

interface Row {
  /** Without `postbote_`. Rows with the same one are one metric, told apart by their label. */
  readonly metric: string
  readonly label?: Readonly<Record<string, string>>
  readonly help: string
  /** The highest time of each bucket, rising, at most `boundsMax`. A last bucket takes what is above all of them. */
  readonly boundsMs: readonly number[]
  /** The unit of the sum is a millisecond divided by this. The sum of hours counted in microseconds would take several steps. */
  readonly unitsPerMs: 1 | 1_000
}

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const toTenSecondsMs = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000] as const
const delivery = {
  metric: 'delivery_seconds',
  help: 'Times from when an update was stored until the bot first confirmed it or its webhook accepted it.',
  boundsMs: [
    ...toTenSecondsMs,
    30 * secondMs,
    minuteMs,
    5 * minuteMs,
    15 * minuteMs,
    hourMs,
    4 * hourMs,
    12 * hourMs,
    24 * hourMs,
  ],
  unitsPerMs: 1,
} as const

const rows = {
  delivery_polling: { ...delivery, label: { mode: 'polling' } },
  delivery_webhook: { ...delivery, label: { mode: 'webhook' } },
  attempt: {
    metric: 'attempt_seconds',
    help: 'Times that attempts to deliver to webhooks took, from the request to its response or its failure.',
    boundsMs: [...toTenSecondsMs, 30 * secondMs, minuteMs, 2 * minuteMs],
    unitsPerMs: 1_000,
  },
  push: {
    metric: 'push_seconds',
    help: 'Times from the arrival of a push until it was synced.',
    boundsMs: [0.25, 0.5, ...toTenSecondsMs, 30 * secondMs],
    unitsPerMs: 1_000,
  },
  sync: {
    metric: 'sync_seconds',
    help: 'Times that the shards took to write and sync a batch.',
    boundsMs: [0.1, 0.25, 0.5, ...toTenSecondsMs, 30 * secondMs],
    unitsPerMs: 1_000,
  },
} as const satisfies Readonly<Record<string, Row>>

export type HistogramName = keyof typeof rows

export interface Histogram extends Row {
  readonly name: HistogramName
}

/** The counts of a histogram. */
export interface HistogramValues {
  /** One for each bound, and the last one for what is above all of them. They are not cumulative. */
  readonly counts: readonly number[]
  readonly sumMs: number
}

export type AllHistograms = Readonly<Record<HistogramName, HistogramValues>>

/** Builds a record that has one value for each histogram. */
export function forEachHistogram<Value>(
  valueOf: (histogram: Histogram, index: number) => Value,
): Record<HistogramName, Value> {
  return recordOf(names, (name, index) => valueOf({ name, ...rows[name] }, index))
}

/** The histograms of the time until an update is delivered, by the mode of its bot. */
export const deliveryHistograms = {
  polling: 'delivery_polling',
  webhook: 'delivery_webhook',
} as const satisfies Readonly<Record<string, HistogramName>>

/** The bounds of both. */
export const deliveryBoundsMs: readonly number[] = delivery.boundsMs

/** Returns the bucket of a time: that of the first bound that is not below it. */
export function bucketOf(boundsMs: readonly number[], ms: number): number {
  let low = 0
  let high = boundsMs.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ms <= (boundsMs[middle] ?? 0)) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * Returns the time below which a share of the observations is, as Prometheus' histogram_quantile estimates it: within a bucket,
 * they are taken as evenly spread.
 *
 * @param share - above 0, at most 1
 * @returns undefined without observations, and the last bound for what is above it
 */
export function percentileMs(
  boundsMs: readonly number[],
  counts: readonly number[],
  share: number,
): number | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  let left = total * share
  for (const [bucket, boundMs] of boundsMs.entries()) {
    const count = counts[bucket] ?? 0
    if (left <= count) {
      const belowMs = boundsMs[bucket - 1] ?? 0
      return belowMs + (boundMs - belowMs) * (left / count)
    }
    left -= count
  }
  return boundsMs.at(-1)
}

// The type of Object.keys does not keep the names.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const names = Object.keys(rows) as HistogramName[]

export const histograms: readonly Histogram[] = names.map((name) => ({ name, ...rows[name] }))
