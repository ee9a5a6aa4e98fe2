/** The messages between a case and the helper `long-poller`. */

export interface PolledEndpoint {
  readonly port: number
  readonly tokens: readonly string[]
}

export type LongPollerQuestion =
  /** Each bot polls from now on over a connection of its own, confirming what it got. */
  | ({ readonly kind: 'start' } & PolledEndpoint)
  /** From now on, until the question below is answered, the delays of stamped updates are noted. */
  | { readonly kind: 'watch' }
  /** Answered with `Delays` when so many stamped updates have come. */
  | { readonly kind: 'delays'; readonly count: number }
