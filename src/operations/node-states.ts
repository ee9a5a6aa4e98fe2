/** The states of nodes, workers and shards in GET /v1/nodes. */

/** `no database`: none of its databases responds, so it may not serve. `unreachable`: it does not answer other nodes. */
export const nodeStates = ['serving', 'leaving', 'no database', 'unreachable'] as const
/** `unknown`: its node is unreachable. The other states are those of docs/use/api.md. */
export const shardStates = [
  'serving',
  'starting',
  'checking',
  'broken',
  'no database',
  'unknown',
] as const

/**
 * As the primary records them: `down` until the next process is started, `ending` when none is started any more. A process
 * that serves and whose event loop does not turn is `hanging`.
 */
export const workerStates = ['serving', 'hanging', 'starting', 'down', 'ending'] as const
