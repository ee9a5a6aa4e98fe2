/**
 * Stores the last attempts of one queue, so that they survive the end of the process and a move of the shard.
 *
 * Each failure has them stored, once a second at most: an endpoint that fails on 40 connections writes no more than one that
 * fails on one. Successes alone write nothing: those since the last failure are stored only at a regular end of the process, if a
 * failure is still among the attempts. So a process that is killed loses them, and at most a second of failures.
 */
import type { Clock, Timer } from '../../kit/clock.ts'
import type { AttemptsRecord } from '../../shard/records/attempts-record.ts'
import type { AttemptLog } from './attempt-log.ts'

/** The attempts of a queue are stored this often at most. Chosen: as much as a crash may lose, and one small record. */
export const attemptsStoredPeriodMs = 1_000

export class AttemptKeeper {
  readonly #log: AttemptLog
  readonly #clock: Clock
  readonly #put: (record: AttemptsRecord) => void
  /** When they may be stored again, monotonic. */
  #dueMs = Number.NEGATIVE_INFINITY
  #timer: Timer | undefined
  /** How many attempts had been written when they were stored. */
  #stored: number

  /** @param put - has a record written */
  constructor(log: AttemptLog, clock: Clock, put: (record: AttemptsRecord) => void) {
    this.#log = log
    this.#clock = clock
    this.#put = put
    this.#stored = log.written
  }

  /** Reports that the log has one more attempt that failed. */
  failed(): void {
    if (this.#timer !== undefined) return
    const clock = this.#clock
    const waitMs = this.#dueMs - clock.monotonicMs()
    if (waitMs <= 0) this.#store()
    else this.#timer = clock.after(waitMs, () => this.#store())
  }

  /** Stores what is not stored yet. */
  close(): void {
    this.#timer?.cancel()
    const log = this.#log
    // After an erasure, the number may be as before.
    const isBehind = this.#timer !== undefined || log.written !== this.#stored
    if (isBehind && log.hasErrors) this.#store()
  }

  #store(): void {
    const log = this.#log
    this.#timer = undefined
    this.#dueMs = this.#clock.monotonicMs() + attemptsStoredPeriodMs
    this.#stored = log.written
    this.#put(log.record())
  }
}
