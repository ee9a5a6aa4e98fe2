/**
 * The takeovers of the polls of one queue. A single one is a program that replaces another. More of them, one soon after the
 * other, are two programs that poll at the same time.
 */

/** A takeover belongs to those before it if it comes this soon after the last. Chosen: the pace of refusals delays one by 3 s. */
const takeoversApartMs = 10_000

export class Takeovers {
  #count = 0
  /** The first and the last of those that belong together, monotonic. */
  #firstMs = 0
  #lastMs = Number.NEGATIVE_INFINITY

  note(nowMs: number): void {
    if (this.#isOver(nowMs)) {
      this.#count = 0
      this.#firstMs = nowMs
    }
    this.#count += 1
    this.#lastMs = nowMs
  }

  /** Returns for how long polls have taken over from each other, in milliseconds; undefined if they do not. */
  lastForMs(nowMs: number): number | undefined {
    return this.#count < 2 || this.#isOver(nowMs) ? undefined : nowMs - this.#firstMs
  }

  #isOver(nowMs: number): boolean {
    return nowMs - this.#lastMs > takeoversApartMs
  }
}
