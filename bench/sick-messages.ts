/** The messages between a case and the helper `sick-endpoint`. */

export type Sickness = 'refused' | 'hanging' | '500s'

export type SickQuestion =
  /** Takes connections, as verification asks for; answered with the port, which stays the same. */
  | { readonly kind: 'listen' }
  /** From now on, for old connections too. */
  | { readonly kind: 'fall'; readonly sickness: Sickness }
  /** Answered with `SickCounts` since the last `listen`. */
  | { readonly kind: 'counts' }

export interface SickCounts {
  /** At a time. */
  readonly connectionsMax: number
  readonly requests: number
}
