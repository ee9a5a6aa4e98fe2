/**
 * Notices what is wrong with a queue although somebody polls it:
 *
 *   - Its poller gets the same updates again and again and confirms none: the program receives them, and they stay. A program
 *     that works on a batch for long does not poll meanwhile, so it gets them once. What expires meanwhile changes nothing.
 *   - Its updates expire: polls take fewer than come in, or come too seldom. What expires while nobody polls is another fault.
 */
import type { ExpiringUpdates, RepeatedPage } from '../delivery/attempts/health.ts'

/** What expires this soon after others belongs to them. Chosen: expired updates are looked for once a minute, and some bots get few. */
const expiriesApartMs = 10 * 60_000

export class PollTroubles {
  #lastGivenId = 0
  #timesGiven = 0
  #firstGivenMs = 0
  #lastGivenMs = 0
  #expired = 0
  #firstExpiryMs = 0
  #lastExpiryMs = Number.NEGATIVE_INFINITY

  /** Updates were given to a poll, from one id to another. This runs for every answer with updates. */
  given(firstId: number, lastId: number, nowMs: number): void {
    if (firstId > this.#lastGivenId) {
      this.#timesGiven = 0
      this.#firstGivenMs = nowMs
    }
    this.#lastGivenId = Math.max(lastId, this.#lastGivenId)
    this.#timesGiven += 1
    this.#lastGivenMs = nowMs
  }

  /** A poll has confirmed something. */
  confirmed(): void {
    this.#lastGivenId = 0
    this.#timesGiven = 0
  }

  /**
   * Returns the updates that polls get again and again; undefined if there are none.
   *
   * @param floor - ids below are confirmed, or gone in another way
   */
  repeated(floor: number, nowMs: number): RepeatedPage | undefined {
    if (this.#timesGiven < 2 || this.#lastGivenId < floor) return undefined
    return {
      times: this.#timesGiven,
      firstBeforeMs: nowMs - this.#firstGivenMs,
      lastBeforeMs: nowMs - this.#lastGivenMs,
    }
  }

  /** Updates have expired while somebody polls. */
  expired(count: number, nowMs: number): void {
    if (this.#isExpiryOver(nowMs)) {
      this.#expired = 0
      this.#firstExpiryMs = nowMs
    }
    this.#expired += count
    this.#lastExpiryMs = nowMs
  }

  /** Updates have expired while nobody polls. */
  expiredUnpolled(): void {
    this.#lastExpiryMs = Number.NEGATIVE_INFINITY
  }

  /** Returns the updates that expire; undefined if none has expired lately. */
  expiring(nowMs: number): ExpiringUpdates | undefined {
    if (this.#isExpiryOver(nowMs)) return undefined
    return { count: this.#expired, forMs: this.#lastExpiryMs - this.#firstExpiryMs }
  }

  #isExpiryOver(nowMs: number): boolean {
    return nowMs - this.#lastExpiryMs > expiriesApartMs
  }
}
