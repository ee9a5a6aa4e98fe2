/** The results of the pairs of one slice of a stream. */
import type { PushOutcome } from '../../bots/push-receipt.ts'
import { pushOutcomeText } from './push-outcome.ts'

export class ResultBatch {
  readonly #lines: (number | string | undefined)[]
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

  /** Sets the result of one pair, or the line that another worker has made of it; each is set once. */
  set(index: number, result: PushOutcome | { readonly line: string }): void {
    const isLine = typeof result === 'object' && 'line' in result
    if (typeof result === 'number') this.#lines[index] = result
    else this.#lines[index] = isLine ? result.line : pushOutcomeText(result)
    this.#missing -= 1
    if (this.#missing === 0) this.#onFilled()
  }

  /** Returns the lines of all pairs. */
  text(): string {
    let text = ''
    for (const line of this.#lines) {
      text += typeof line === 'number' ? `{"update_id":${line}}\n` : `${line}\n`
    }
    return text
  }
}
