/**
 * Limits how fast a webhook may open connections. If the endpoint is known to work (a success less than 10 s ago), 10 per
 * half second and up to max_connections in total; otherwise one per 2 s and at most 4. So an endpoint that is down or
 * hangs is not flooded and costs this server little. The reference server has the same limits.
 */

/**
 * Counts the connections of all webhooks of the server, including those being opened, against
 * `--max-total-webhook-connections`.
 */
export interface ServerGate {
  /** Tells whether a connection may be opened. The result is valid for an `opened` in the same turn. */
  mayOpen(): boolean
  opened(): void
  closed(): void
  /** Tells whether there is room for idle connections. */
  mayIdle(): boolean
  /** Reports that a webhook without any connection was refused one. */
  turnedAway(): void
  /**
   * Tells whether a webhook was refused a connection since the last call. If so, the caller closes a connection for it.
   */
  mustYield(): boolean
}

/** A webhook with a success within this time may open connections fast; otherwise slowly. [ref] */
const webhookRecentSuccessMs = 10_000
/** A webhook that works may open this many connections per `webhookFastOpeningsMs`. [ref] */
const webhookFastOpeningsMax = 10
/** The period of `webhookFastOpeningsMax`. [ref] */
const webhookFastOpeningsMs = 500
/** A webhook that does not work may open one connection in this time. [ref] */
const webhookSlowOpeningMs = 2_000
/**
 * A webhook that does not work may have this many connections, each for another ordering key, so that one hanging key
 * does not hold up the rest. The reference allows one.
 */
const webhookSlowConnectionsMax = 4

/** The gate of one webhook with its max_connections. All times are monotonic, in milliseconds. */
export class FloodGate {
  #connectionsMax: number
  /** The times of the last openings, a ring whose oldest entry is at `#at`. */
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

  /** Has another max_connections from now on. */
  limitTo(connectionsMax: number): void {
    this.#connectionsMax = connectionsMax
  }

  /** Reports a success of the endpoint. */
  succeeded(nowMs: number): void {
    this.#successMs = nowMs
  }

  /** Reports that a connection is being opened. */
  opened(nowMs: number): void {
    this.#openedMs[this.#at] = nowMs
    this.#at = (this.#at + 1) % webhookFastOpeningsMax
  }

  /**
   * Returns how long a new connection must wait.
   *
   * @param connections - the number of connections of the webhook, including those being opened
   * @returns 0 if a connection may be opened now, Infinity until a connection closes or succeeds
   */
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

  /** Returns when the `index`th oldest of the remembered connections was opened. */
  #openingMs(index: number): number {
    return this.#openedMs[(this.#at + index) % webhookFastOpeningsMax] ?? Number.NEGATIVE_INFINITY
  }
}
