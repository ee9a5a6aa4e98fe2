/**
 * Limits the rate of attempts of a webhook while none succeeds. An endpoint that returns errors immediately also frees
 * its connections immediately: with many keys, its four connections would carry thousands of useless requests a second.
 *
 * Each failure takes a token from a bucket that refills with time; a success fills the bucket. Attempts are made while
 * there is a token. Attempts in flight reserve none, so an endpoint that works is never slowed down, however many
 * connections it has: simultaneous failures may overdraw the bucket.
 */

import { webhookFailuresInARowMax, webhookFailuresPerSecond } from './limits.ts'

export interface AttemptPaceOptions {
  readonly failuresMax: number
  readonly failuresPerSecond: number
}

export class AttemptPace {
  readonly #periodMs: number
  readonly #capacityMs: number
  /** When the bucket will be full again, monotonic. */
  #fullMs = Number.NEGATIVE_INFINITY

  constructor(options: AttemptPaceOptions = defaults) {
    this.#periodMs = 1_000 / options.failuresPerSecond
    this.#capacityMs = this.#periodMs * options.failuresMax
  }

  succeeded(): void {
    this.#fullMs = Number.NEGATIVE_INFINITY
  }

  failed(nowMs: number): void {
    this.#fullMs = Math.max(this.#fullMs, nowMs) + this.#periodMs
  }

  /** Tells whether half of the tokens are gone, because attempts fail faster than the bucket refills. */
  isTight(nowMs: number): boolean {
    return this.#fullMs - nowMs >= this.#capacityMs / 2
  }

  /** Returns how long the next attempt must wait, in milliseconds; 0 if it may be made now. */
  waitMs(nowMs: number): number {
    return Math.max(this.#fullMs + this.#periodMs - this.#capacityMs - nowMs, 0)
  }
}

const defaults: AttemptPaceOptions = {
  failuresMax: webhookFailuresInARowMax,
  failuresPerSecond: webhookFailuresPerSecond,
}
