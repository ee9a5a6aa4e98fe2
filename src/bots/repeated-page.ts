/**
 * Notices a poller that gets the same updates again and again and confirms none: the program receives them, and they stay. A
 * program that works on a batch for long does not poll meanwhile, so it gets them once.
 */

import type { RepeatedPage } from '../webhook/health.ts'

export class RepeatedPages {
  #firstId = 0
  #times = 0
  #firstMs = 0
  #lastMs = 0

  /** Updates were given to a poll, of which the first has this id. This runs for every answer with updates. */
  given(firstId: number, nowMs: number): void {
    if (firstId !== this.#firstId) {
      this.#firstId = firstId
      this.#times = 0
      this.#firstMs = nowMs
    }
    this.#times += 1
    this.#lastMs = nowMs
  }

  /** @param floor - ids below are confirmed, or gone in another way */
  at(floor: number, nowMs: number): RepeatedPage | undefined {
    if (this.#times < 2 || this.#firstId < floor) return undefined
    return {
      times: this.#times,
      firstBeforeMs: nowMs - this.#firstMs,
      lastBeforeMs: nowMs - this.#lastMs,
    }
  }
}
