/** The messages between a case and the helper `webhook-sink`. */

export type SinkQuestion =
  /** Answered with the port. */
  | { readonly kind: 'listen' }
  /** From now on requests are counted from 0 and get no answer. */
  | { readonly kind: 'hold' }
  /** Answered with the number of requests that wait for their answer. */
  | { readonly kind: 'held' }
  /** Answers what waits and what comes; answered with the seconds until `count` requests had been answered. */
  | { readonly kind: 'release'; readonly count: number }
