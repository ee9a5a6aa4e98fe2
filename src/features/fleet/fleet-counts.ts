/** The sums over all bots, of a shard, a worker or the whole server. Pure. */
import { recordOf } from '../../kit/record-of.ts'
import { type Health, healthWords } from '../../kit/states.ts'

/** The sums. Plain numbers, because workers send them to each other as JSON. */
export interface FleetCounts {
  /** Registered bots by the mode of their main queue. */
  readonly polling: number
  readonly webhook: number
  /** Bots by their health: those with a webhook, and those without one that nobody polls. */
  readonly health: Readonly<Record<Health, number>>
  /** Bots whose deliveries the operator has paused, with or without a webhook. */
  readonly paused: number
  /** Bots that two programs poll at the same time, degraded or not yet. */
  readonly fought: number
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

/** The sums over all bots of one shard. */
export interface ShardSums {
  readonly shard: number
  readonly counts: FleetCounts
}

/** The sums of nothing. */
export const noFleetCounts: FleetCounts = {
  polling: 0,
  webhook: 0,
  health: recordOf(healthWords, () => 0),
  paused: 0,
  fought: 0,
  pending: 0,
  pendingBytes: 0,
  deadLetters: 0,
}

/** Adds two sums. */
export function addFleetCounts(a: FleetCounts, b: FleetCounts): FleetCounts {
  return {
    polling: a.polling + b.polling,
    webhook: a.webhook + b.webhook,
    health: recordOf(healthWords, (word) => known(a.health[word]) + known(b.health[word])),
    paused: a.paused + b.paused,
    fought: known(a.fought) + known(b.fought),
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

/** A worker of an earlier version, which is about to be replaced, does not know every word. */
function known(count: number | undefined): number {
  return count ?? 0
}
