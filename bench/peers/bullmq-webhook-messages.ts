/** The messages between the case `peers-webhook` and the helper `bullmq-webhook`. */
import type { PeerAddress } from './peer.ts'

export type BullmqWebhookQuestion =
  | { readonly kind: 'connect'; readonly address: PeerAddress }
  /** Delivers jobs from now on, so many at a time. */
  | {
      readonly kind: 'work'
      readonly address: PeerAddress
      readonly url: string
      readonly headers: readonly string[]
      readonly concurrency: number
    }
  /** Adds so many jobs. */
  | { readonly kind: 'add'; readonly count: number }
  /** Adds stamped jobs at a rate, each when it is due; the reply is their number. */
  | { readonly kind: 'steady'; readonly ratePerSecond: number; readonly durationMs: number }
  /** The reply is the number of jobs completed so far. */
  | { readonly kind: 'completed' }
