/** The messages between a case and the helper `long-poller`. */

export interface PolledEndpoint {
  readonly port: number
  readonly tokens: readonly string[]
}

export type LongPollerQuestion =
  /** From now on each bot polls over its own connection and confirms what it gets. */
  | ({ readonly kind: 'start' } & PolledEndpoint)
  /** From now on, until the reply to the question below, the delays of stamped updates are recorded. */
  | { readonly kind: 'watch' }
  /** The reply is `Delays`, when this many stamped updates have arrived. */
  | { readonly kind: 'delays'; readonly count: number }
