/**
 * Notices a poller that gets the same updates again and again and confirms none: the program receives them, and they stay. A
 * program that works on a batch for long does not poll meanwhile, so it gets them once. What expires meanwhile changes nothing.
 */
import type { RepeatedPage } from '../delivery/attempts/health.ts'

export class RepeatedPages {
  #lastId = 0
  #times = 0
  #firstMs = 0
  #lastMs = 0

  /** Updates were given to a poll, from one id to another. This runs for every answer with updates. */
  given(firstId: number, lastId: number, nowMs: number): void {
    if (firstId > this.#lastId) {
      this.#times = 0
      this.#firstMs = nowMs
    }
    this.#lastId = Math.max(lastId, this.#lastId)
    this.#times += 1
    this.#lastMs = nowMs
  }

  /** A poll has confirmed something. */
  confirmed(): void {
    this.#lastId = 0
    this.#times = 0
  }

  /** @param floor - ids below are confirmed, or gone in another way */
  at(floor: number, nowMs: number): RepeatedPage | undefined {
    if (this.#times < 2 || this.#lastId < floor) return undefined
    return {
      times: this.#times,
      firstBeforeMs: nowMs - this.#firstMs,
      lastBeforeMs: nowMs - this.#lastMs,
    }
  }
}
