/** What a worker tells its modules of its shards (kit/modules.ts). */
import type { StoredRecord } from './records/stored-records.ts'
import type { Operation } from './operations.ts'
import type { Shard } from './shard.ts'

export interface ShardHooks {
  /** A shard was opened, or read anew from disk: what was known of it is void. */
  served?(shard: Shard): void
  /** All bots of a shard, in pages, some time after `served`. They are read only if a module has this hook, and once for all. */
  found?(shard: Shard, bots: readonly StoredRecord<'b'>[]): void
  /** All bots of a shard were found. Those of the next shard are read when what this reads was read. */
  foundAll?(shard: Shard): Promise<void>
  /** The bots of a shard, or what `foundAll` reads, could not be read: they are found again after a while, from the first. */
  unfound?(shard: Shard): void
  /** A shard has committed a group of operations, which are in effect. */
  committed?(shard: Shard, operations: readonly Operation[]): void
  /** A shard has left this worker. Nobody waits for what this ends. */
  left?(shard: Shard): void
}
