/**
 * Decides when a webhook's next delivery may be sent. Three rules apply, and the strictest counts: the pace of attempts
 * while none succeeds (attempt-pace.ts), the limit that the operator has set, and the ramp after an outage
 * (recovery-ramp.ts). The last two share one bucket (rate-gate.ts), whose rate is the lower one. It exists only while one
 * of them applies, so that all other webhooks pay only a few comparisons for each delivery.
 */
import type { Clock } from '../clock.ts'
import { AttemptPace } from './attempt-pace.ts'
import { RateGate } from './rate-gate.ts'
import { type FailedTry, RecoveryRamp } from './recovery-ramp.ts'
import { SentWindow } from './sent-window.ts'

/** Returns the limit of the operator in deliveries per second, above 0; undefined if there is none. */
export type DeliveryLimit = () => number | undefined

export interface DeliveryPaceOptions {
  /** If absent, there is no limit. */
  readonly limit?: DeliveryLimit | undefined
  /** Replaces the usual pace of failing attempts. */
  readonly attempts?: AttemptPace | undefined
  /** Replaces the usual ramp. */
  readonly ramp?: RecoveryRamp | undefined
}

/** The pace of one webhook. All times are monotonic, in milliseconds. */
export class DeliveryPace {
  readonly #limit: DeliveryLimit | undefined
  readonly #attempts: AttemptPace
  readonly #ramp: RecoveryRamp
  #gate: RateGate | undefined
  /** Only with a limit: what the ramp does need not be exact. */
  #window: SentWindow | undefined

  constructor({ limit, attempts, ramp }: DeliveryPaceOptions = {}) {
    this.#limit = limit
    this.#attempts = attempts ?? new AttemptPace()
    this.#ramp = ramp ?? new RecoveryRamp()
  }

  /** The rate of the ramp in deliveries per second; undefined while there is none. */
  get recoveryPerSecond(): number | undefined {
    const { perSecond } = this.#ramp
    return perSecond === Number.POSITIVE_INFINITY ? undefined : perSecond
  }

  /** Reports a successful attempt. */
  succeeded(nowMs: number): void {
    this.#attempts.succeeded()
    this.#ramp.succeeded(nowMs)
  }

  /** Reports a failed attempt: a delivery, or the opening of a connection. */
  failed(failed: FailedTry, nowMs: number): void {
    this.#attempts.failed(nowMs)
    this.#ramp.failed(failed, nowMs)
  }

  /** Takes over the limit and the rate of the ramp. Call this whenever something may be sent. */
  refresh(nowMs: number): void {
    const limit = this.#limit?.()
    if (limit !== this.#window?.perSecond) {
      this.#window = limit === undefined ? undefined : new SentWindow(limit, this.#window)
    }
    const perSecond = Math.min(limit ?? Number.POSITIVE_INFINITY, this.#ramp.perSecond)
    if (perSecond === Number.POSITIVE_INFINITY) this.#gate = undefined
    else if (this.#gate === undefined) this.#gate = new RateGate(perSecond, nowMs)
    else this.#gate.setRate(perSecond, nowMs)
  }

  /** Returns how long the next delivery must wait; 0 if it may be taken and sent now. */
  waitMs(nowMs: number): number {
    const attemptsMs = this.#attempts.waitMs(nowMs)
    if (this.#gate === undefined) return attemptsMs
    return Math.max(attemptsMs, this.#gate.waitMs(nowMs), this.#window?.waitMs(nowMs) ?? 0)
  }

  /** Tells whether a delivery that was taken earlier may be sent now. */
  maySend(nowMs: number): boolean {
    return this.#gate?.maySend(nowMs) !== false && (this.#window?.waitMs(nowMs) ?? 0) === 0
  }

  /** Counts a delivery that is sent now, or when a connection was opened for it. */
  taken(nowMs: number): void {
    const gate = this.#gate
    const isHeld = gate?.isTight(nowMs) === true || this.#attempts.isTight(nowMs)
    if (isHeld) this.#ramp.held(nowMs)
    gate?.taken(nowMs)
  }

  /**
   * Counts a delivery that is sent now. The clock is read only if the rate is limited.
   *
   * @returns if there is a limit, what to call when the delivery is written
   */
  sent(clock: Pick<Clock, 'monotonicMs'>): (() => void) | undefined {
    if (this.#gate === undefined) return undefined
    const nowMs = clock.monotonicMs()
    this.#gate.sent(nowMs)
    const window = this.#window
    if (window === undefined) return undefined
    const place = window.add(nowMs)
    return () => window.written(place, clock.monotonicMs())
  }
}
