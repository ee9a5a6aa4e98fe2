/** Which database of a cluster has which shards. Databases that exist depend on this rule: it must not change. */

/** Returns the number of the database that has a shard, in the order of `postbote database init`. */
export function databaseOfShard(shard: number, databases: number): number {
  return shard % databases
}

/** One database of a cluster. */
export interface ClusterPart {
  /** The number of shards of the cluster. */
  readonly shards: number
  /** The number of databases of the cluster, and which of them this is, from 0. */
  readonly databases: number
  readonly number: number
}

/** Returns the shards that a database has, in rising order. */
export function shardsOfDatabase({ shards, databases, number }: ClusterPart): readonly number[] {
  return Array.from({ length: shards }, (_, shard) => shard).filter(
    (shard) => databaseOfShard(shard, databases) === number,
  )
}
