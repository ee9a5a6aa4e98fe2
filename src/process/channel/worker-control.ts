/**
 * The control calls that the primary makes to a worker, over the channel of control.ts. The comments say when each call
 * resolves; worker.ts draws the life of a worker through these calls.
 */
import type { NodeLinks } from '../node-links.ts'
import type { RouteTable } from '../routes.ts'
import type { ShardOpening } from '../shard-assignment.ts'

/** What the primary passes to a worker at its start. All of it is cloned over the process channel. */
export interface WorkerStart {
  /** The worker's place, 0..workers-1; a successor has the same one. */
  readonly worker: number
  readonly workers: number
  /** The number of shards of the server; `shards` lists those that this worker owns. */
  readonly shardCount: number
  readonly shards: readonly number[]
  /** The number of the process within this place, as the shard table shows it. */
  readonly generation: number
  /** The directory of the sockets between workers. */
  readonly runDir: string
  /** Where the shards are in the cluster; undefined if all are on this node. */
  readonly routes?: RouteTable | undefined
  /** Where the workers of this node accept links of other nodes; undefined if there are none. */
  readonly links?: NodeLinks | undefined
  /** The options of the server, as `runPrimary` got them. */
  readonly settings: unknown
  /** How the previous process of this place died, if damaged files can be the reason. */
  readonly crash?: WorkerCrash | undefined
  /** True if the server starts or is reloaded: the worker tries to open shards again that were set aside. */
  readonly triesAgain?: boolean
}

/** The death of a worker by an assertion or a memory fault. */
export interface WorkerCrash {
  readonly signal: string
  /** How many processes of this place have died this way in a row, including this one. */
  readonly inARow: number
}

/** The control interface of a worker. */
export interface WorkerControl {
  /** Resolves immediately, which proves that the event loop turns. */
  ping(): Promise<void>
  /** Loads and makes everything that needs no shards; the predecessor may still have them open. */
  prepare(start: WorkerStart): Promise<void>
  /**
   * Resolves when the worker serves its shards and its peers can reach it, with the numbers of the shards.
   *
   * @param openings - the shards that this node has in its database, if it uses one; otherwise the worker opens its own
   */
  serve(openings: readonly ShardOpening[]): Promise<readonly number[]>
  /** Resolves when the worker serves a shard of the database. Rejects if another node owns it. */
  openShard(opening: ShardOpening): Promise<void>
  /** Resolves when a shard of the database is closed; its requests wait for its next owner. */
  leaveShard(shard: number): Promise<void>
  /** Another node owns the shard: nothing of it is valid here. */
  dropShard(shard: number): Promise<void>
  /** Where the shards are in the cluster now. */
  setRoutes(routes: RouteTable): Promise<void>
  /** The worker goes on serving; the call resolves when the shards can change hands quickly. */
  settle(): Promise<void>
  /** Resolves when the shards are closed. Requests wait for the successor from the start of this call. */
  leave(): Promise<void>
  /** Serves again after `settle` or `leave`, as `serve` does. `crash` says how the successor died, if it died. */
  resume(openings: readonly ShardOpening[], crash?: WorkerCrash): Promise<readonly number[]>
  /** The successor serves now. This worker exits when its connections have ended. */
  retire(): Promise<void>
  /** Resolves when no request is in progress, or after `drainMs`. */
  drain(): Promise<void>
  close(): Promise<void>
}
