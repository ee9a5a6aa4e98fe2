/**
 * The port to the table that says which worker serves which shard, seen by all processes.
 *
 * The implementation lies in shared memory (shared-memory.ts); tests use one in plain memory. Only the
 * primary writes; a worker that finds itself no longer named as the owner forwards instead of serving.
 */
export interface ShardOwner {
  readonly worker: number
  readonly generation: number
}

export interface ShardTable {
  /** The worker of a shard, or -1 while nobody has it. Hot: called for every request. */
  ownerWorker(shard: number): number
  owner(shard: number): ShardOwner | undefined
  assign(shard: number, owner: ShardOwner): void
  /** The owner with this generation has opened the shard and answers for it. */
  markServing(shard: number, generation: number): void
  allServed(): boolean
  /** The process of this worker and generation is gone: its gauges drop out, its shards are served by nobody. */
  release(owner: ShardOwner): void
}
