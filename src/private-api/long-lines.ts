/**
 * Places for long pairs whose end has not arrived, shared by all NDJSON streams of a worker. They bound the memory that
 * a thousand producers hold if they stop in the middle of a large update.
 *
 * A stream with a place can read its pair to the end, so places become free again. A stream that holds one and sends
 * nothing is ended by its idle timeout.
 */
export class LongLines {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(places: number) {
    this.#free = places
  }

  /** Takes a place. Returns undefined if one is free, otherwise a promise for the next one. */
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
