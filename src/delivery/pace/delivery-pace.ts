/**
 * Decides when a webhook's next delivery may be sent: the limit that the operator has set, and the endpoint's own pace
 * (endpoint-pace.ts). They share one bucket (rate-gate.ts), whose rate is the lower one. It exists only while one of them
 * applies, so that all other webhooks pay only a few comparisons for each delivery.
 */
import type { Clock } from '../../kit/clock.ts'
import { EndpointPace, type EndedTry } from './endpoint-pace.ts'
import { RateGate } from './rate-gate.ts'
import { SentWindow } from '../lanes/sent-window.ts'

/** Returns the limit of the operator in deliveries per second, above 0; undefined if there is none. */
export type DeliveryLimit = () => number | undefined

/** The pace of one webhook. All times are monotonic, in milliseconds. */
export class DeliveryPace {
  readonly #limit: DeliveryLimit | undefined
  readonly #endpoint: EndpointPace
  #gate: RateGate | undefined
  /** Only with a limit: the pace of the endpoint need not be exact. */
  #window: SentWindow | undefined

  /** @param limit - if absent, there is no limit */
  constructor(limit?: DeliveryLimit, endpoint = new EndpointPace()) {
    this.#limit = limit
    this.#endpoint = endpoint
  }

  /** The pace of the endpoint in attempts per second; undefined while it is open. */
  get endpointPerSecond(): number | undefined {
    const { perSecond } = this.#endpoint
    return perSecond === Number.POSITIVE_INFINITY ? undefined : perSecond
  }

  /** Reports a successful attempt. */
  succeeded(ended: EndedTry, nowMs: number): void {
    this.#endpoint.succeeded(ended, nowMs)
  }

  /** Reports a failed attempt: a delivery, or the opening of a connection. */
  failed(ended: EndedTry, isSick: boolean, nowMs: number): void {
    this.#endpoint.failed(ended, isSick, nowMs)
  }

  /** Takes over the limit and the pace of the endpoint. Call this whenever something may be sent. */
  refresh(nowMs: number): void {
    const limit = this.#limit?.()
    if (limit !== this.#window?.perSecond) {
      this.#window = limit === undefined ? undefined : new SentWindow(limit, this.#window)
    }
    const perSecond = Math.min(limit ?? Number.POSITIVE_INFINITY, this.#endpoint.perSecond)
    if (perSecond === Number.POSITIVE_INFINITY) this.#gate = undefined
    else if (this.#gate === undefined) this.#gate = new RateGate(perSecond, nowMs)
    else this.#gate.setRate(perSecond, nowMs)
  }

  /** Returns how long the next delivery must wait; 0 if it may be taken and sent now. */
  waitMs(nowMs: number): number {
    if (this.#gate === undefined) return 0
    return Math.max(this.#gate.waitMs(nowMs), this.#window?.waitMs(nowMs) ?? 0)
  }

  /** Tells whether a delivery that was taken earlier may be sent now. */
  maySend(nowMs: number): boolean {
    return this.#gate?.maySend(nowMs) !== false && (this.#window?.waitMs(nowMs) ?? 0) === 0
  }

  /** Counts a delivery that is sent now, or when a connection was opened for it. */
  taken(nowMs: number): void {
    if (this.#gate?.isTight(nowMs) === true) this.#endpoint.held(nowMs)
    this.#gate?.taken(nowMs)
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
