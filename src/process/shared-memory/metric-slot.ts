/**
 * The numbers of one worker process: a cell of 8 bytes for each metric, in shared memory, and 32 cells for each histogram: the sum
 * of its times, and counters of its buckets.
 *
 *     word 0   gauge: its value, signed        counter: its low 32 bits
 *     word 1   gauge: unused                   counter: how often word 0 crossed a multiple of 2^31
 *
 * A counter must pass 2^32, and BigInt64 atomics would allocate at every call, so a counter is two words that cannot be
 * written together. The crossings overlap the low word by one bit, which makes every reading consistent: the lowest bit
 * of the crossings equals the highest bit of word 0, unless the writer is between its two stores. Then the crossings are
 * one behind, and the reader adds it. Nothing blocks or retries, and a writer that is killed in between leaves a number
 * that is read correctly from then on.
 *
 * Several threads or processes may add to one slot; only `set` requires a single writer. Measured on Node 20: add 18 ns
 * with one name, 25 with changing ones; a total over 8 workers 0.4 us.
 */
import {
  bucketOf,
  forEachHistogram,
  type HistogramName,
  type HistogramValues,
} from '../../kit/histograms.ts'
import { forEachMetric, type GaugeName, type MetricName, metrics } from '../../kit/metrics.ts'

/**
 * A slot has room for this many metrics. There are fewer than 90; later versions append theirs, and their positions are
 * fixed by then.
 */
export const metricsMax = 128
/** A slot has room for this many histograms. There are 5; later versions append theirs. */
export const histogramsMax = 8
/** A histogram may have this many bounds: one cell of its 32 has the sum, and one the times above all bounds. */
export const boundsMax = 30
const histogramCells = boundsMax + 2
export const metricSlotWords = (metricsMax + histogramsMax * histogramCells) * 2

export class MetricSlot {
  readonly #words: Int32Array

  /** @param words - the `metricSlotWords` words of this slot */
  constructor(words: Int32Array) {
    this.#words = words
  }

  /** Adds `n`, an integer below 2^31; only a gauge accepts a negative one. */
  add(name: MetricName, n: number): void {
    if (!(n >= 0 && n < crossing)) checkAmount(name, n)
    this.#add(wordOf[name], n)
  }

  /**
   * Adds observations of the same time to a histogram. A time below 0, of a clock that was set back, counts as 0.
   *
   * @param count - how many there are, below 2^31
   */
  observe(name: HistogramName, timeMs: number, count = 1): void {
    const { boundsMs, unitsPerMs, sumWord } = placeOf[name]
    const ms = Math.max(timeMs, 0)
    this.#add(sumWord + 2 + bucketOf(boundsMs, ms) * 2, count)
    let left = Math.round(ms * unitsPerMs * count)
    for (; left >= crossing; left -= crossing - 1) this.#add(sumWord, crossing - 1)
    this.#add(sumWord, left)
  }

  #add(word: number, n: number): void {
    const before = Atomics.add(this.#words, word, n)
    if ((before ^ (before + n)) < 0 && n > 0) Atomics.add(this.#words, word + 1, 1)
  }

  set(name: GaugeName, value: number): void {
    Atomics.store(this.#words, wordOf[name], value)
  }

  get(name: MetricName): number {
    const word = wordOf[name]
    return isGauge[name] ? Atomics.load(this.#words, word) : this.#counter(word)
  }

  histogram(name: HistogramName): HistogramValues {
    const { boundsMs, unitsPerMs, sumWord } = placeOf[name]
    const buckets = boundsMs.length + 1
    const counts = Array.from({ length: buckets }, (_, bucket) =>
      this.#counter(sumWord + 2 + bucket * 2),
    )
    return { counts, sumMs: this.#counter(sumWord) / unitsPerMs }
  }

  #counter(word: number): number {
    // The order matters: the crossings are read first, so they can be behind the low word and never ahead of it.
    const crossings = Atomics.load(this.#words, word + 1)
    const low = Atomics.load(this.#words, word)
    const behind = (crossings & 1) === low >>> 31 ? 0 : 1
    return (crossings + behind) * crossing + (low & (crossing - 1))
  }

  /** Clears the gauges of a process that is gone; its counters stay for the totals. */
  clearGauges(): void {
    for (const { name, kind } of metrics) {
      if (kind === 'gauge') Atomics.store(this.#words, wordOf[name], 0)
    }
  }
}

const crossing = 2 ** 31

const wordOf = forEachMetric((_metric, index) => index * 2)
/** Where the cells of a histogram begin, with that of its sum. */
const placeOf = forEachHistogram(({ boundsMs, unitsPerMs }, index) => ({
  boundsMs,
  unitsPerMs,
  sumWord: (metricsMax + index * histogramCells) * 2,
}))
const isGauge = forEachMetric(({ kind }) => kind === 'gauge')

function checkAmount(name: MetricName, n: number): void {
  if (isGauge[name] && n < 0 && n > -crossing) return
  throw new RangeError(`expected an amount to add to ${name} of 0 or more, below 2^31; got ${n}`)
}
