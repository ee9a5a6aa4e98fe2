/**
 * The deliveries of one queue in the last hour, minute by minute: how often each outcome occurred, and how long responses
 * took. The dashboard draws charts from it.
 *
 * It is a ring of 60 rows in one typed array of 2,640 bytes. A row belongs to the minute that it names, so rows of minutes
 * without deliveries are neither written nor cleared.
 *
 *     | minute | one count for each outcome | responses | sum of ms | longest ms |
 *
 * 32 bits are enough. A minute is counted since 1970, and the sum of a minute is at most 60,000 ms for each of the
 * connections that a webhook may have, twice.
 */
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
}

const msPerMinute = 60_000

/** Counts the outcomes and response times of the last hour. All times are wall time. */
export class DeliveryHistory {
  readonly #outcomes: number
  readonly #columns: number
  readonly #rows: Uint32Array

  /** @param outcomes - the number of outcomes */
  constructor(outcomes: number) {
    this.#outcomes = outcomes
    this.#columns = outcomes + 4
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

  /** Returns the minutes of the last hour that had deliveries, oldest first. That of `nowMs` is the last one. */
  minutes(nowMs: number): readonly HistoryMinute[] {
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
    const [responses = 0, responseMsSum = 0, responseMsMax = 0] = values.slice(this.#outcomes)
    const counts = values.slice(0, this.#outcomes)
    return { minute, counts, responses, responseMsSum, responseMsMax }
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
