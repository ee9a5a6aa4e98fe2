/**
 * Checks deliveries, or the connections that are opened for them, against the operator's limit, over all dispatchers and
 * processes of a bot: in no second, or longer period of a lower limit, are there more than it allows. Only those since the
 * limit was last changed count.
 */

/** Deliveries that are exactly a second apart are not within one second. */
const roundingMs = 0.001

export class LimitWatch {
  readonly #what: string
  #perSecond: number | undefined
  #sinceMs = 0
  #countedMs: number[] = []

  /** @param what - what is counted, for the message */
  constructor(what: string) {
    this.#what = what
  }

  get perSecond(): number | undefined {
    return this.#perSecond
  }

  get changedMs(): number {
    return this.#sinceMs
  }

  /** The limit is in effect from now on. */
  setTo(perSecond: number | undefined, nowMs: number): void {
    if (perSecond === this.#perSecond) return
    this.#perSecond = perSecond
    this.#sinceMs = nowMs
    this.#countedMs = []
  }

  /** Counts one. Returns the rule that it breaks. */
  count(nowMs: number): string | undefined {
    const perSecond = this.#perSecond
    if (perSecond === undefined) return undefined
    const periodMs = Math.max(1_000, 1_000 / perSecond)
    this.#countedMs.push(nowMs)
    this.#countedMs = this.#countedMs.filter((atMs) => nowMs - atMs < periodMs - roundingMs)
    const { length } = this.#countedMs
    if (length <= Math.max(perSecond, 1)) return undefined
    return `has ${length} ${this.#what} within ${periodMs} ms, and its limit is ${perSecond} a second`
  }
}
