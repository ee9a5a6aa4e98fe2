/** What a node says about itself for GET /v1/nodes. Nodes pass it to each other as JSON. */
import type { NodeState as RowState } from '../store/node-table.ts'
import type { nodeStates, shardStates, workerStates } from '../kit/states.ts'

export type NodeState = (typeof nodeStates)[number]
export type ShardState = (typeof shardStates)[number]

/** A node with its workers, and the shards that it has. */
export interface NodeReport {
  readonly name: string
  readonly state: NodeState
  readonly version: string
  readonly uptimeS: number
  /** Since the last heartbeat that the database acknowledged; of several databases the longest time. */
  readonly heartbeatAgeMs?: number | undefined
  /** How far its clock is ahead of the database's; of several databases the largest difference. */
  readonly clockSkewMs?: number | undefined
  readonly workers: readonly WorkerReport[]
  readonly shards: readonly ReportedShard[]
}

/** The process that has the place of a worker. */
export interface WorkerReport {
  readonly worker: number
  readonly state: (typeof workerStates)[number]
  readonly pid?: number | undefined
  readonly generation: number
  readonly restarts: number
  readonly uptimeS?: number | undefined
  readonly loopDelayP99Us: number
  readonly loopDelayMaxUs: number
}

/** A shard of a node. */
export interface ReportedShard {
  readonly shard: number
  /** Null if its node is unreachable. */
  readonly worker: number | null
  readonly state: ShardState
}

/** A node of the cluster, in all databases that it is a member of. */
export interface ClusterMember {
  readonly name: string
  /** `leaving` if it hands its shards over in one of the databases at least. */
  readonly state: RowState
  /** The shards that it has. */
  readonly shards: readonly number[]
}
