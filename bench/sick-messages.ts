/** The messages between a case and the helper `sick-endpoint`. */

export type Sickness = 'refused' | 'hanging' | '500s'

export type SickQuestion =
  /** Accepts connections, as verification requires; the reply is the port, which stays the same. */
  | { readonly kind: 'listen' }
  /** Applies from now on, to existing connections, too. */
  | { readonly kind: 'fall'; readonly sickness: Sickness }
  /** The reply is `SickCounts` since the last `listen`. */
  | { readonly kind: 'counts' }

export interface SickCounts {
  /** The most connections that were open at a time. */
  readonly connectionsMax: number
  readonly requests: number
}
