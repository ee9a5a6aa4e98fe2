/**
 * Records the result of each attempt of one dispatcher: in the queue's log, which getWebhookInfo also reads, and in the
 * worker's counters. A success costs a few writes into existing memory.
 */
import type { Clock } from '../../kit/clock.ts'
import type { Attempt } from './attempt.ts'
import type { AttemptLog, AttemptOutcome } from './attempt-log.ts'
import { isFailing } from './health.ts'
import { RecoveryWatch } from './recovery-watch.ts'
import type { Moment } from '../state.ts'

export interface DeliveryCounters {
  add(outcome: AttemptOutcome, n: number): void
  /** An attempt has ended, in any way. */
  took?(durationMs: number): void
}

/** What was attempted: a delivery on a connection, or the opening of a connection. */
export interface TriedConnection {
  /** Undefined if there was no address to connect to. */
  readonly address: string | undefined
  /** Monotonic. */
  readonly startedMs: number
  /** 0 without a response. */
  readonly status: number
  /** The beginning of the body of a response that was no success, without secrets. */
  readonly responseBody?: string | undefined
  /** Its headers (response-headers.ts). */
  readonly responseHeaders?: string | undefined
  /** The place in its trace that the endpoint got. */
  readonly traceparent?: string | undefined
}

export interface FailedAttempt {
  readonly on: TriedConnection
  /** Undefined for a connection whose update was taken over by another connection. */
  readonly updateId: number | undefined
  readonly outcome: AttemptOutcome
  readonly error: string
  /** Monotonic; undefined if there is no retry. */
  readonly nextRetryMs: number | undefined
}

/** Who else learns of attempts. */
export interface AttemptRecorderOptions {
  readonly clock: Clock
  readonly counters?: DeliveryCounters | undefined
  /** The webhook fails from now on, with this error. */
  onFailing?(error: string): void
  /** The webhook has failed, and for some time or some updates it has not (recovery-watch.ts). */
  onRecovered?(): void
  /** The health may have changed: an attempt has failed, or the webhook has recovered. */
  onHealth?(): void
  /** The log has one more attempt. The object is reused. */
  onAttempt?(attempt: Readonly<Attempt>, outcome: AttemptOutcome): void
}

export class AttemptRecorder {
  readonly #log: AttemptLog
  readonly #options: AttemptRecorderOptions
  readonly #recovery: RecoveryWatch
  /** Reused for each attempt. */
  readonly #attempt: Attempt = {
    atMs: Number.NaN,
    updateId: 0,
    status: 0,
    durationMs: Number.NaN,
    nextRetryMs: Number.NaN,
    address: undefined,
    error: undefined,
    responseBody: undefined,
    responseHeaders: undefined,
    traceparent: undefined,
  }

  constructor(log: AttemptLog, options: AttemptRecorderOptions) {
    this.#log = log
    this.#options = options
    this.#recovery = new RecoveryWatch(
      options.clock,
      (error) => options.onFailing?.(error),
      () => options.onRecovered?.(),
    )
  }

  /** Nothing more is attempted. */
  close(): void {
    this.#recovery.close()
  }

  /** Returns one shared object for equal texts, because thousands of waiting keys may refer to it. */
  shared(error: string): string {
    return this.#log.shared(error)
  }

  /** Records a success in the log. The counters get successes in batches from `removed`. */
  delivered(on: TriedConnection, updateId: number, now: Moment): void {
    const attempt = this.#attempt
    this.#fill(on, now)
    attempt.updateId = updateId
    attempt.nextRetryMs = Number.NaN
    attempt.error = undefined
    attempt.responseBody = undefined
    attempt.responseHeaders = undefined
    this.#add('delivered')
  }

  failed(failed: FailedAttempt, now: Moment): void {
    const { on, updateId = 0, nextRetryMs = Number.NaN, outcome, error } = failed
    const attempt = this.#attempt
    this.#fill(on, now)
    attempt.updateId = updateId
    // Converts monotonic time to wall time. The result is never before the attempt itself.
    attempt.nextRetryMs = now.wallMs + (nextRetryMs - now.monotonicMs)
    attempt.error = error
    attempt.responseBody = on.responseBody
    attempt.responseHeaders = on.responseHeaders
    this.#add(outcome)
    this.#options.counters?.add(outcome, 1)
  }

  removed(deliveredCount: number): void {
    this.#options.counters?.add('delivered', deliveredCount)
  }

  #add(outcome: AttemptOutcome): void {
    const wasFailing = isFailing(this.#log)
    if (wasFailing) this.#recovery.toldFailing()
    this.#log.add(this.#attempt, outcome)
    const error = this.#attempt.error ?? ''
    this.#recovery.attempted(outcome, { error, fails: isFailing(this.#log) })
    if (outcome !== 'delivered' || wasFailing) this.#options.onHealth?.()
    this.#options.onAttempt?.(this.#attempt, outcome)
  }

  #fill(on: TriedConnection, now: Moment): void {
    const attempt = this.#attempt
    attempt.atMs = now.wallMs
    attempt.status = on.status
    attempt.durationMs = Math.max(now.monotonicMs - on.startedMs, 0)
    attempt.address = on.address
    attempt.traceparent = on.traceparent
    this.#options.counters?.took?.(attempt.durationMs)
  }
}
