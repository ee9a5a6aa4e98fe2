/**
 * The attempt logs of all queues of a worker, those used last: a log must not end with its dispatcher or with the
 * bot's place in memory, for the question why nothing arrives is asked later. A dispatcher holds its own log and
 * writes on where it was put out of here meanwhile.
 */

import { webhookAttemptLogsMax } from '../limits.ts'
import { AttemptLog } from './attempt-log.ts'

export class AttemptLogs {
  readonly #max: number
  /** Those used last at the end. */
  readonly #logs = new Map<number, AttemptLog>()

  constructor(max: number = webhookAttemptLogsMax) {
    this.#max = max
  }

  /** The log of a queue, begun where there is none. */
  of(queue: number): AttemptLog {
    const log = this.#logs.get(queue) ?? new AttemptLog()
    this.#logs.delete(queue)
    this.#logs.set(queue, log)
    if (this.#logs.size > this.#max) {
      for (const oldest of this.#logs.keys()) {
        this.#logs.delete(oldest)
        break
      }
    }
    return log
  }

  /** For reading: nothing is begun. */
  find(queue: number): AttemptLog | undefined {
    return this.#logs.get(queue)
  }

  forget(queue: number): void {
    this.#logs.delete(queue)
  }
}
