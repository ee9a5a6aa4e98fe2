/** Counts confirmations until there are as many as expected. */
export class ConfirmedCount {
  #count = 0
  #expected = Number.POSITIVE_INFINITY
  #onExpected: (() => void) | undefined

  reset(): void {
    this.#count = 0
    this.#expected = Number.POSITIVE_INFINITY
  }

  add(count: number): void {
    this.#count += count
    if (this.#count >= this.#expected) this.#onExpected?.()
  }

  /** Resolves when this many have been counted since `reset`. */
  reaches(count: number, waitMsMax: number): Promise<void> {
    this.#expected = count
    if (this.#count >= count) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`${this.#count} of ${count} events were confirmed`)),
        waitMsMax,
      )
      this.#onExpected = () => {
        clearTimeout(late)
        resolve()
      }
    })
  }
}
