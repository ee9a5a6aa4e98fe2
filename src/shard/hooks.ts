/** What a worker tells its modules of its shards (kit/modules.ts). */
import type { StoredRecord } from './records/stored-records.ts'
import type { Operation } from './operations.ts'
import type { Shard } from './shard.ts'

export interface ShardHooks {
  /** A shard was opened, or read anew from disk: what was known of it is void. */
  served?(shard: Shard): void
  /** All bots of a shard, in pages, some time after `served`, and again if they are read again. */
  found?(shard: Shard, bots: readonly StoredRecord<'b'>[]): void
  /** A shard has committed a group of operations, which are in effect. */
  committed?(shard: Shard, operations: readonly Operation[]): void
  /** A shard has left this worker. Nobody waits for what this ends. */
  left?(shard: Shard): void
}
