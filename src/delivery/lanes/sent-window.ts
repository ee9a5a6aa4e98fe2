/**
 * Remembers when the last deliveries of a webhook with a limit were written, one second of them. The bucket (rate-gate.ts)
 * decides when a delivery is sent. A busy process writes it later, by one turn of its event loop or more, and the
 * deliveries after it may be written without such a delay. So that no second has too many at the endpoint either, the nth
 * delivery after one is not sent within a second of the time at which that one was written.
 *
 * It takes 8 bytes for each delivery of a second, at most 80 kB, and exists only while there is a limit.
 */
import assert from 'node:assert/strict'

export class SentWindow {
  /** The limit. */
  readonly perSecond: number
  readonly #windowMs: number
  /** A ring: the place of the next delivery has the time of the oldest one. Monotonic. */
  readonly #timesMs: Float64Array
  #next = 0

  /**
   * @param perSecond - the limit, above 0. Below 1, one delivery is remembered for the corresponding time.
   * @param earlier - the deliveries under the limit before
   */
  constructor(perSecond: number, earlier?: SentWindow) {
    assert(perSecond > 0, 'a limit is above 0')
    this.perSecond = perSecond
    const count = Math.ceil(perSecond)
    this.#windowMs = (1_000 * count) / perSecond
    this.#timesMs = new Float64Array(count).fill(Number.NEGATIVE_INFINITY)
    for (const atMs of earlier?.newest(count) ?? []) this.add(atMs)
  }

  /** Returns the times of the last deliveries, the oldest first. */
  newest(count: number): readonly number[] {
    const times = [...this.#timesMs.subarray(this.#next), ...this.#timesMs.subarray(0, this.#next)]
    return times.slice(-count)
  }

  /** Returns how long the next delivery must wait; 0 if it need not wait. */
  waitMs(nowMs: number): number {
    const oldestMs = this.#timesMs[this.#next] ?? Number.NEGATIVE_INFINITY
    return Math.max(oldestMs + this.#windowMs - nowMs, 0)
  }

  /** Counts a delivery. Returns its place, for `written`. */
  add(atMs: number): number {
    const place = this.#next
    this.#timesMs[place] = atMs
    this.#next = (place + 1) % this.#timesMs.length
    return place
  }

  /** Corrects the time of a delivery that is written only now. */
  written(place: number, nowMs: number): void {
    this.#timesMs[place] = nowMs
  }
}
