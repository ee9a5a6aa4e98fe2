/**
 * Notices updates that expire though somebody polls: polls take fewer than come in, or come too seldom. What expires while nobody polls
 * is another fault.
 */
import type { ExpiringUpdates } from '../delivery/attempts/health.ts'

/** What expires this soon after others belongs to them. Chosen: expired updates are looked for once a minute, and some bots get few. */
const apartMs = 10 * 60_000

export class PolledExpiry {
  #count = 0
  #firstMs = 0
  #lastMs = Number.NEGATIVE_INFINITY

  note(count: number, nowMs: number): void {
    if (this.#isOver(nowMs)) {
      this.#count = 0
      this.#firstMs = nowMs
    }
    this.#count += count
    this.#lastMs = nowMs
  }

  /** Returns undefined if nothing has expired lately. */
  at(nowMs: number): ExpiringUpdates | undefined {
    if (this.#isOver(nowMs)) return undefined
    return { count: this.#count, forMs: this.#lastMs - this.#firstMs }
  }

  #isOver(nowMs: number): boolean {
    return nowMs - this.#lastMs > apartMs
  }
}
