/**
 * Whether this server may act on what it holds of a shard in memory: answer polls and start deliveries. A server whose
 * shards another one may take over has a lease from each of its databases and asks before each of these; all others may
 * always act.
 */
export interface Lease {
  isValid(): boolean
}

export const endlessLease: Lease = { isValid: () => true }

/** What waits for the lease asks again after this time. Chosen: a fifth of the pause between two heartbeats. */
export const leaseAskAgainMs = 50
/**
 * A poll that finds updates while there is no lease waits this long for it, even if it wanted no wait: an empty list would
 * say that there are none. Chosen: as long as a lease lasts.
 */
export const leaseHoldMs = 1_000
