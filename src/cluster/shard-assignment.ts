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
  /** Whether a worker has the shard open. */
  isServed(shard: number): boolean
  /** Whether a worker could open the shard now. One that is starting opens its shards itself. */
  canOpen(shard: number): boolean
  openShard(opening: ShardOpening): Promise<void>
  leaveShard(shard: number): Promise<void>
  /** Never rejects. Resolves when the shard is closed, or its worker is gone. */
  dropShard(shard: number): Promise<void>
  setRoutes(routes: RouteTable): void
}
