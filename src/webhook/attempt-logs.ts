/**
 * The attempt logs of a worker's queues, those used last: a log must not end with its dispatcher or with the bot's place
 * in memory, for the question why nothing arrives is asked later. Who uses one holds it himself, since it may be put out
 * of here meanwhile, and brings it back when he is done.
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
    this.keep(queue, log)
    return log
  }

  /** As the one used last. */
  keep(queue: number, log: AttemptLog): void {
    this.#logs.delete(queue)
    this.#logs.set(queue, log)
    const [oldest] = this.#logs.keys()
    if (this.#logs.size > this.#max && oldest !== undefined) this.#logs.delete(oldest)
  }

  /** For reading: nothing is begun. */
  find(queue: number): AttemptLog | undefined {
    return this.#logs.get(queue)
  }

  forget(queue: number): void {
    this.#logs.delete(queue)
  }
}
