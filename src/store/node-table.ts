/** The port to the rows of nodes and shards, which all nodes of a cluster share. */

/**
 * A node that is starting has no worker yet that serves: it takes what has no owner once it has, and nothing is handed over
 * to it before. One that is leaving hands its shards over and takes none.
 *
 * The rows hold these words. A node of an earlier version that reads `starting` takes it for neither of the other two: it
 * hands nothing over to such a node.
 */
export type NodeState = 'starting' | 'serving' | 'leaving'

/** How a node's clocks differ from the database's, in ms. */
export interface NodeClock {
  /** How far the wall clock of the node is ahead. */
  readonly skewMs: number
  /** How far the clock of the shards is ahead, while it follows a jump of the database's (database-clock.ts). */
  readonly lagMs: number
}

/** A row of the table `node`. */
export interface NodeRow {
  readonly name: string
  /** One life of the node. */
  readonly boot: string
  /** Rises with every heartbeat. */
  readonly beat: string
  /** Where other nodes reach this one; empty if they cannot, and then it must be the only one. */
  readonly address: string
  readonly workers: number
  readonly state: NodeState
  /** As of its last heartbeat; absent before, and from a node of an earlier version. */
  readonly clock?: NodeClock
}

/** Whether a node can take shards from others. One without an address cannot be reached for requests. */
export function mayTake({ state, address }: Pick<NodeRow, 'state' | 'address'>): boolean {
  return state === 'serving' && address !== ''
}

/** A row of the table `shard`: its owner, and its epoch, which rises with every claim. */
export interface ShardRow {
  readonly shard: number
  readonly epoch: string
  /** The name of the node that owns the shard or owned it last; empty before the first claim. */
  readonly node: string
  /** The life of that node. */
  readonly boot: string
}

/** What identifies one life of a node. */
export interface NodeIdentity {
  readonly name: string
  readonly boot: string
}

/** All rows, of the same moment. */
export interface ClusterRows {
  readonly nodes: readonly NodeRow[]
  /** In the order of their numbers. */
  readonly shards: readonly ShardRow[]
}

/** The rows from before a heartbeat. */
export interface HeartbeatRead extends ClusterRows {
  /** Whether this node still had a row. */
  readonly isMember: boolean
  /** The life of the server that responded (`StoreEngine.databaseIsAt`). */
  readonly server?: string
  /** The wall clock of the database, in ms since 1970. */
  readonly databaseMs?: number
}

/** What a node gives for its row. */
export type JoiningNode = Omit<NodeRow, 'beat' | 'state' | 'clock'>

/** What an eviction compares: a row whose beat has moved stays. */
export type SeenNode = Pick<NodeRow, 'name' | 'boot' | 'beat'>

/**
 * Why a node cannot join beside another one, and the row of that one. Nodes without an address cannot have others beside
 * them.
 */
export interface JoinObstacle {
  readonly reason: 'name taken' | 'other without address' | 'self without address'
  readonly row: NodeRow
}

/** Why a node did not join. It can try again at once if the table was busy. */
export type JoinRefusal = JoinObstacle | { readonly reason: 'busy' }

/**
 * The rows of nodes and shards. Every method rejects if its outcome is unknown. Changes are durable on the standbys of the
 * database, too, when a method resolves.
 */
export interface NodeTable {
  /**
   * Adds one to the beat of a node, and reads all rows in the same round trip.
   *
   * @param clock - what the last heartbeat found; undefined for the first one
   */
  beat(node: NodeIdentity, clock?: NodeClock): Promise<HeartbeatRead>
  /** Reads all rows. */
  read(): Promise<ClusterRows>
  /**
   * Adds the row of a node, whose state is `starting`, unless a row is in its way (join-obstacles.ts).
   *
   * @param replaced - a row that is removed in the same moment, if its beat is still the same. Other nodes never see the
   *   shards of a restarted node without a node of this name, so they leave them to it.
   * @returns why the node did not join, and then nothing was changed; undefined if it joined
   */
  join(node: JoiningNode, replaced?: SeenNode): Promise<JoinRefusal | undefined>
  /** Deletes the row of a node if its beat is still the same. Returns whether that was done. */
  evict(row: SeenNode): Promise<boolean>
  /** Deletes the row of a node that has ended. */
  leave(node: NodeIdentity): Promise<void>
  /** The workers of this node serve: a node that is `starting` is `serving` from now on. Any other state stays. */
  started(node: NodeIdentity): Promise<void>
  /** The same, back: the node was told to serve before its workers do. */
  notStarted(node: NodeIdentity): Promise<void>
  /** Returns whether there is a node with this name. */
  setState(name: string, state: NodeState): Promise<boolean>
  /**
   * Makes another node the owner of a shard that `from` owns and has closed, if the other one is serving. The epoch of the
   * shard rises.
   *
   * @returns whether that was done; if not, nothing was changed
   */
  handOver(shard: number, from: NodeIdentity, to: NodeIdentity): Promise<boolean>
  /**
   * Called when another connection has changed the rows, other than by a heartbeat. It may also be missing, or be called
   * for nothing.
   */
  onChange: (() => void) | undefined
  close(): void
}
