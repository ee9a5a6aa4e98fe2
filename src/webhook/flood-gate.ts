/**
 * How fast a webhook may open connections. While the endpoint is known to work (a success less than 10 s
 * ago) 10 in half a second and up to max_connections; otherwise one in 2 s and at most 4, so that an
 * endpoint that is down, or hangs, is not hammered and costs this server little.
 */

import {
  webhookFastOpeningsMax,
  webhookFastOpeningsMs,
  webhookRecentSuccessMs,
  webhookSlowConnectionsMax,
  webhookSlowOpeningMs,
} from '../limits.ts'

/** Counts the connections of all webhooks of the server, open ones and those being opened. */
export interface ServerGate {
  /** Holds good for an `opened` in the same turn. */
  mayOpen(): boolean
  opened(): void
  closed(): void
  /** Whether there is room for connections that are only kept for later. */
  mayIdle(): boolean
  /** It may not open one, says a webhook that has none at all. */
  turnedAway(): void
  /** Whether one was turned away since the last call: a connection is to be closed for it. */
  mustYield(): boolean
}

export class FloodGate {
  readonly #connectionsMax: number
  /** The times of the last openings, oldest at `#at`: a ring. */
  readonly #openedMs = Array.from(
    { length: webhookFastOpeningsMax },
    () => Number.NEGATIVE_INFINITY,
  )
  #at = 0
  #successMs: number | undefined

  constructor(connectionsMax: number) {
    this.#connectionsMax = connectionsMax
  }

  get lastSuccessMs(): number | undefined {
    return this.#successMs
  }

  succeeded(nowMs: number): void {
    this.#successMs = nowMs
  }

  opened(nowMs: number): void {
    this.#openedMs[this.#at] = nowMs
    this.#at = (this.#at + 1) % webhookFastOpeningsMax
  }

  /** 0 where one may be opened now, else how long that may take: Infinity until a connection closes or succeeds. */
  waitMs(nowMs: number, connections: number): number {
    const fast = this.#successMs !== undefined && nowMs - this.#successMs < webhookRecentSuccessMs
    const connectionsMax = fast
      ? this.#connectionsMax
      : Math.min(this.#connectionsMax, webhookSlowConnectionsMax)
    if (connections >= connectionsMax) return Number.POSITIVE_INFINITY
    const nextMs = fast
      ? this.#openingMs(0) + webhookFastOpeningsMs
      : this.#openingMs(webhookFastOpeningsMax - 1) + webhookSlowOpeningMs
    return Math.max(nextMs - nowMs, 0)
  }

  /** When the connection was opened that is the `index`th oldest of those remembered. */
  #openingMs(index: number): number {
    return this.#openedMs[(this.#at + index) % webhookFastOpeningsMax] ?? Number.NEGATIVE_INFINITY
  }
}
