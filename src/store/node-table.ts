/** The port to the rows of the nodes, which all nodes of a cluster share. */

/** A row of the table `node`. */
export interface NodeRow {
  readonly name: string
  /** One life of the node. */
  readonly boot: string
  /** Rises with every heartbeat. */
  readonly beat: string
  readonly address: string
  readonly workers: number
  readonly state: string
}

/** What identifies one life of a node. */
export interface NodeIdentity {
  readonly name: string
  readonly boot: string
}

/** The rows from before a heartbeat. */
export interface HeartbeatRead {
  /** Whether this node still had a row. */
  readonly isMember: boolean
  readonly nodes: readonly NodeRow[]
}

export interface NodeTable {
  /**
   * Adds one to the beat of a node, durably on the standbys too, and reads all rows. Rejects if that is not certain.
   */
  beat(node: NodeIdentity): Promise<HeartbeatRead>
  nodes(): Promise<readonly NodeRow[]>
  /** Adds the row of a node if there is no other row. Returns whether it was added. */
  joinAlone(node: Omit<NodeRow, 'beat' | 'state'>): Promise<boolean>
  /** Deletes the row of a node if its beat is still the same. */
  evict(row: Pick<NodeRow, 'name' | 'boot' | 'beat'>): Promise<void>
  /** Deletes the row of a node that has ended. */
  leave(node: NodeIdentity): Promise<void>
}
