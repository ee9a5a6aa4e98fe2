/**
 * The attempt logs of a worker's queues, limited to those used last. A log must survive its dispatcher and the unloading
 * of its bot, because operators ask later why nothing arrives. Callers keep a reference because this cache may evict the
 * log; they return it with `keep`.
 */
import type { AttemptsRecord } from '../../shard/records/attempts-record.ts'
import type { StoredFailures } from '../../shard/records/bot-record.ts'
import { mib } from '../../kit/limits.ts'
import { setLast } from '../../kit/set-last.ts'
import { webhookHealthRecentMs } from '../limits.ts'
import { AttemptLog, type AnswerRoom } from './attempt-log.ts'

/**
 * The attempts of this many webhooks are kept per worker: 66 MB if all of them are busy and failing, of which 26 MB are
 * for their last hour (`deliveryHistoryMinutes`).
 */
export const webhookAttemptLogsMax = 10_000
/**
 * The bodies and headers of responses in all these logs have at most this many characters, and those of one response for each log
 * beyond that. Chosen: 330 webhooks whose last 50 responses all differ; most failing ones repeat theirs, which is kept once.
 */
export const webhookAnswerLengthMax = 32 * mib

/** What an earlier process has stored of a webhook. */
export interface StoredWebhook {
  readonly failures?: StoredFailures | undefined
  /** Undefined also if they were not read. */
  readonly attempts?: AttemptsRecord | undefined
}

export class AttemptLogs {
  readonly #max: number
  readonly #room: AnswerRoom = { used: 0, max: webhookAnswerLengthMax }
  /** The most recently used log is last. */
  readonly #logs = new Map<number, AttemptLog>()

  constructor(max: number = webhookAttemptLogsMax) {
    this.#max = max
  }

  /** Returns the log of a queue. Creates it if there is none. */
  of(queue: number): AttemptLog {
    const log = this.#logs.get(queue) ?? new AttemptLog(this.#room)
    this.keep(queue, log)
    return log
  }

  /**
   * Takes over what an earlier process has stored, if there is no log and it still matters, or if it is later than the log: a shard
   * may have been with another process in the meantime.
   */
  restore(queue: number, { failures, attempts }: StoredWebhook, nowMs: number): void {
    const log = this.#logs.get(queue)
    if (log !== undefined && (attempts === undefined || !log.isBehind(attempts))) return
    const health = matters(failures, nowMs) ? failures : undefined
    if (attempts === undefined && health === undefined) return
    const restored = log ?? this.of(queue)
    if (attempts !== undefined) restored.restoreAttempts(attempts)
    if (health !== undefined) restored.restore(health)
  }

  /** Stores a log as the one used last. */
  keep(queue: number, log: AttemptLog): void {
    const oldest = setLast(this.#logs, [queue, log], this.#max)
    if (oldest !== undefined) this.forget(oldest)
  }

  /** Returns a log for reading. Creates none. */
  find(queue: number): AttemptLog | undefined {
    return this.#logs.get(queue)
  }

  forget(queue: number): void {
    this.#logs.get(queue)?.forgetAnswers()
    this.#logs.delete(queue)
  }
}

/** Whether failures say something about the health of a webhook now. */
function matters(failures: StoredFailures | undefined, nowMs: number): boolean {
  if (failures === undefined) return false
  return failures.inRow > 0 || nowMs - failures.last.atMs <= webhookHealthRecentMs
}
