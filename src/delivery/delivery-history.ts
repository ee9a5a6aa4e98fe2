/**
 * The deliveries of one queue in the last hour, minute by minute: how often each outcome occurred, how long responses
 * took, and how late the delivered updates were. The dashboard draws charts from it.
 *
 * It is a ring of 60 rows in one typed array of 3,120 bytes. A row belongs to the minute that it names, so rows of minutes
 * without deliveries are neither written nor cleared.
 *
 *     | minute | one count for each outcome | responses | sum of ms | longest ms | p50 | p99 of delivery times in ms |
 *
 * The buckets of delivery times are kept for one minute only: with a row for each minute they would take three times as much
 * as all else. The percentiles of that minute are computed when it is read, or when a later one begins.
 *
 * 32 bits are enough. A minute is counted since 1970, and the sum of a minute is at most 60,000 ms for each of the
 * connections that a webhook may have, twice.
 */
import { bucketOf, deliveryBoundsMs, percentileMs } from '../kit/histograms.ts'
import { deliveryHistoryMinutes } from './limits.ts'

/** One minute with deliveries. */
export interface HistoryMinute {
  /** Minutes since 1970. */
  readonly minute: number
  /** The number of each outcome, in the order of the outcomes. */
  readonly counts: readonly number[]
  /** The number of attempts that got a response. */
  readonly responses: number
  /** The sum of the times that these took, in milliseconds. */
  readonly responseMsSum: number
  /** The longest of them. */
  readonly responseMsMax: number
  /** The percentiles of the delivery times, in milliseconds; undefined if nothing was delivered. */
  readonly deliveryP50Ms: number | undefined
  readonly deliveryP99Ms: number | undefined
}

const msPerMinute = 60_000
/** Of the percentiles, in the order of their columns. */
const shares = [0.5, 0.99]

/** Counts the outcomes and response times of the last hour. All times are wall time. */
export class DeliveryHistory {
  readonly #outcomes: number
  readonly #columns: number
  readonly #rows: Uint32Array
  /** The delivery times of one minute by their buckets; created on first use. */
  #buckets: Uint32Array | undefined
  #bucketsMinute = 0

  /** @param outcomes - the number of outcomes */
  constructor(outcomes: number) {
    this.#outcomes = outcomes
    this.#columns = outcomes + 6
    this.#rows = new Uint32Array(deliveryHistoryMinutes * this.#columns)
  }

  /** Counts how often an outcome occurred, by its position in the list of outcomes. */
  count(outcome: number, atMs: number, count: number): void {
    const at = this.#rowOf(atMs) + 1 + outcome
    this.#rows[at] = (this.#rows[at] ?? 0) + count
  }

  /** Adds the time that a response took, at most 2^32 ms. */
  addResponse(atMs: number, durationMs: number): void {
    const at = this.#rowOf(atMs) + 1 + this.#outcomes
    const rows = this.#rows
    const ms = Math.round(durationMs)
    rows[at] = (rows[at] ?? 0) + 1
    rows[at + 1] = (rows[at + 1] ?? 0) + ms
    rows[at + 2] = Math.max(rows[at + 2] ?? 0, ms)
  }

  /** Counts updates that were delivered this long after they were stored. */
  addDelivery(atMs: number, delayMs: number, count: number): void {
    const minute = Math.floor(atMs / msPerMinute)
    const buckets = (this.#buckets ??= new Uint32Array(deliveryBoundsMs.length + 1))
    if (minute !== this.#bucketsMinute) {
      this.#writePercentiles(buckets)
      buckets.fill(0)
      this.#bucketsMinute = minute
    }
    this.#rowOf(atMs)
    const bucket = bucketOf(deliveryBoundsMs, delayMs)
    buckets[bucket] = (buckets[bucket] ?? 0) + count
  }

  /** Returns the minutes of the last hour that had deliveries, oldest first. That of `nowMs` is the last one. */
  minutes(nowMs: number): readonly HistoryMinute[] {
    if (this.#buckets !== undefined) this.#writePercentiles(this.#buckets)
    const last = Math.floor(nowMs / msPerMinute)
    const found: HistoryMinute[] = []
    for (let minute = last - deliveryHistoryMinutes + 1; minute <= last; minute++) {
      const at = (minute % deliveryHistoryMinutes) * this.#columns
      if (this.#rows[at] === minute) found.push(this.#read(at))
    }
    return found
  }

  #read(at: number): HistoryMinute {
    const [minute = 0, ...values] = this.#rows.subarray(at, at + this.#columns)
    const [responses = 0, responseMsSum = 0, responseMsMax = 0, p50 = 0, p99 = 0] = values.slice(
      this.#outcomes,
    )
    const counts = values.slice(0, this.#outcomes)
    const deliveryP50Ms = p50 === 0 ? undefined : p50 - 1
    const deliveryP99Ms = p99 === 0 ? undefined : p99 - 1
    return {
      minute,
      counts,
      responses,
      responseMsSum,
      responseMsMax,
      deliveryP50Ms,
      deliveryP99Ms,
    }
  }

  /** Writes them into the row of their minute, one higher, because 0 stands for none. */
  #writePercentiles(buckets: Uint32Array): void {
    const at = (this.#bucketsMinute % deliveryHistoryMinutes) * this.#columns
    if (this.#rows[at] !== this.#bucketsMinute) return
    const to = at + this.#columns - shares.length
    for (const [nth, share] of shares.entries()) {
      const ms = percentileMs(deliveryBoundsMs, [...buckets], share)
      this.#rows[to + nth] = ms === undefined ? 0 : Math.round(ms) + 1
    }
  }

  /** Returns where the row of a time begins. A row of another minute is cleared, because it is an hour old or more. */
  #rowOf(atMs: number): number {
    const minute = Math.floor(atMs / msPerMinute)
    const at = (minute % deliveryHistoryMinutes) * this.#columns
    if (this.#rows[at] !== minute) {
      this.#rows.fill(0, at, at + this.#columns)
      this.#rows[at] = minute
    }
    return at
  }
}
