/**
 * The words for the states of bots, of servers and of checks that answers have. A new state of a bot also needs its rule:
 * delivery/attempts/health.ts or features/fleet/fleet-status.ts.
 */

/** The health of a queue. */
export const healthWords = [
  'healthy',
  'degraded',
  'behind',
  'failing',
  'paused',
  'unpolled',
] as const

/** The state of a queue in one word. */
export type Health = (typeof healthWords)[number]

/** The states that a list of bots can select. */
export const fleetStates = [
  'healthy',
  'degraded',
  'behind',
  'failing',
  'unpolled',
  'paused',
  'stuck',
  'idle',
  'conflict',
] as const
export type FleetState = (typeof fleetStates)[number]

/** What a list of bots can be sorted by, highest first. */
export const fleetSorts = ['pending', 'oldest_age', 'dead_letters'] as const
export type FleetSort = (typeof fleetSorts)[number]

/** The steps of a check of an endpoint, in their order. */
export const checkSteps = ['name', 'addresses', 'connection', 'tls', 'post'] as const
export type CheckStepName = (typeof checkSteps)[number]
/** How a step can end. */
export const checkStates = ['ok', 'failed', 'skipped'] as const

/** `starting`: its workers do not serve yet. `no database`: none of its databases responds, so it may not serve. `unreachable`: it does not answer other nodes. */
export const nodeStates = ['starting', 'serving', 'leaving', 'no database', 'unreachable'] as const
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
