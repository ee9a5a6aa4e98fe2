/** The results of the pairs of one slice of a stream. */
export class ResultBatch {
  readonly #lines: (string | undefined)[]
  readonly #onFilled: () => void
  readonly bytes: number
  #missing: number

  constructor(size: { readonly pairs: number; readonly bytes: number }, onFilled: () => void) {
    this.#lines = Array.from({ length: size.pairs })
    this.#missing = size.pairs
    this.#onFilled = onFilled
    this.bytes = size.bytes
  }

  get pairs(): number {
    return this.#lines.length
  }

  get isComplete(): boolean {
    return this.#missing === 0
  }

  /** Sets the line of one pair; each is set once. */
  set(index: number, line: string): void {
    this.#lines[index] = line
    this.#missing -= 1
    if (this.#missing === 0) this.#onFilled()
  }

  text(): string {
    return `${this.#lines.join('\n')}\n`
  }
}
