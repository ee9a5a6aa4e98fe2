/** The times of nodes, in ms. Measured with prototypes in which nodes and databases were killed and cut off. */
/** Pause between the heartbeats of a node. */
export const nodeHeartbeatMs = 250
/** A node may serve for this long after it sent the last heartbeat that was acknowledged. */
export const nodeLeaseMs = 1_000
/** A node is evicted whose row another one has read unchanged for this long. More than the lease, for clocks that drift. */
export const nodeEvictedMs = 1_500
/**
 * A node that has not read the rows for this long begins its observations anew. After a shorter outage of the database,
 * nobody is evicted who beats again within what this and one heartbeat leave of `nodeEvictedMs`.
 */
export const nodeObservationGapMs = 700
/**
 * The clock of the shards follows a jump of the database's by this part of the time that passes. Chosen: a time to live is
 * at most a tenth shorter or longer than wanted, and 10 minutes are made up for in less than two hours.
 */
export const clockSlewRate = 0.1
/**
 * If the rows of nodes or shards change, a node reads them with an extra heartbeat, this long after the last one at the
 * earliest. Chosen: a lost node changes the rows of all of its shards, and 50 heartbeats a second cost little.
 */
export const nodeExtraBeatMs = 20
/**
 * A shard without an owner is claimed by the node that comes next in its rank if the one before has not claimed it in this
 * time. Chosen: several times what a claim takes that has to end the connection of the last owner.
 */
export const orphanTurnMs = 2_000
/**
 * A node hands shards over to other ones when the same nodes have been serving for this long. Chosen: longer than the
 * restart of a node, so that its shards do not move away and back.
 */
export const handOverPauseMs = 10_000
/** A node hands over this many shards at a time, because the bots of such a shard wait meanwhile. */
export const handOversMax = 1
/** The same for a node that leaves: its operator waits for its end. Chosen: 64 shards move in some seconds. */
export const handOversLeavingMax = 4
/** A server that ends waits this long for the nodes that take its shards. Chosen: as long as for open requests. */
export const handOverAllMsMax = 10_000
/**
 * A server that starts waits this long until all shards of a database have an owner. Chosen: longer than a take-over and the
 * opening of many shards, and a third of the time that systemd gives a start by default.
 */
export const settleMsMax = 30_000
/** The hashes of so many pairs of a shard and a node are kept. Chosen: 256 shards and 128 nodes. */
export const rendezvousHashesMax = 32_768
