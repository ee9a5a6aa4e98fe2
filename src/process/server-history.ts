/**
 * What the server did in each minute of the last day, so that the page does not begin at 0 at each load. It is in shared memory,
 * so it outlasts workers and reloads, and each worker can show it. A restart of the server begins a new one.
 *
 *     1 word     the minute since 1970; 0: the row is empty, or is being cleared
 *     5 words    what each counter of the history has counted in it
 *     22 words   what each bucket of the delivery times of polling bots has counted in it
 *     22 words   the same of webhooks
 *
 * A row belongs to the minute that it names, so a minute in which the server did not run has none. Only the primary writes
 * (`HistoryRecorder`): every few seconds, it adds what was counted since then to the row of the present minute.
 */
import { type Clock, every } from '../kit/clock.ts'
import { type AllHistograms, deliveryBoundsMs, deliveryHistograms } from '../kit/histograms.ts'
import { type MetricName, summaryMetrics } from '../kit/metrics.ts'
import { serverHistoryMinutes } from '../api/limits.ts'
import { deliveryModes, serverCounts, type ServerMinute } from '../kit/server-minute.ts'
import { recordOf } from '../kit/record-of.ts'

const buckets = deliveryBoundsMs.length + 1
const valueWords = serverCounts.length + deliveryModes.length * buckets
const rowWords = 1 + valueWords
const historyWords = serverHistoryMinutes * rowWords

export const serverHistoryBytes = historyWords * 4

const minuteMs = 60_000

export class ServerHistory {
  readonly #words: Int32Array

  /** @param offset - where the history begins in the region, in bytes */
  constructor(region: ArrayBuffer, offset: number) {
    this.#words = new Int32Array(region, offset, historyWords)
  }

  /** For the primary: adds to the row of a time. A row of another minute is cleared, because it is a day old or more. */
  add(atMs: number, values: readonly number[]): void {
    const minute = Math.floor(atMs / minuteMs)
    const at = (minute % serverHistoryMinutes) * rowWords
    if (Atomics.load(this.#words, at) !== minute) {
      Atomics.store(this.#words, at, 0)
      for (let nth = 1; nth <= valueWords; nth++) Atomics.store(this.#words, at + nth, 0)
      Atomics.store(this.#words, at, minute)
    }
    for (const [nth, value] of values.entries()) {
      if (value !== 0) Atomics.add(this.#words, at + 1 + nth, value)
    }
  }

  /** Returns the last minutes that have a row, oldest first. That of `nowMs` is the last one. */
  minutes(nowMs: number, count: number): readonly ServerMinute[] {
    const last = Math.floor(nowMs / minuteMs)
    const found: ServerMinute[] = []
    for (let minute = last - count + 1; minute <= last; minute++) {
      const at = (minute % serverHistoryMinutes) * rowWords
      if (Atomics.load(this.#words, at) === minute) found.push(this.#read(minute, at + 1))
    }
    return found
  }

  #read(minute: number, from: number): ServerMinute {
    const value = (nth: number): number => Atomics.load(this.#words, from + nth)
    const bucketsFrom = serverCounts.length
    return {
      minute,
      updates: recordOf(serverCounts, (_name, nth) => value(nth)),
      delivery: recordOf(deliveryModes, (_mode, nth) =>
        Array.from({ length: buckets }, (_, bucket) => value(bucketsFrom + nth * buckets + bucket)),
      ),
    }
  }
}

export interface Counted {
  readonly history: ServerHistory
  total(name: MetricName): number
  histograms(): AllHistograms
}

/** Between two additions. Chosen: what was counted is at most this late, and so is at most a twelfth in the wrong minute. */
const recordPeriodMs = 5_000

/** For the primary: records the history from now on. What was counted before is not part of it. */
export function recordHistory(clock: Clock, counted: Counted): void {
  let before = valuesOf(counted)
  const record = (): void => {
    const values = valuesOf(counted)
    const known = before
    before = values
    counted.history.add(
      clock.nowMs(),
      values.map((value, nth) => value - (known[nth] ?? 0)),
    )
  }
  record()
  every(clock, recordPeriodMs, record)
}

/** In the order of a row. */
function valuesOf(counted: Counted): readonly number[] {
  const histograms = counted.histograms()
  return [
    ...serverCounts.map((name) => counted.total(summaryMetrics[name])),
    ...deliveryModes.flatMap((mode) => histograms[deliveryHistograms[mode]].counts),
  ]
}
