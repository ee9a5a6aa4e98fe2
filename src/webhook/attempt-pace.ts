/**
 * How fast a webhook may go on trying while nothing succeeds. An endpoint that answers an error at once frees
 * its connections at once: with many keys, its four would carry thousands of requests a second that come to nothing.
 *
 * Each failure takes a token of a bucket that fills up with time; a success fills it. Attempts are made while there is
 * a token. Those in flight have none set aside, so that an endpoint which works is never held up, however many
 * connections it has: the bucket may be overdrawn by as many as fail together.
 */

import { webhookFailuresInARowMax, webhookFailuresPerSecond } from '../limits.ts'

export interface AttemptPaceOptions {
  readonly failuresMax: number
  readonly failuresPerSecond: number
}

export class AttemptPace {
  readonly #periodMs: number
  readonly #capacityMs: number
  /** Monotonic: when the bucket is full again. */
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

  /** 0 where the next attempt may be made now. */
  waitMs(nowMs: number): number {
    return Math.max(this.#fullMs + this.#periodMs - this.#capacityMs - nowMs, 0)
  }
}

const defaults: AttemptPaceOptions = {
  failuresMax: webhookFailuresInARowMax,
  failuresPerSecond: webhookFailuresPerSecond,
}
