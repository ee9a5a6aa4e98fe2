/**
 * The attempt logs of a worker's queues, limited to those used last. A log must survive its dispatcher and the unloading
 * of its bot, because operators ask later why nothing arrives. Callers keep a reference because this cache may evict the
 * log; they return it with `keep`.
 */

import type { StoredFailures } from '../shard/bot-record.ts'
import { webhookHealthRecentMs } from './limits.ts'
import { AttemptLog } from './attempt-log.ts'

/**
 * The attempts of this many webhooks are kept per worker: 66 MB if all of them are busy and failing, of which 26 MB are
 * for their last hour (`deliveryHistoryMinutes`).
 */
export const webhookAttemptLogsMax = 10_000

export class AttemptLogs {
  readonly #max: number
  /** The most recently used log is last. */
  readonly #logs = new Map<number, AttemptLog>()

  constructor(max: number = webhookAttemptLogsMax) {
    this.#max = max
  }

  /** Returns the log of a queue. Creates it if there is none. */
  of(queue: number): AttemptLog {
    const log = this.#logs.get(queue) ?? new AttemptLog()
    this.keep(queue, log)
    return log
  }

  /** Creates the log of a queue from what an earlier process has stored, if there is no log and it still matters. */
  restore(queue: number, failures: StoredFailures | undefined, nowMs: number): void {
    if (failures === undefined || this.#logs.has(queue)) return
    const isRecent = nowMs - failures.last.atMs <= webhookHealthRecentMs
    if (failures.inRow > 0 || isRecent) this.of(queue).restore(failures)
  }

  /** Stores a log as the one used last. */
  keep(queue: number, log: AttemptLog): void {
    this.#logs.delete(queue)
    this.#logs.set(queue, log)
    const [oldest] = this.#logs.keys()
    if (this.#logs.size > this.#max && oldest !== undefined) this.#logs.delete(oldest)
  }

  /** Returns a log for reading. Creates none. */
  find(queue: number): AttemptLog | undefined {
    return this.#logs.get(queue)
  }

  forget(queue: number): void {
    this.#logs.delete(queue)
  }
}
