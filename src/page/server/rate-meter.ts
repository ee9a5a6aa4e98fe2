/** What the server's counters say: the sums of /metrics, and rates per second. */

/** Chosen: a failing webhook is tried again after seconds to minutes; a rate of a single second is nearly always 0. */
const windowMs = 60_000

/** Counters by their names, at one moment. */
export interface CounterSample<Name extends string> {
  readonly atMs: number
  readonly counts: Readonly<Record<Name, number>>
}

/** Rates per second; null if unknown. */
export type Rates<Name extends string> = Readonly<Record<Name, number | null>>

/**
 * Turns counters into rates per second. Counters of workers only grow, but a value may come from another node or follow a
 * restart: where one went down, all begin again.
 */
export class RateMeter<Name extends string> {
  readonly #shortestMs: ReadonlyMap<Name, number>
  readonly #names: readonly Name[]
  /** Oldest first: those of the last minute, and one before them. */
  #samples: CounterSample<Name>[] = []

  /**
   * @param names - of the counters
   * @param shortestMs - a rate of a shorter time says nothing, and is null; default: any time
   */
  constructor(names: readonly Name[], shortestMs: ReadonlyMap<Name, number> = new Map()) {
    this.#names = names
    this.#shortestMs = shortestMs
  }

  /** Returns the rates of the last minute, or since the first sample. */
  add(sample: CounterSample<Name>): Rates<Name> {
    const isAgain = this.#names.some(
      (name) => sample.counts[name] < (this.#samples.at(-1)?.counts[name] ?? 0),
    )
    if (isAgain) this.#samples = []
    const from = this.#samples.findLastIndex(({ atMs }) => atMs <= sample.atMs - windowMs)
    this.#samples = [...this.#samples.slice(Math.max(from, 0)), sample]
    const [first = sample] = this.#samples
    const ms = sample.atMs - first.atMs
    const rateOf = (name: Name): number | null => {
      if (ms <= 0 || ms < (this.#shortestMs.get(name) ?? 0)) return null
      return (1_000 * (sample.counts[name] - first.counts[name])) / ms
    }
    const rates = Object.fromEntries(this.#names.map((name) => [name, rateOf(name)]))
    // Object.fromEntries forgets the names.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return rates as Rates<Name>
  }
}

/**
 * Reads the text of /metrics into sums by name: the samples of a metric with labels are added up.
 *
 * @param text - Prometheus' text format
 * @returns the value of each metric, without the prefix `postbote_`
 */
export function readMetricsText(text: string): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name, value] = /^postbote_(\w+)(?:\{.*\})? (\S+)/.exec(line) ?? []
    if (name === undefined || value === undefined) continue
    sums.set(name, (sums.get(name) ?? 0) + Number(value))
  }
  return sums
}
