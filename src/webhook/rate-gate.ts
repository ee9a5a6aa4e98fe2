/**
 * Keeps the deliveries of one webhook at or below a rate: a token bucket. It is exact: no second, wherever it begins, has
 * more deliveries than the rate allows.
 *
 * A few tokens may be saved up, those of `webhookRateBurstMs`, because timers fire late. The bucket refills 1 % more
 * slowly for that, so that saved and new tokens together stay within the rate:
 *
 *     rate * periodMs = 1,000 + burstMs     n + 1 deliveries within t ms need n * periodMs <= t + burstMs,
 *                                           so there are at most `rate` of them within less than a second
 *
 * A new bucket is empty. So the rate also holds while one dispatcher, or one process, replaces another.
 *
 * A delivery may have to wait for a connection that is being opened, and several connections may become usable at the
 * same moment. Therefore deliveries are counted twice, in two buckets: when they are taken, so that no more connections
 * are opened than the rate can use, and when they are sent.
 */
import { webhookRateBurstMs as burstMs } from './limits.ts'

/** The rate of one webhook. All times are monotonic, in milliseconds. */
export class RateGate {
  #periodMs: number
  /** Up to when the tokens are used up. Each delivery moves this time on by a period. */
  #takenToMs: number
  #sentToMs: number

  /**
   * @param perSecond - the rate, above 0
   * @param nowMs - the current time
   */
  constructor(perSecond: number, nowMs: number) {
    this.#periodMs = periodMsOf(perSecond)
    this.#takenToMs = nowMs + burstMs + this.#periodMs
    this.#sentToMs = this.#takenToMs
  }

  /**
   * Changes the rate. Tokens that are missing remain missing, so no second exceeds the higher one of both rates.
   *
   * @param perSecond - the rate, above 0
   * @param nowMs - the current time
   */
  setRate(perSecond: number, nowMs: number): void {
    const periodMs = periodMsOf(perSecond)
    if (periodMs === this.#periodMs) return
    const scale = periodMs / this.#periodMs
    this.#periodMs = periodMs
    this.#takenToMs = nowMs + Math.max(this.#takenToMs - nowMs, 0) * scale
    this.#sentToMs = nowMs + Math.max(this.#sentToMs - nowMs, 0) * scale
  }

  /** Returns how long the next delivery must wait until it may be taken and sent; 0 if it need not wait. */
  waitMs(nowMs: number): number {
    return Math.max(Math.max(this.#takenToMs, this.#sentToMs) - burstMs - nowMs, 0)
  }

  /** Tells whether a delivery that was taken earlier may be sent now. */
  maySend(nowMs: number): boolean {
    return this.#sentToMs - burstMs <= nowMs
  }

  /** Tells whether no token is saved up, because deliveries are taken as fast as the rate permits. */
  isTight(nowMs: number): boolean {
    return this.#takenToMs > nowMs
  }

  /** Counts a delivery that is sent now, or when a connection was opened for it. */
  taken(nowMs: number): void {
    this.#takenToMs = Math.max(this.#takenToMs, nowMs) + this.#periodMs
  }

  /** Counts a delivery that is sent now. */
  sent(nowMs: number): void {
    this.#sentToMs = Math.max(this.#sentToMs, nowMs) + this.#periodMs
  }
}

function periodMsOf(perSecond: number): number {
  return (1_000 + burstMs) / perSecond
}
