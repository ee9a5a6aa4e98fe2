/**
 * What the primary has a worker do, over the channel of control.ts. The comments say when a call resolves; worker.ts draws
 * the life that the calls lead through.
 */

/** What the primary tells a worker when it starts. Everything in it is cloned over the process channel. */
export interface WorkerStart {
  /** The worker's place, 0..workers-1; a successor has the same. */
  readonly worker: number
  readonly workers: number
  /** All shards of the server, and those this worker owns. */
  readonly shardCount: number
  readonly shards: readonly number[]
  /** Counts the processes in this place; the shard table names it. */
  readonly generation: number
  /** The directory of the sockets between workers. */
  readonly runDir: string
  /** The options of the server, as `runPrimary` got them. */
  readonly settings: unknown
  /** How the process before this one died, where damaged files can be the reason. */
  readonly crash?: WorkerCrash | undefined
  /** The server starts or is reloaded: shards that were set aside are tried again. */
  readonly triesAgain?: boolean
}

/** The death of a worker by an assertion or a fault of memory. */
export interface WorkerCrash {
  readonly signal: string
  /** How many in a row of this place have died so, this one included. */
  readonly inARow: number
}

/** The control interface of a worker. */
export interface WorkerControl {
  /** Answers: the event loop turns. */
  ping(): Promise<void>
  /** Loads and makes all that needs no shards; its predecessor may still have them. */
  prepare(start: WorkerStart): Promise<void>
  /** Resolves when the worker serves its shards and its peers reach it. */
  serve(): Promise<void>
  /** Serves on; resolves when the shards can change hands quickly. */
  settle(): Promise<void>
  /** Resolves when the shards are closed. Requests wait for the successor from its call on. */
  leave(): Promise<void>
  /** Serves again after `settle` or `leave`; `crash` is how its successor died, if it did. */
  resume(crash?: WorkerCrash): Promise<void>
  /** The successor serves. This worker exits when its connections have ended. */
  retire(): Promise<void>
  /** Another worker has been replaced. */
  forgetPeer(worker: number): Promise<void>
  /** Resolves when no request is being answered any more, or after `drainMs`. */
  drain(): Promise<void>
  close(): Promise<void>
}
