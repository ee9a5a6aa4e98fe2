/** The messages between a case and the helper `webhook-sink`. */

export type SinkQuestion =
  /** The reply is the port. With an identity the sink speaks TLS. */
  | { readonly kind: 'listen'; readonly identity: SinkIdentity | undefined }
  /** From now on requests are counted from 0 and get no response. */
  | { readonly kind: 'hold' }
  /** The reply is the number of requests that wait for their response. */
  | { readonly kind: 'held' }
  /** Responds to the waiting and all further requests; the reply is the seconds until `count` requests had their response. */
  | { readonly kind: 'release'; readonly count: number }
  /** From now on, until the reply to the question below, the delays of stamped updates are recorded. */
  | { readonly kind: 'watch' }
  /** The reply is `Delays`, when this many stamped updates have arrived. */
  | { readonly kind: 'delays'; readonly count: number }

export interface SinkIdentity {
  readonly key: string
  readonly cert: string
}
