/**
 * The last attempts to deliver over one queue's webhook, the number of attempts by outcome, and the last hour minute by
 * minute (delivery-history.ts). An operator reads them to
 * find out why a bot gets nothing. The log is in memory only; it survives the dispatcher and the bot's unloading
 * (attempt-logs.ts). Of the process it survives only what the health depends on (`stored`).
 *
 * It is a ring that grows to its full size: one typed array with six numbers per row, and the texts, which rows share. A
 * successful attempt is written into existing memory and allocates nothing.
 *
 *     | time | update id | status | duration | next retry | refused |     0 or NaN if unknown
 *
 * All times are wall time. An endpoint that refuses an update for good works as its bot wants, so this is no failure.
 *
 * An endpoint that was just set has no failures yet. Attempts from before `newEndpoint` remain readable but no longer
 * count for the health.
 */

import { recordOf } from '../record-of.ts'
import { webhookAttemptsKept } from '../limits.ts'
import { DeliveryHistory, type HistoryMinute } from './delivery-history.ts'
import type { StoredFailures } from '../shard/bot-record.ts'
import { webhookHealthRecentMs } from './limits.ts'

/**
 * How a delivery can end: the outcomes of an attempt, and `expired` for an update whose wait for another attempt ended.
 */
export const outcomes = [
  'delivered',
  'rejected',
  'timed_out',
  'connection_failed',
  'tls_failed',
  'refused_for_good',
  'expired',
] as const

/** One of the outcomes. */
export type Outcome = (typeof outcomes)[number]
/** The outcome of one attempt. */
export type AttemptOutcome = Exclude<Outcome, 'expired'>
/** A number for each outcome. */
export type OutcomeCounts = Readonly<Record<Outcome, number>>

/** One attempt. All fields except the texts are numbers, so that one object can be filled repeatedly. */
export interface Attempt {
  /** When the attempt ended. */
  atMs: number
  /** 0 for a connection whose update was taken over by another connection. */
  updateId: number
  /** The HTTP status; 0 without a response. */
  status: number
  durationMs: number
  /** The next retry; equal to `atMs` for an immediate retry, NaN without one. */
  nextRetryMs: number
  /** Undefined if there was no address to connect to. */
  address: string | undefined
  /** Undefined for a success. */
  error: string | undefined
}

/** How many attempts were made lately, and how they ended. All others succeeded. */
export interface RecentAttempts {
  readonly attempts: number
  readonly failures: number
  /** Updates that the endpoint has refused for good. */
  readonly refusals: number
}

/** The attempts of one queue. */
export class AttemptLog {
  #numbers = new Float64Array(rowsMin * columns)
  #addresses: (string | undefined)[] = []
  #errors: (string | undefined)[] = []
  #rows = rowsMin
  /** The number of attempts ever written. */
  #count = 0
  /** The value of `#count` when the present endpoint was set. */
  #endpointFrom = 0
  readonly #outcomes = new Float64Array(outcomes.length)
  /** Created on first use: most bots have no deliveries. */
  #history: DeliveryHistory | undefined
  #lastSuccessMs: number | undefined
  #failuresInRow = 0
  #failingSinceMs: number | undefined
  #isRestored = false
  /** The number of the attempt that failed last, as `#count` counts; -1 if none has. */
  #lastFailure = -1
  #lastError: string | undefined
  #lastErrorMs: number | undefined

  /** When this endpoint last took an update; undefined if it has not. */
  get lastSuccessMs(): number | undefined {
    return this.#lastSuccessMs
  }

  /** The number of failures since the last success of this endpoint. */
  get failuresInRow(): number {
    return this.#failuresInRow
  }

  /** Whether there may have been more, because an earlier process has stored this number some time before its end. */
  get areFailuresAtLeast(): boolean {
    return this.#isRestored
  }

  /** When the first of those failures was. */
  get failingSinceMs(): number | undefined {
    return this.#failingSinceMs
  }

  /** The error of this endpoint's last failure, and when it was. */
  get lastError(): string | undefined {
    return this.#lastError
  }

  get lastErrorMs(): number | undefined {
    return this.#lastErrorMs
  }

  /** Counts deliveries that ended in this way, without writing an attempt. */
  count(outcome: Outcome, atMs: number, count = 1): void {
    const index = indexOf[outcome]
    this.#outcomes[index] = (this.#outcomes[index] ?? 0) + count
    this.#history ??= new DeliveryHistory(outcomes.length)
    this.#history.count(index, atMs, count)
  }

  /** Counts updates that were delivered this long after they were stored. */
  addDelivery(atMs: number, delayMs: number, count: number): void {
    this.#history ??= new DeliveryHistory(outcomes.length)
    this.#history.addDelivery(atMs, delayMs, count)
  }

  /** Returns how often each outcome occurred. */
  counts(): OutcomeCounts {
    return recordOf(outcomes, (outcome) => this.#outcomes[indexOf[outcome]] ?? 0)
  }

  /** Writes an attempt and counts its outcome. The log copies the object. */
  add(attempt: Attempt, outcome: AttemptOutcome): void {
    this.count(outcome, attempt.atMs)
    if (attempt.status !== 0) this.#history?.addResponse(attempt.atMs, attempt.durationMs)
    this.#write(attempt, outcome)
    if (outcome === 'delivered' || outcome === 'refused_for_good') {
      this.#failuresInRow = 0
      this.#failingSinceMs = undefined
      this.#isRestored = false
    } else {
      this.#lastFailure = this.#count - 1
      if (this.#failuresInRow++ === 0) this.#failingSinceMs = attempt.atMs
    }
  }

  /** What is stored of the failures of this endpoint; undefined if there was none, or if it is long ago. */
  stored(): StoredFailures | undefined {
    if (this.#lastFailure < Math.max(this.#count - this.#rows, this.#endpointFrom)) return undefined
    const {
      atMs,
      updateId,
      status,
      durationMs,
      address,
      error = '',
    } = this.#read(this.#lastFailure)
    const last = { atMs, updateId, status, durationMs, error }
    const [sinceMs, lastSuccessMs] = [this.#failingSinceMs, this.#lastSuccessMs]
    return {
      inRow: this.#failuresInRow,
      ...(sinceMs === undefined ? {} : { sinceMs }),
      ...(lastSuccessMs === undefined ? {} : { lastSuccessMs }),
      last: address === undefined ? last : { ...last, address },
    }
  }

  /** Takes over what an earlier process has stored, into a new log. Its outcomes are not counted. */
  restore({ inRow, sinceMs, lastSuccessMs, last }: StoredFailures): void {
    this.#write({ ...last, address: last.address, nextRetryMs: Number.NaN }, 'rejected')
    this.#lastFailure = this.#count - 1
    this.#failuresInRow = inRow
    this.#failingSinceMs = sinceMs
    this.#lastSuccessMs = lastSuccessMs
    this.#isRestored = inRow > 0
  }

  #write(attempt: Attempt, outcome: AttemptOutcome): void {
    if (this.#count >= this.#rows && this.#rows < webhookAttemptsKept) this.#grow()
    const row = this.#count++ % this.#rows
    const at = row * columns
    const numbers = this.#numbers
    numbers[at] = attempt.atMs
    numbers[at + 1] = attempt.updateId
    numbers[at + 2] = attempt.status
    numbers[at + 3] = attempt.durationMs
    numbers[at + 4] = attempt.nextRetryMs
    numbers[at + 5] = outcome === 'refused_for_good' ? 1 : 0
    this.#addresses[row] = attempt.address
    if (attempt.error === undefined) {
      this.#errors[row] = undefined
      this.#lastSuccessMs = attempt.atMs
    } else {
      this.#errors[row] = attempt.error
      this.#lastError = attempt.error
      this.#lastErrorMs = attempt.atMs
    }
  }

  /** Returns the minutes of the last hour that had deliveries, oldest first. The counts have the order of `outcomes`. */
  lastHour(nowMs: number): readonly HistoryMinute[] {
    return this.#history?.minutes(nowMs) ?? []
  }

  /** Returns the stored text if it is equal. A failing endpoint mostly returns the same error, for thousands of keys. */
  shared(error: string): string {
    return this.#errors.find((kept) => kept === error) ?? error
  }

  /**
   * Reports that the bot has set or deleted its webhook, so the health starts over. Old attempts remain, because after a
   * webhook was given up for 410 responses its bot looks for the reason.
   */
  newEndpoint(): void {
    this.#endpointFrom = this.#count
    this.#lastSuccessMs = undefined
    this.#failuresInRow = 0
    this.#failingSinceMs = undefined
    this.#isRestored = false
    this.#lastError = undefined
    this.#lastErrorMs = undefined
  }

  /** Returns the last attempts, newest first. */
  latest(limit: number = webhookAttemptsKept): readonly Attempt[] {
    const first = Math.max(this.#count - Math.min(limit, this.#rows), 0)
    const attempts: Attempt[] = []
    for (let index = this.#count - 1; index >= first; index--) attempts.push(this.#read(index))
    return attempts
  }

  /**
   * Counts the attempts of this endpoint in the last 15 minutes, how many of them failed, and how many updates were refused
   * for good.
   */
  recent(nowMs: number): RecentAttempts {
    const first = Math.max(this.#count - this.#rows, this.#endpointFrom)
    let attempts = 0
    let failures = 0
    let refusals = 0
    for (let index = this.#count - 1; index >= first; index--) {
      const row = index % this.#rows
      if (nowMs - (this.#numbers[row * columns] ?? 0) > webhookHealthRecentMs) break
      attempts++
      if (this.#numbers[row * columns + 5] === 1) refusals++
      else if (this.#errors[row] !== undefined) failures++
    }
    return { attempts, failures, refusals }
  }

  #read(index: number): Attempt {
    const row = index % this.#rows
    const at = row * columns
    const [atMs = 0, updateId = 0, status = 0, durationMs = 0, nextRetryMs = Number.NaN] =
      this.#numbers.subarray(at, at + columns)
    const [address, error] = [this.#addresses[row], this.#errors[row]]
    return { atMs, updateId, status, durationMs, nextRetryMs, address, error }
  }

  /** Rows stay in place, because the ring grows before it wraps around. */
  #grow(): void {
    this.#rows = Math.min(this.#rows * 4, webhookAttemptsKept)
    const numbers = new Float64Array(this.#rows * columns)
    numbers.set(this.#numbers)
    this.#numbers = numbers
  }
}

const columns = 6
const rowsMin = 4
const indexOf = recordOf(outcomes, (_outcome, index) => index)
