/**
 * Checks deliveries against the operator's limit, over all dispatchers and processes of a bot: in no second, or longer
 * period of a lower limit, are there more than it allows. Only what was sent since the limit was last changed counts.
 */

/** Deliveries that are exactly a second apart are not within one second. */
const roundingMs = 0.001

export class LimitWatch {
  #perSecond: number | undefined
  #sinceMs = 0
  #sentMs: number[] = []

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
    this.#sentMs = []
  }

  /** Returns the rule that this delivery breaks. */
  sent(nowMs: number): string | undefined {
    const perSecond = this.#perSecond
    if (perSecond === undefined) return undefined
    const periodMs = Math.max(1_000, 1_000 / perSecond)
    this.#sentMs.push(nowMs)
    this.#sentMs = this.#sentMs.filter((atMs) => nowMs - atMs < periodMs - roundingMs)
    const { length } = this.#sentMs
    if (length <= Math.max(perSecond, 1)) return undefined
    return `sends ${length} updates within ${periodMs} ms although it may send ${perSecond} a second`
  }
}
