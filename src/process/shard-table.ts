/**
 * The port to the tables that say which worker serves which shard, and what each worker does. All processes can read them.
 *
 * The implementation is in shared memory (shared-memory.ts); tests use one in plain memory. Only the primary writes, and
 * this interface has only what the primary needs.
 */
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

/** `down`: its process has ended, and another one is started in a moment. `ending`: no process is started any more. */
export const workerStates = ['down', 'starting', 'serving', 'ending'] as const

export type WorkerState = (typeof workerStates)[number]

/** What the primary knows of the process that has the place of a worker. */
export interface WorkerRecord {
  readonly state: WorkerState
  /** Of the process; 0 while there is none. */
  readonly pid: number
  /** The number of the process within its place. Every start and every reload uses the next one. */
  readonly generation: number
  /** Processes that were started because the one before ended or could not start. A reload is none. */
  readonly restarts: number
  /** When the process began to serve, in whole seconds of the machine's clock; 0 while it does not. */
  readonly servingSinceS: number
}
