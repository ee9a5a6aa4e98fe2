/**
 * The port to the tables that say which worker serves which shard, and what each worker does. All processes can read them.
 *
 * The implementation is in shared memory (shared-memory.ts); tests use one in plain memory. Only the primary writes, and
 * this interface has only what the primary needs.
 */
import type { WorkerRecord } from './worker-record.ts'

export interface ShardOwner {
  readonly worker: number
  readonly generation: number
}

export interface ShardTable {
  /** @param owner - undefined if this node does not have the shard */
  assign(shard: number, owner: ShardOwner | undefined): void
  /** Records that the owner with this generation has opened the shard and serves its bots. */
  markServing(shard: number, generation: number): void
  /** Whether the owner has opened the shard and lives. */
  isServed(shard: number): boolean
  /** Counts a process of this worker that hangs and is about to be killed: requests sent to it must not be repeated. */
  countHang(worker: number): void
  /** Records what became of the process of a worker. */
  noteWorker(worker: number, record: WorkerRecord): void
  /** Records that the process of this worker and generation is gone: its gauges become zero and nobody serves its shards. */
  release(owner: ShardOwner): void
}
