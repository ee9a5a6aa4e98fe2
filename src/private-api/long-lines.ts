/**
 * Places for pairs whose end has not come and that have grown long, in all NDJSON streams of a worker: so that a
 * thousand producers that stop in the middle of a large update hold a bounded part of memory.
 *
 * Whoever has a place can read its pair to the end, so places come free; a stream that holds one and sends nothing is
 * ended by its idle time.
 */
export class LongLines {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  /** Undefined where there is a place at once. */
  take(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free -= 1
      return undefined
    }
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  give(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free += 1
    else next()
  }
}
