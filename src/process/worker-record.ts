/** What the primary knows of the process that has the place of a worker. */

/** `down`: its process has ended, and another one is started in a moment. `ending`: no process is started any more. */
export const workerStates = ['down', 'starting', 'serving', 'ending'] as const

export type WorkerState = (typeof workerStates)[number]

export interface WorkerRecord {
  readonly state: WorkerState
  /** Of the process; 0 while there is none. */
  readonly pid: number
  /** The number of the process within its place. Every start and every reload uses the next one. */
  readonly generation: number
  /** Processes that were started because the one before ended or could not start. A reload is none. */
  readonly restarts: number
  /** When the process began to serve, in whole seconds of the machine's clock; 0 while it does not. */
  readonly servingSinceS: number
}
