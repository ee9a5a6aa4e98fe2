/**
 * The pace of the attempts of one webhook: the only rule that slows an endpoint down. A failure says something either about
 * its update or about the endpoint:
 *
 * - An endpoint that answers 400, 403 or 500 works, and does not take this update. Only the update's ordering key waits
 *   (retry.ts). If nothing at all is taken, the endpoint may be at fault all the same.
 * - An endpoint that refuses connections, times out, or answers 429, 502, 503 or 504 (`isSick`) takes no update now.
 *
 * So the attempts of half a second are judged together. Such a step is bad if nothing was taken, or if most of its attempts
 * say that the endpoint is sick. The pace rises while steps are good and falls when one is bad, in attempts per second:
 *
 *     open ---- a bad step in which three updates failed for the first time, or 20 per second failed ----> limited to 20
 *      ^                                                                                                      |
 *      +--- nothing was held back for 10 s, or the pace is above 10,000 --- limited <-------------------------+
 *
 *     a good step that held something back: twice the pace, up to `safe`; above that it doubles in 40 s; at least 20
 *     a bad step with three failures:       half the pace; at least 20 if something was taken, otherwise 10, or 1 if all
 *                                           attempts say that the endpoint is sick
 *
 * `safe` is half of the pace at which the endpoint last fell over. Without it an endpoint that falls over above a pace would
 * do so every few seconds. A fall is remembered only if updates that had failed before were taken shortly before it:
 * otherwise the good keys may just have run out of updates, and what is left fails at any pace.
 *
 * Only attempts that began after the last change count, so a step lasts at least as long as a response. How many requests
 * an overloaded endpoint has at a time is bounded by max_connections.
 *
 * test/sim/overload.test.ts tries this rule. Without any pace, an endpoint that takes 50 requests per second, refused ones
 * included, never accepts one of a backlog of 20,000 keys.
 */
import type { TriedConnection } from '../attempts/attempt-recorder.ts'
import type { Lane } from '../lanes/lane.ts'
import { webhookFailingMin } from '../limits.ts'

/** An attempt to deliver the first update of a lane that has just ended. */
export interface EndedTry {
  readonly on: Pick<TriedConnection, 'startedMs'>
  /** How often this update had failed before. */
  readonly lane: Pick<Lane, 'failures'>
}

/**
 * The attempts of this time are judged together. Chosen: a shorter time makes false falls more frequent; with a longer one
 * the good keys among thousands of failing ones get their updates later than they could.
 */
const webhookPaceStepMs = 500
/**
 * The first pace that is limited, and the lowest one while something is taken. Chosen: nearly any endpoint can take it, and
 * 200 updates that are taken among thousands that fail come within 3 s.
 */
const webhookCarefulPerSecond = 20
/**
 * The pace of an endpoint that takes nothing, but answers for itself, falls no lower. Chosen: a good key is found in 0.2 s,
 * and 10 attempts cost 15 to 20 ms of a worker, so an outage that is answered with 500 costs 2 % of it. With half as many, a
 * good key among 4,000 that fail is not found in time.
 */
const webhookPaceRejectedPerSecond = 10
/**
 * The pace of an endpoint whose failures all say that it is sick falls no lower. Chosen: the end of an outage is noticed
 * within a second, and an endpoint that is overloaded by what it refuses, too, recovers.
 */
const webhookPaceSickPerSecond = 1
/**
 * From half of the pace at which the endpoint fell over, this many steps, 40 s, lead to it again. Chosen: fewer mean more
 * falls, more mean less use of what the endpoint can take.
 */
const webhookPaceClimbSteps = 80
/** The pace opens when it has held back nothing for this long. Chosen: a key that fails has four attempts in this time. */
const webhookPaceCalmMs = 10_000
/** The pace opens above this, which is more than one webhook can get from a worker. */
const webhookPaceMaxPerSecond = 10_000

/** The pace of one webhook. It is told the result of each attempt. All times are monotonic, in milliseconds. */
export class EndpointPace {
  /** Infinity while the pace is open. */
  #perSecond = Number.POSITIVE_INFINITY
  #safe = Number.POSITIVE_INFINITY
  #changedMs = Number.NEGATIVE_INFINITY
  /** When the pace last held back a delivery. */
  #heldMs = Number.NEGATIVE_INFINITY
  /** Whether an update that had failed before was taken since the pace was last lowered. */
  #retriesSucceed = false
  /** The present step: its first result, and what its attempts say. */
  #stepMs = 0
  #taken = 0
  #sick = 0
  #rejected = 0
  /** Failures since the last good or bad step, except those that say nothing new: of updates that had failed in an open pace. */
  #news = 0

  /** Attempts per second; Infinity while the pace is open. */
  get perSecond(): number {
    return this.#perSecond
  }

  /** Reports a successful attempt. */
  succeeded({ on, lane }: EndedTry, nowMs: number): void {
    if (on.startedMs < this.#changedMs) return
    this.#beginStep(nowMs)
    this.#taken++
    if (this.#isLimited && lane.failures > 0) this.#retriesSucceed = true
    this.#endStep(nowMs)
  }

  /**
   * Reports a failed attempt.
   *
   * @param isSick - whether it says that the endpoint is sick
   */
  failed({ on, lane }: EndedTry, isSick: boolean, nowMs: number): void {
    if (on.startedMs < this.#changedMs) return
    this.#beginStep(nowMs)
    if (this.#isLimited || lane.failures === 0) this.#news++
    if (isSick) this.#sick++
    else this.#rejected++
    this.#endStep(nowMs)
  }

  /** Reports that deliveries come as fast as the pace permits. */
  held(nowMs: number): void {
    this.#heldMs = nowMs
  }

  get #isLimited(): boolean {
    return this.#perSecond !== Number.POSITIVE_INFINITY
  }

  #beginStep(nowMs: number): void {
    if (this.#taken + this.#sick + this.#rejected === 0) this.#stepMs = nowMs
  }

  #endStep(nowMs: number): void {
    if (nowMs - this.#stepMs < webhookPaceStepMs) return
    const failures = this.#sick + this.#rejected
    const careful = (webhookCarefulPerSecond * (nowMs - this.#stepMs)) / 1_000
    const areFew = this.#news < webhookFailingMin && failures < careful
    const answered = this.#taken + this.#rejected
    const isBad = !areFew && (this.#taken === 0 || this.#sick > answered)
    if (isBad) this.#lower(this.#leastPerSecond, nowMs)
    else if (this.#isLimited && this.#taken > 0) this.#goOn(nowMs)
    if (isBad || this.#taken > 0) this.#news = 0
    this.#taken = 0
    this.#sick = 0
    this.#rejected = 0
  }

  get #leastPerSecond(): number {
    if (this.#taken > 0) return webhookCarefulPerSecond
    return this.#rejected > 0 ? webhookPaceRejectedPerSecond : webhookPaceSickPerSecond
  }

  #lower(leastPerSecond: number, nowMs: number): void {
    const perSecond = this.#perSecond
    if (this.#retriesSucceed && perSecond > webhookCarefulPerSecond) {
      // While the pace doubles, it was too high already a step before this shows.
      const isDoubling = this.#safe === Number.POSITIVE_INFINITY
      this.#safe = Math.max(perSecond / (isDoubling ? 4 : 2), webhookCarefulPerSecond)
    }
    this.#retriesSucceed = false
    const lower = this.#isLimited ? Math.min(perSecond / 2, this.#safe) : webhookCarefulPerSecond
    this.#change(Math.max(lower, leastPerSecond), nowMs)
  }

  #goOn(nowMs: number): void {
    if (this.#heldMs > this.#changedMs) this.#change(this.#raised(), nowMs)
    else if (nowMs - this.#changedMs >= webhookPaceCalmMs) this.#open(nowMs)
    if (this.#perSecond > webhookPaceMaxPerSecond) this.#open(nowMs)
  }

  #raised(): number {
    const perSecond = this.#perSecond
    const safe = this.#safe
    if (perSecond >= safe) return perSecond * 2 ** (1 / webhookPaceClimbSteps)
    return Math.max(Math.min(perSecond * 2, safe), webhookCarefulPerSecond)
  }

  #open(nowMs: number): void {
    this.#safe = Number.POSITIVE_INFINITY
    this.#change(Number.POSITIVE_INFINITY, nowMs)
  }

  #change(perSecond: number, nowMs: number): void {
    if (perSecond === this.#perSecond) return
    this.#perSecond = perSecond
    this.#changedMs = nowMs
  }
}
