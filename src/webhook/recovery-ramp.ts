/**
 * Raises the rate of deliveries step by step after an outage, so that the backlog does not overload an endpoint that has
 * just recovered.
 *
 *     inactive --the first success after an outage--> active, at 10 per second
 *        ^                                              |   while attempts succeed: twice the rate each second
 *        |                                              |   ten failures and a second without a success: half the rate
 *        +--nothing held back for 10 s, or the rate is above 10,000, or below 1 without a success--+
 *
 * An overloaded endpoint may spend as much on a request that it refuses as on any other, and then recovers only if
 * attempts come more slowly than it can take them. Therefore, whenever the pace of attempts (attempt-pace.ts) has held
 * back an outage for 10 s, the ramp becomes active at 50 per second and halves the rate down to 1. The first success
 * begins it anew, at 10. Without this, an endpoint that takes 50 requests per second, refused ones included, got 100 per
 * second of a backlog of 20,000 keys and never accepted one (test/sim/overload.test.ts). The rate does not stay low: among
 * thousands of keys that always fail, the few others would come too late.
 *
 * If an endpoint falls over above some rate, doubling alone would make it fall over every few seconds. Therefore the
 * rate at which it fell over is remembered: the rate doubles up to half of it, and then takes 30 s to reach it again. In
 * a simulation, an endpoint that returned 503 for 2 s whenever it got more than 50 updates in a second took a backlog of
 * 2,000 in 60 s and fell over 4 times. Without the ramp it took 269 s and 30 falls.
 *
 * Some updates fail at any rate, and they must not hold back all others:
 * - Only updates that had not failed before make an outage. Known ones say nothing new about the endpoint.
 * - One success in a second is enough for a higher rate. If failures alone lowered it, a bot that cannot process one half
 *   of its updates would get the other half at one per second.
 * - The rate changes only while it holds something back.
 * - If failures are usual, only an unusual number of them in a row lowers the rate, from 10 per second it falls only after
 *   10 s without a success, and a fall after mostly failures is not remembered. Otherwise 200 good keys among 2,000 failing
 *   ones, found by probes (probes.ts) after 5 s of failures, took 190 s; now they take 10, seldom up to 40.
 * - Below 10 per second the rate always doubles. Otherwise the falls of a bot that cannot process four fifths of its
 *   updates would keep it at one per second; now an endpoint that falls over at 5 per second does so more often. The
 *   operator can set a limit for such an endpoint, but none for such a bot.
 */
import type { TriedConnection } from './attempt-recorder.ts'
import type { Lane } from './lane.ts'
import {
  webhookFailingMin,
  webhookFailuresPerSecond,
  webhookFallFailuresMin,
  webhookFallUsualTimes,
  webhookProbePeriodMs,
  webhookOutageMsMin,
  webhookRampCalmMs,
  webhookRampClimbS,
  webhookRampFloorPerSecond,
  webhookRampStartPerSecond,
  webhookRampStepMs,
  webhookRampTopPerSecond,
  webhookSilenceMsMin,
} from './limits.ts'

/** A failed attempt to deliver the first update of a lane. */
export interface FailedTry {
  readonly on: Pick<TriedConnection, 'startedMs'>
  /** How often this update had failed before. */
  readonly lane: Pick<Lane, 'failures'>
}

/** The ramp of one webhook. It is told the result of each attempt. All times are monotonic, in milliseconds. */
export class RecoveryRamp {
  /** Infinity while the ramp is inactive. */
  #perSecond = Number.POSITIVE_INFINITY
  /** The rate at which the endpoint last fell over; Infinity if it has not since the ramp began. */
  #fellAt = Number.POSITIVE_INFINITY
  #succeededMs = Number.NEGATIVE_INFINITY
  /** Failures since then, and those among them of updates that had not failed before. */
  #failures = 0
  #newFailures = 0
  /** Since the ramp began: successes, and the failures before each of them except the first. */
  #successes = 0
  #endedFailures = 0
  #failingSinceMs = 0
  #changedMs = 0
  /** When the rate last held back a delivery. */
  #heldMs = 0
  /** Whether the rate was lowered since the last success. */
  #isFalling = false

  /** Deliveries per second; Infinity while the ramp is inactive. */
  get perSecond(): number {
    return this.#perSecond
  }

  /** Reports a successful attempt. */
  succeeded(nowMs: number): void {
    const isFirst = this.#isProbing || (!this.#isActive && this.#isOutage(nowMs))
    this.#succeededMs = nowMs
    this.#successes++
    this.#endedFailures += this.#failures
    this.#failures = 0
    this.#newFailures = 0
    this.#isFalling = false
    if (isFirst) this.#begin(nowMs)
    else if (this.#isActive) this.#goOn(nowMs)
  }

  /** Reports a failed attempt. */
  failed({ on, lane }: FailedTry, nowMs: number): void {
    if (this.#failures++ === 0) this.#failingSinceMs = Math.max(on.startedMs, this.#succeededMs)
    if (lane.failures === 0) this.#newFailures++
    const mayLower = this.#isActive || this.#isFalling || this.#newFailures >= webhookFailingMin
    if (mayLower && this.#hasFallen(nowMs)) this.#lower(nowMs)
  }

  /** Reports that deliveries come as fast as the rate permits, or the pace of failing attempts. */
  held(nowMs: number): void {
    this.#heldMs = nowMs
  }

  get #isActive(): boolean {
    return this.#perSecond !== Number.POSITIVE_INFINITY
  }

  /** Nothing has succeeded since the last fall, and the rate was not the reason for it. */
  get #isProbing(): boolean {
    return this.#isFalling && this.#fellAt === Number.POSITIVE_INFINITY
  }

  #isOutage(nowMs: number): boolean {
    if (this.#newFailures === 0) return false
    const msMin = this.#newFailures >= webhookFailingMin ? webhookOutageMsMin : webhookSilenceMsMin
    return nowMs - this.#failingSinceMs >= msMin
  }

  #hasFallen(nowMs: number): boolean {
    const sinceMs = Math.max(this.#failingSinceMs, this.#changedMs)
    const isStep = this.#isFalling || this.#perSecond > webhookRampStartPerSecond
    const msMin = this.#isActive && isStep ? webhookRampStepMs : webhookProbePeriodMs
    return (
      this.#failures >= this.#fallFailuresMin &&
      nowMs - sinceMs >= msMin &&
      this.#heldMs > (this.#isActive ? this.#changedMs : sinceMs)
    )
  }

  get #fallFailuresMin(): number {
    if (!this.#isActive || this.#isProbing) return webhookFallFailuresMin
    const usual = this.#endedFailures / this.#successes
    return Math.max(webhookFallFailuresMin, usual * webhookFallUsualTimes)
  }

  /** Most attempts have failed before, too, so the rate was not the reason. The success that began the ramp does not count. */
  get #failsMostly(): boolean {
    return this.#successes - 1 <= this.#endedFailures
  }

  #begin(nowMs: number): void {
    this.#successes = 1
    this.#endedFailures = 0
    this.#fellAt = Number.POSITIVE_INFINITY
    this.#heldMs = nowMs
    this.#change(webhookRampStartPerSecond, nowMs)
  }

  #goOn(nowMs: number): void {
    if (nowMs - this.#changedMs < webhookRampStepMs) return
    if (this.#heldMs > this.#changedMs) this.#change(this.#raised(), nowMs)
    const calmMs = nowMs - Math.max(this.#heldMs, this.#changedMs)
    if (calmMs >= webhookRampCalmMs || this.#perSecond > webhookRampTopPerSecond) {
      this.#perSecond = Number.POSITIVE_INFINITY
    }
  }

  #raised(): number {
    const perSecond = this.#perSecond
    const half = Math.max(this.#fellAt / 2, webhookRampStartPerSecond)
    if (perSecond < half) return Math.min(perSecond * 2, half)
    return perSecond < this.#fellAt ? perSecond + half / webhookRampClimbS : perSecond * 2
  }

  /** Further steps without a success belong to the same fall. After the last one only the pace of attempts counts. */
  #lower(nowMs: number): void {
    if (!this.#isFalling)
      this.#fellAt = this.#failsMostly ? Number.POSITIVE_INFINITY : this.#perSecond
    this.#isFalling = true
    const half = (this.#isActive ? this.#perSecond : webhookFailuresPerSecond) / 2
    if (half < webhookRampFloorPerSecond) this.#fellAt = Number.POSITIVE_INFINITY
    this.#change(half < webhookRampFloorPerSecond ? Number.POSITIVE_INFINITY : half, nowMs)
  }

  #change(perSecond: number, nowMs: number): void {
    this.#perSecond = perSecond
    this.#changedMs = nowMs
  }
}
