/**
 * Keeps the deliveries of one webhook at or below a rate: a token bucket (kit/token-bucket.ts). It is exact: no second, wherever it begins, has
 * more deliveries than the rate allows.
 *
 * A few tokens may be saved up, those of `webhookRateBurstMs` (burstMs below), because timers fire late. The bucket refills 1 % more
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
import assert from 'node:assert/strict'
import { fullAfter, lackMs } from '../../kit/token-bucket.ts'

/**
 * A webhook whose rate is limited may save up the deliveries of this time, because timers fire some milliseconds late.
 * They are taken from the rate: it is 1 % lower.
 */
const webhookRateBurstMs = 10

/** The rate of one webhook. All times are monotonic, in milliseconds. */
export class RateGate {
  #periodMs: number
  /** When the bucket of what was taken is full, and that of what was sent. */
  #takenFullMs: number
  #sentFullMs: number

  /** @param perSecond - the rate, above 0 */
  constructor(perSecond: number, nowMs: number) {
    this.#periodMs = periodMsOf(perSecond)
    this.#takenFullMs = nowMs + webhookRateBurstMs + this.#periodMs
    this.#sentFullMs = this.#takenFullMs
  }

  /** Changes the rate. Tokens that are missing remain missing, so no second exceeds the higher one of both rates. */
  setRate(perSecond: number, nowMs: number): void {
    const periodMs = periodMsOf(perSecond)
    if (periodMs === this.#periodMs) return
    const scale = periodMs / this.#periodMs
    this.#periodMs = periodMs
    this.#takenFullMs = nowMs + Math.max(this.#takenFullMs - nowMs, 0) * scale
    this.#sentFullMs = nowMs + Math.max(this.#sentFullMs - nowMs, 0) * scale
  }

  /** Returns how long the next delivery must wait until it may be taken and sent; 0 if it need not wait. */
  waitMs(nowMs: number): number {
    return lackMs(Math.max(this.#takenFullMs, this.#sentFullMs), nowMs, webhookRateBurstMs)
  }

  /** Tells whether a delivery that was taken earlier may be sent now. */
  maySend(nowMs: number): boolean {
    return lackMs(this.#sentFullMs, nowMs, webhookRateBurstMs) === 0
  }

  /** Tells whether no token is saved up, because deliveries are taken as fast as the rate permits. */
  isTight(nowMs: number): boolean {
    return this.#takenFullMs > nowMs
  }

  /** Counts a delivery that is sent now, or when a connection was opened for it. */
  taken(nowMs: number): void {
    this.#takenFullMs = fullAfter(this.#takenFullMs, nowMs, this.#periodMs)
  }

  /** Counts a delivery that is sent now. */
  sent(nowMs: number): void {
    this.#sentFullMs = fullAfter(this.#sentFullMs, nowMs, this.#periodMs)
  }
}

function periodMsOf(perSecond: number): number {
  assert(perSecond > 0, 'a rate is above 0')
  return (1_000 + webhookRateBurstMs) / perSecond
}
