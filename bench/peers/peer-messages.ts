/** The messages between the cases of peers and the helper `peer-client`. */
import type { PeerName } from './all-peers.ts'
import type { PeerAddress } from './peer.ts'

export type PeerQuestion =
  /** Connects a producer. */
  | {
      readonly kind: 'connect'
      readonly peer: PeerName
      readonly address: PeerAddress
      readonly queues: number
    }
  /** Consumes all queues from now on. */
  | {
      readonly kind: 'consume'
      readonly peer: PeerName
      readonly address: PeerAddress
      readonly queues: number
    }
  /** Pushes as fast as possible until the time is over or so many are pushed; the reply is an `IngestSample`. */
  | { readonly kind: 'push'; readonly durationMs: number; readonly countMax: number }
  /** Pushes stamped events at a rate; the reply is their number. */
  | { readonly kind: 'steady'; readonly ratePerSecond: number; readonly durationMs: number }
  /** From now on confirmations are counted and delays are recorded. */
  | { readonly kind: 'watch' }
  /** The reply comes when this many events have been confirmed. */
  | { readonly kind: 'confirmed'; readonly count: number }
  /** The reply is `Delays`, when this many stamped events have arrived. */
  | { readonly kind: 'delays'; readonly count: number }
