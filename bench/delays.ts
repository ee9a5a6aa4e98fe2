/** The delays of updates from push to receipt. */
export interface Delays {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** Records delays while it is watching. */
export class DelayLog {
  #us: number[] = []
  #isWatching = false
  #expected = Number.POSITIVE_INFINITY
  #onExpected: (() => void) | undefined

  get isWatching(): boolean {
    return this.#isWatching
  }

  watch(): void {
    this.#us = []
    this.#expected = Number.POSITIVE_INFINITY
    this.#isWatching = true
  }

  note(us: number): void {
    this.#us.push(us)
    if (this.#us.length === this.#expected) this.#onExpected?.()
  }

  /** Resolves when this many delays have been recorded. */
  async take(count: number, waitMsMax: number): Promise<Delays> {
    this.#expected = count
    if (this.#us.length < count) await this.#untilExpected(waitMsMax)
    this.#isWatching = false
    return delaysOf(this.#us)
  }

  #untilExpected(waitMsMax: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        const had = `${this.#us.length} of ${this.#expected} updates`
        reject(new Error(`${had} came in ${waitMsMax} ms`))
      }, waitMsMax)
      this.#onExpected = () => {
        clearTimeout(late)
        resolve()
      }
    })
  }
}

export function delaysOf(us: readonly number[]): Delays {
  const sorted = Float64Array.from(us).toSorted()
  return { p50Ms: partMs(sorted, 0.5), p99Ms: partMs(sorted, 0.99), maxMs: partMs(sorted, 1) }
}

/** Returns the smallest delay that this part of all delays does not exceed. */
function partMs(sorted: Float64Array, part: number): number {
  return (sorted[Math.ceil(sorted.length * part) - 1] ?? Number.NaN) / 1_000
}
