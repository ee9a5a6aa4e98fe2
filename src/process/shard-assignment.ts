import type { RouteTable } from './routes.ts'

/** A shard that a node has, or that nobody has: it is claimed when it is opened. */
export interface ShardOpening {
  readonly shard: number
  /** The life of the node; empty if no other node can have the shard. */
  readonly boot: string
}

/** What a node has in a database, or in all of them. */
export interface ShardAssignment {
  /** The shards that this node has. */
  openings(): readonly ShardOpening[]
  /** Whether this node has a shard. */
  has(shard: number): boolean
  /** Where all shards are; undefined if all of them are on this node for ever. */
  routes(): RouteTable | undefined
}

/** Returns the assignment of a single machine: it has all shards, and that never changes. */
export function lastingAssignment(shards: number): ShardAssignment {
  const openings = Array.from({ length: shards }, (_, shard) => ({ shard, boot: '' }))
  return { openings: () => openings, has: () => true, routes: () => undefined }
}

/** The workers of this node. */
export interface ShardControl {
  /** Returns the worker that has this shard if this node has it. */
  workerOf(shard: number): ShardWorker
  setRoutes(routes: RouteTable): void
}

/** A worker, as it opens and closes shards. */
export interface ShardWorker {
  /** Whether it has the shard open. */
  isServed(shard: number): boolean
  /** Whether it could open a shard now. One that is starting opens its shards itself. */
  readonly canOpen: boolean
  /** Opens a shard. Rejects if no process serves, or if it cannot open the shard. */
  open(opening: ShardOpening): Promise<void>
  /** Closes a shard, after what is in progress for it. Rejects if that is not certain. */
  leave(shard: number): Promise<void>
  /** The shard belongs to another node. Never rejects. Resolves when the shard is closed, or its process is gone. */
  drop(shard: number): Promise<void>
}
