/**
 * The port to the table that says which worker serves which shard, seen by all processes.
 *
 * The implementation lies in shared memory (shared-memory.ts); tests use one in plain memory. Only the
 * primary writes, and this is what it needs.
 */
export interface ShardOwner {
  readonly worker: number
  readonly generation: number
}

export interface ShardTable {
  assign(shard: number, owner: ShardOwner): void
  /** The owner with this generation has opened the shard and answers for it. */
  markServing(shard: number, generation: number): void
  /** A process of this worker hangs and is about to be killed: what was sent to it must not reach its successor. */
  countHang(worker: number): void
  /** The process of this worker and generation is gone: its gauges drop out, its shards are served by nobody. */
  release(owner: ShardOwner): void
}
