/** The times of nodes, in ms. Measured with prototypes in which nodes and databases were killed and cut off. */

/** Pause between the heartbeats of a node. */
export const nodeHeartbeatMs = 250
/** A node is evicted whose row another one has read unchanged for this long. More than the lease, for clocks that drift. */
export const nodeEvictedMs = 1_500
/**
 * A node that has not read the rows for this long begins its observations anew. After a shorter outage of the database,
 * nobody is evicted who beats again within what this and one heartbeat leave of `nodeEvictedMs`.
 */
export const nodeObservationGapMs = 700
