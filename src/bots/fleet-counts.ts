/** The sums over all bots, of a shard, a worker or the whole server. Pure. */
import type { Health } from '../webhook/health.ts'

/** The sums. Plain numbers, because workers send them to each other as JSON. */
export interface FleetCounts {
  /** Registered bots by the mode of their main queue. */
  readonly polling: number
  readonly webhook: number
  /** Bots with a webhook by its health. */
  readonly health: Readonly<Record<Health, number>>
  /** Bots whose deliveries the operator has paused, with or without a webhook. */
  readonly paused: number
  /** Pending updates of both queues of all bots, and the bytes of their texts. */
  readonly pending: number
  readonly pendingBytes: number
  readonly deadLetters: number
  /** The oldest pending update; undefined if none is pending. */
  readonly oldest?: OldestOfFleet | undefined
}

/** Where the oldest pending update is, and its age in seconds. */
export interface OldestOfFleet {
  readonly botId: number
  readonly isTest: boolean
  readonly ageS: number
}

/** The sums of nothing. */
export const noFleetCounts: FleetCounts = {
  polling: 0,
  webhook: 0,
  health: { healthy: 0, degraded: 0, failing: 0, paused: 0 },
  paused: 0,
  pending: 0,
  pendingBytes: 0,
  deadLetters: 0,
}

/** Adds two sums. */
export function addFleetCounts(a: FleetCounts, b: FleetCounts): FleetCounts {
  return {
    polling: a.polling + b.polling,
    webhook: a.webhook + b.webhook,
    health: {
      healthy: a.health.healthy + b.health.healthy,
      degraded: a.health.degraded + b.health.degraded,
      failing: a.health.failing + b.health.failing,
      paused: a.health.paused + b.health.paused,
    },
    paused: a.paused + b.paused,
    pending: a.pending + b.pending,
    pendingBytes: a.pendingBytes + b.pendingBytes,
    deadLetters: a.deadLetters + b.deadLetters,
    oldest: older(a.oldest, b.oldest),
  }
}

/** Returns the older one; of two that are as old, the one of the lower bot id. */
export function older(
  a: OldestOfFleet | undefined,
  b: OldestOfFleet | undefined,
): OldestOfFleet | undefined {
  if (a === undefined || b === undefined) return a ?? b
  if (a.ageS !== b.ageS) return a.ageS > b.ageS ? a : b
  return a.botId <= b.botId ? a : b
}
