/**
 * Knows when one dispatcher is right to send nothing although it could, and checks the ramp after an outage: not more than
 * 10 deliveries in the first second, 20 in the second one, and so on.
 */

import type { World } from './world.ts'

const serverPace = { failuresMax: 200, failuresPerSecond: 100 }
const rounding = 0.0001
/** A bucket refills a little more slowly than its rate, and after a lower rate it may lack two tokens. */
const periodsMax = 2.1
/** The ramp may end 10 s after it has begun. */
const rampMs = 10_000
/** The deliveries that a bucket may save up. */
const burstS = 0.01

export class PaceWatch {
  readonly #world: World
  /** Failures since the last success, minus those that elapsed time has offset. */
  #failures = 0
  #failedMs = 0
  /** Updates that have failed for the first time since the last success, and since when. */
  #newFailures = 0
  #failingSinceMs = 0
  /** When something was last taken or sent, the dispatcher was resumed, or a ramp may have begun. */
  #activeMs: number
  /** When the ramp has begun, and what was sent since. */
  #rampFromMs = Number.NEGATIVE_INFINITY
  #rampSent = 0

  constructor(world: World) {
    this.#world = world
    this.#activeMs = this.#nowMs
  }

  /** @param isRecovering - whether the dispatcher has a ramp already */
  succeeded(isRecovering: boolean): void {
    const lastedMs = this.#nowMs - this.#failingSinceMs
    const isOutage = this.#newFailures > 0 && lastedMs >= (this.#newFailures < 3 ? 30_000 : 1_000)
    // A ramp may begin now, with an empty bucket.
    if (this.#newFailures > 0) this.#activeMs = this.#nowMs
    this.#failures = 0
    this.#newFailures = 0
    if (!isOutage || isRecovering) return
    this.#rampFromMs = this.#nowMs
    this.#rampSent = 0
    this.#world.ledger.tally('recovering')
  }

  failed(isFirst: boolean): void {
    if (this.#newFailures === 0) this.#failingSinceMs = this.#nowMs
    if (isFirst) this.#newFailures++
    this.#failures = this.recentFailures + 1
    this.#failedMs = this.#nowMs
  }

  taken(): void {
    this.#activeMs = this.#nowMs
  }

  /** A limit that was set during the pause counts from now on. */
  resumed(): void {
    this.#activeMs = this.#nowMs
  }

  /** Returns the rule that this delivery breaks. */
  sent(): string | undefined {
    this.#activeMs = this.#nowMs
    const sinceMs = this.#nowMs - this.#rampFromMs
    if (sinceMs < rampMs && ++this.#rampSent > allowedWithin(sinceMs)) {
      return `sends ${this.#rampSent} updates within ${sinceMs} ms after an outage`
    }
    return this.#world.limit.count(this.#nowMs)
  }

  /**
   * Tells whether the operator's limit or the ramp is a reason to send nothing now.
   *
   * @param recoveryPerSecond - the present rate of the ramp
   */
  isSlow(recoveryPerSecond: number | undefined): boolean {
    const { perSecond = Number.POSITIVE_INFINITY, changedMs } = this.#world.limit
    const rate = Math.min(perSecond, recoveryPerSecond ?? Number.POSITIVE_INFINITY)
    const sinceMs = Math.max(this.#activeMs, changedMs)
    // What was sent before a limit was lowered counts, too: for a second, or longer if the limit is below one per second.
    const windowMs = (1_000 * Math.ceil(perSecond)) / perSecond
    const isLowered = this.#nowMs - changedMs <= windowMs
    const isSlow = isLowered || this.#nowMs - sinceMs <= (periodsMax * 1_000) / rate
    if (isSlow && rate !== Number.POSITIVE_INFINITY) this.#world.ledger.tally('slowed down')
    return isSlow && rate !== Number.POSITIVE_INFINITY
  }

  get recentFailures(): number {
    const { failuresPerSecond } = this.#world.pace ?? serverPace
    const madeUpFor = ((this.#nowMs - this.#failedMs) / 1_000) * failuresPerSecond
    return Math.max(this.#failures - madeUpFor, 0)
  }

  /** Too many failures have occurred without a success. */
  get isHeldBack(): boolean {
    const { failuresMax } = this.#world.pace ?? serverPace
    return this.recentFailures > failuresMax - 1 + rounding
  }

  get #nowMs(): number {
    return this.#world.clock.monotonicMs()
  }
}

function allowedWithin(ms: number): number {
  const seconds = Math.floor(ms / 1_000)
  const perSecond = 10 * 2 ** seconds
  return 10 * (2 ** seconds - 1) + perSecond * (ms / 1_000 - seconds + burstS) + 1
}
