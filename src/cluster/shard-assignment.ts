import type { RouteTable } from './routes.ts'

/** A shard that a node has, or that nobody has: it is claimed when it is opened. */
export interface ShardOpening {
  readonly shard: number
  /** The life of the node. */
  readonly boot: string
}

/** What a node has in its database. */
export interface ShardAssignment {
  /** The shards that this node has. */
  openings(): readonly ShardOpening[]
  /** Whether this node has a shard. */
  has(shard: number): boolean
  /** Where all shards are. */
  routes(): RouteTable
}
