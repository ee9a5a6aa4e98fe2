/**
 * Knows when one dispatcher is right to send nothing although it could, and checks that it sends no more than the pace of
 * its endpoint allows, which it tells as `endpointPerSecond`, and that this pace is never below 1 nor without a reason.
 */
import type { World } from './world.ts'

/** A bucket refills a little more slowly than its rate, and after a lower rate it may lack two tokens. */
const periodsMax = 2.1
/** One token may be saved up, and the share of those of 10 ms. */
const burstMs = 10
const reasonsMin = 3

export class PaceWatch {
  readonly #world: World
  /** When something was last taken or sent, the dispatcher was resumed, or the pace may have changed. */
  #activeMs: number
  #perSecond = Number.POSITIVE_INFINITY
  #changedMs = 0
  /** What may be sent at the present pace. */
  #tokens = 0
  /** Updates that have failed for the first time while the pace was open. */
  #newFailures = 0

  constructor(world: World) {
    this.#world = world
    this.#activeMs = this.#nowMs
  }

  failed(isFirst: boolean): void {
    if (isFirst) this.#newFailures++
  }

  taken(): void {
    this.#activeMs = this.#nowMs
  }

  /** A limit that was set during the pause counts from now on. */
  resumed(): void {
    this.#activeMs = this.#nowMs
  }

  /** Returns the rule that the pace breaks, told after each event. */
  at(perSecond = Number.POSITIVE_INFINITY): string | undefined {
    const before = this.#perSecond
    if (before !== Number.POSITIVE_INFINITY) {
      const higher = Math.min(Math.max(before, perSecond), 1e6)
      const refilled = (higher * (this.#nowMs - this.#changedMs)) / 1_000
      this.#tokens = Math.min(this.#tokens + refilled, 1 + (higher * burstMs) / 1_000)
    }
    this.#changedMs = this.#nowMs
    if (perSecond === before) return undefined
    this.#perSecond = perSecond
    this.#activeMs = this.#nowMs
    if (before === Number.POSITIVE_INFINITY) {
      this.#tokens = 1
      if (this.#newFailures < reasonsMin) return 'is slowed down without a reason'
    }
    if (perSecond === Number.POSITIVE_INFINITY) this.#newFailures = 0
    if (perSecond > before) this.#world.ledger.tally('recovering')
    return perSecond < 1 ? `is slowed down to ${perSecond} per second` : undefined
  }

  /** Returns the rule that this delivery breaks. */
  sent(): string | undefined {
    this.#activeMs = this.#nowMs
    if (this.#perSecond !== Number.POSITIVE_INFINITY && --this.#tokens < -1) {
      return `sends more than ${this.#perSecond} updates per second`
    }
    return this.#world.limit.count(this.#nowMs)
  }

  /** Tells whether the operator's limit or the pace of the endpoint is a reason to send nothing now. */
  get isSlow(): boolean {
    const { perSecond = Number.POSITIVE_INFINITY, changedMs } = this.#world.limit
    const rate = Math.min(perSecond, this.#perSecond)
    const sinceMs = Math.max(this.#activeMs, changedMs)
    // What was sent before a limit was lowered counts, too: for a second, or longer if the limit is below one per second.
    const windowMs = (1_000 * Math.ceil(perSecond)) / perSecond
    const isLowered = this.#nowMs - changedMs <= windowMs
    const isSlow = isLowered || this.#nowMs - sinceMs <= (periodsMax * 1_000) / rate
    if (isSlow && rate !== Number.POSITIVE_INFINITY) this.#world.ledger.tally('slowed down')
    return isSlow && rate !== Number.POSITIVE_INFINITY
  }

  get #nowMs(): number {
    return this.#world.clock.monotonicMs()
  }
}
