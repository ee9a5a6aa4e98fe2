/** The messages between a case and the helper `webhook-sink`. */

export type SinkQuestion =
  /** Answered with the port. With an identity the sink speaks TLS. */
  | { readonly kind: 'listen'; readonly identity: SinkIdentity | undefined }
  /** From now on requests are counted from 0 and get no answer. */
  | { readonly kind: 'hold' }
  /** Answered with the number of requests that wait for their answer. */
  | { readonly kind: 'held' }
  /** Answers what waits and what comes; answered with the seconds until `count` requests had been answered. */
  | { readonly kind: 'release'; readonly count: number }
  /** From now on, until the question below is answered, the delays of stamped updates are noted. */
  | { readonly kind: 'watch' }
  /** Answered with `Delays` when so many stamped updates have come. */
  | { readonly kind: 'delays'; readonly count: number }

export interface SinkIdentity {
  readonly key: string
  readonly cert: string
}
