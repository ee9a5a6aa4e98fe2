/** What the server's counters say: the sums of /metrics, and rates per second. */
/** Counters by their names, at one moment. */
export interface CounterSample<Name extends string> {
  readonly atMs: number
  readonly counts: Readonly<Record<Name, number>>
}

/** Rates per second; null if unknown. */
export type Rates<Name extends string> = Readonly<Record<Name, number | null>>

/**
 * Turns counters into rates per second. Counters of workers only grow, but a value may come from another node or follow a
 * restart; a counter that went down has no rate for that moment.
 */
export class RateMeter<Name extends string> {
  readonly #names: readonly Name[]
  #last: CounterSample<Name> | undefined

  constructor(names: readonly Name[]) {
    this.#names = names
  }

  /** Returns the rates since the last sample. */
  add(sample: CounterSample<Name>): Rates<Name> {
    const last = this.#last
    this.#last = sample
    const seconds = last === undefined ? 0 : (sample.atMs - last.atMs) / 1_000
    const rateOf = (name: Name): number | null => {
      const grown = sample.counts[name] - (last?.counts[name] ?? 0)
      return seconds > 0 && grown >= 0 ? grown / seconds : null
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
