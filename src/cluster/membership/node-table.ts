/** The port to the rows of the nodes, which all nodes of a cluster share. */
import type { NodeRow } from './membership.ts'

/** What identifies one life of a node. */
export interface NodeIdentity {
  readonly name: string
  readonly boot: string
}

export interface NodeTable {
  /** Adds one to the beat of a node and reads all rows. Rejects if that is not certain. */
  beat(
    node: NodeIdentity,
  ): Promise<{ readonly isMember: boolean; readonly nodes: readonly NodeRow[] }>
  nodes(): Promise<readonly NodeRow[]>
  /** Adds the row of a node if there is no other row. Returns whether it was added. */
  joinAlone(node: Omit<NodeRow, 'beat' | 'state'>): Promise<boolean>
  /** Deletes the row of a node if its beat is still the same. */
  evict(row: Pick<NodeRow, 'name' | 'boot' | 'beat'>): Promise<void>
  /** Deletes the row of a node that has ended. */
  leave(node: NodeIdentity): Promise<void>
}
