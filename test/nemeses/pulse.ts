/** The longest time without an event of one kind, such as acknowledgements, for any of several bots. Times are in ms. */
export interface Silence {
  readonly botId: number
  readonly fromMs: number
  readonly lengthMs: number
}

export class Pulse {
  readonly #lastMs = new Map<number, number>()
  #longest: Silence = none

  /** Notes an event of a bot. */
  beat(botId: number, nowMs: number): void {
    const fromMs = this.#lastMs.get(botId) ?? nowMs
    this.#lastMs.set(botId, nowMs)
    const lengthMs = nowMs - fromMs
    if (lengthMs > this.#longest.lengthMs) this.#longest = { botId, fromMs, lengthMs }
  }

  /** Measures from now on. The last event before counts as the beginning of a silence. */
  begin(): void {
    this.#longest = none
  }

  /** Returns the longest silence of any bot that has ended since `begin`. */
  longest(): Silence {
    return this.#longest
  }
}

const none: Silence = { botId: 0, fromMs: 0, lengthMs: 0 }
