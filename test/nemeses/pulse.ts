/** The longest time without an event of one kind, such as acknowledgements, for any of several bots. Times are in ms. */
export class Pulse {
  readonly #lastMs = new Map<number, number>()
  readonly #longestMs = new Map<number, number>()

  /** Notes an event of a bot. */
  beat(botId: number, nowMs: number): void {
    const sinceMs = nowMs - (this.#lastMs.get(botId) ?? nowMs)
    this.#lastMs.set(botId, nowMs)
    this.#longestMs.set(botId, Math.max(this.#longestMs.get(botId) ?? 0, sinceMs))
  }

  /** Measures from now on. The last event before counts as the beginning of a pause. */
  begin(): void {
    this.#longestMs.clear()
  }

  /** Returns the longest pause of any bot that has ended since `begin`. */
  longestMs(): number {
    return Math.max(0, ...this.#longestMs.values())
  }
}
