/**
 * The last attempts to deliver over one queue's webhook, the number of attempts by outcome, and the last hour minute by
 * minute (delivery-history.ts). An operator reads them to
 * find out why a bot gets nothing. The log survives the dispatcher and the bot's unloading (attempt-logs.ts). Of the end of the
 * process, the attempts survive (`record`, `restoreAttempts`) and what the health depends on (`stored`, `restore`).
 *
 * It is a ring that grows to its full size: one typed array with six numbers per row, and the texts, which rows share. A
 * successful attempt is written into existing memory and allocates nothing.
 *
 *     | time | update id | status | duration | next retry | refused |     0 or NaN if unknown
 *
 * All times are wall time. An endpoint that refuses an update for good works as its bot wants, so this is no failure.
 *
 * What responses said, their bodies and headers, has a bound for all logs of a worker (`AnswerRoom`), because endpoints decide how
 * much of it differs.
 *
 * An endpoint that was just set has no failures yet. Attempts from before `newEndpoint` remain readable but no longer
 * count for the health.
 */
import { recordOf } from '../../kit/record-of.ts'
import { webhookAttemptsKept } from '../../kit/limits.ts'
import { DeliveryHistory, type HistoryMinute } from '../delivery-history.ts'
import type { AttemptsRecord } from '../../shard/records/attempts-record.ts'
import type { StoredFailures } from '../../shard/records/bot-record.ts'
import { webhookHealthRecentMs } from '../limits.ts'
import { type Attempt, attemptsOf, attemptsRecord, type RecordedAttempt } from './attempt.ts'

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

/** How many characters the bodies and headers of responses take in all logs of a worker, and how many they may take. */
export interface AnswerRoom {
  used: number
  readonly max: number
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
  readonly #room: AnswerRoom
  #numbers = new Float64Array(rowsMin * columns)
  #addresses: (string | undefined)[] = []
  #errors: (string | undefined)[] = []
  /** The bodies and the headers of responses in turn: those of a row are at twice its number. */
  #answers: (string | undefined)[] = []
  /** The length of these texts, equal ones counted once. */
  #answerLength = 0
  /** Empty if no update has a trace. */
  #traceparents: (string | undefined)[] = []
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
  /** Whether it has only the last failure, which `restore` has found. */
  #isHealthOnly = false
  /** The number of the attempt that failed last, as `#count` counts; -1 if none has. */
  #lastFailure = -1
  #lastError: string | undefined
  #lastErrorMs: number | undefined
  #lastExpiredMs: number | undefined

  /** @param room - shared by all logs of a worker; without one there is no bound */
  constructor(room: AnswerRoom = { used: 0, max: Number.POSITIVE_INFINITY }) {
    this.#room = room
  }

  /** The number of attempts ever written. */
  get written(): number {
    return this.#count
  }

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

  /** When updates of this queue last expired; undefined if none have since the endpoint was set. */
  get lastExpiredMs(): number | undefined {
    return this.#lastExpiredMs
  }

  /** Counts deliveries that ended in this way, without writing an attempt. */
  count(outcome: Outcome, atMs: number, count = 1): void {
    if (outcome === 'expired') this.#lastExpiredMs = atMs
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
    this.#isHealthOnly = false
    const isRefused = outcome === 'refused_for_good'
    this.#write(attempt, isRefused)
    this.#note(attempt)
    this.#judge(this.#count - 1, attempt.atMs, outcome === 'delivered' || isRefused)
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

  /** Returns what is stored of the attempts. */
  record(): AttemptsRecord {
    return attemptsRecord(this.#kept())
  }

  /** Whether some attempt that is kept has failed, or its update was refused for good. */
  get hasErrors(): boolean {
    return this.#errors.some((error) => error !== undefined)
  }

  /** Whether another process has stored later attempts. */
  isBehind({ rows }: AttemptsRecord): boolean {
    return this.#isHealthOnly || (rows.at(-1)?.[0] ?? Number.NEGATIVE_INFINITY) > this.#newestMs
  }

  /** Takes over the attempts that another process has stored, in place of those here. Their outcomes are not counted. */
  restoreAttempts(record: AttemptsRecord): void {
    this.forgetAnswers()
    this.#isHealthOnly = false
    this.#count = 0
    this.#errors = []
    this.#traceparents = []
    this.#lastFailure = -1
    for (const attempt of attemptsOf(record)) this.#write(attempt, attempt.isRefused)
    this.newEndpoint()
  }

  /**
   * Takes over what another process has stored of the failures of this endpoint, after the attempts. They are not counted among
   * the outcomes.
   */
  restore({ inRow, sinceMs, lastSuccessMs, last }: StoredFailures): void {
    if (this.#count === 0) this.#isHealthOnly = true
    if (this.#newestMs < last.atMs) {
      const { address } = last
      this.#write({ ...last, address, nextRetryMs: Number.NaN }, false)
    }
    this.#failuresInRow = inRow
    this.#failingSinceMs = sinceMs
    this.#lastSuccessMs = lastSuccessMs
    this.#isRestored = inRow > 0
    // Attempts before the first of these failures may be those of an earlier endpoint.
    const fromMs = sinceMs ?? last.atMs
    this.#endpointFrom = this.#firstKept
    for (let index = this.#firstKept; index < this.#count; index++) {
      const attempt = this.#read(index)
      if (attempt.atMs < fromMs) {
        this.#endpointFrom = index + 1
        continue
      }
      this.#note(attempt)
      const isTaken = attempt.error === undefined || attempt.isRefused
      if (attempt.atMs > last.atMs) this.#judge(index, attempt.atMs, isTaken)
      else if (!isTaken) this.#lastFailure = index
    }
  }

  /** Forgets what responses said, because the room is needed or the log is not kept any more. */
  forgetAnswers(): void {
    this.#answers = []
    this.#room.used -= this.#answerLength
    this.#answerLength = 0
  }

  /** Whether an attempt for this update is kept. */
  has(updateId: number): boolean {
    for (let index = this.#firstKept; index < this.#count; index++) {
      if (this.#numbers[(index % this.#rows) * columns + 1] === updateId) return true
    }
    return false
  }

  /**
   * Forgets attempts, or their responses, which may repeat what was sent. What is counted stays.
   *
   * @param partOf - which part of an attempt is forgotten
   * @returns how many attempts were forgotten
   */
  forget(partOf: (attempt: Attempt) => 'all' | 'answer' | 'nothing'): number {
    const first = this.#firstKept
    const kept = this.#kept().map((attempt, nth) => ({ attempt, index: first + nth }))
    const left = kept.filter(({ attempt }) => partOf(attempt) !== 'all')
    this.#endpointFrom = left.filter(({ index }) => index < this.#endpointFrom).length
    this.forgetAnswers()
    this.#count = 0
    this.#addresses = []
    this.#errors = []
    this.#traceparents = []
    this.#lastFailure = -1
    for (const { attempt } of left) {
      const isWhole = partOf(attempt) === 'nothing'
      const withoutAnswer = { ...attempt, responseBody: undefined, responseHeaders: undefined }
      this.#write(isWhole ? attempt : withoutAnswer, attempt.isRefused)
      const hasFailed = attempt.error !== undefined && !attempt.isRefused
      if (hasFailed && this.#count > this.#endpointFrom) this.#lastFailure = this.#count - 1
    }
    return kept.length - left.length
  }

  #write(attempt: Attempt, isRefused: boolean): void {
    if (this.#count >= this.#rows && this.#rows < webhookAttemptsKept) this.#grow()
    const row = this.#count++ % this.#rows
    const at = row * columns
    const numbers = this.#numbers
    numbers[at] = attempt.atMs
    numbers[at + 1] = attempt.updateId
    numbers[at + 2] = attempt.status
    numbers[at + 3] = attempt.durationMs
    numbers[at + 4] = attempt.nextRetryMs
    numbers[at + 5] = isRefused ? 1 : 0
    this.#addresses[row] = attempt.address
    this.#errors[row] = attempt.error
    if (this.#traceparents.length > 0 || attempt.traceparent !== undefined) {
      this.#traceparents[row] = attempt.traceparent
    }
    const { responseBody: body, responseHeaders: headers } = attempt
    if (this.#answerLength > 0 || body !== undefined || headers !== undefined) {
      this.#writeAnswer(row, [body, headers])
    }
  }

  #writeAnswer(row: number, texts: readonly (string | undefined)[]): void {
    const first = row * texts.length
    for (const nth of texts.keys()) this.#dropText(first + nth)
    const added = texts.reduce(
      (sum, text) => sum + (this.#answers.includes(text) ? 0 : (text?.length ?? 0)),
      0,
    )
    // Each webhook keeps the newest of them in any case.
    if (added > 0 && this.#room.used + added > this.#room.max) this.forgetAnswers()
    for (const [nth, text] of texts.entries()) this.#keepText(first + nth, text)
  }

  #dropText(place: number): void {
    const before = this.#answers[place]
    this.#answers[place] = undefined
    if (before !== undefined && !this.#answers.includes(before)) this.#useRoom(-before.length)
  }

  /** Equal texts are kept once, because a failing endpoint mostly answers the same. */
  #keepText(place: number, text: string | undefined): void {
    if (text === undefined) return
    const kept = this.#answers.find((other) => other === text)
    if (kept === undefined) this.#useRoom(text.length)
    this.#answers[place] = kept ?? text
  }

  #useRoom(length: number): void {
    this.#answerLength += length
    this.#room.used += length
  }

  #note({ atMs, error }: Attempt): void {
    if (error === undefined) {
      this.#lastSuccessMs = atMs
    } else {
      this.#lastError = error
      this.#lastErrorMs = atMs
    }
  }

  /** @param isTaken - whether the endpoint works as its bot wants */
  #judge(index: number, atMs: number, isTaken: boolean): void {
    if (isTaken) {
      this.#failuresInRow = 0
      this.#failingSinceMs = undefined
      this.#isRestored = false
    } else {
      this.#lastFailure = index
      if (this.#failuresInRow++ === 0) this.#failingSinceMs = atMs
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
    this.#lastExpiredMs = undefined
  }

  /** Returns the last attempts, newest first. */
  latest(limit: number = webhookAttemptsKept): readonly RecordedAttempt[] {
    return this.#kept(limit).toReversed()
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

  /** The number of the oldest attempt that is kept. */
  get #firstKept(): number {
    return Math.max(this.#count - this.#rows, 0)
  }

  get #newestMs(): number {
    return this.#count === 0 ? Number.NEGATIVE_INFINITY : this.#read(this.#count - 1).atMs
  }

  /** Returns the last attempts, oldest first. */
  #kept(limit: number = webhookAttemptsKept): readonly RecordedAttempt[] {
    const attempts: RecordedAttempt[] = []
    for (let index = Math.max(this.#firstKept, this.#count - limit); index < this.#count; index++) {
      attempts.push(this.#read(index))
    }
    return attempts
  }

  #read(index: number): RecordedAttempt {
    const row = index % this.#rows
    const at = row * columns
    const [atMs = 0, updateId = 0, status = 0, durationMs = 0, nextRetryMs = Number.NaN, refused] =
      this.#numbers.subarray(at, at + columns)
    const isRefused = refused === 1
    const [address, error] = [this.#addresses[row], this.#errors[row]]
    const [responseBody, responseHeaders] = [this.#answers[row * 2], this.#answers[row * 2 + 1]]
    const traceparent = this.#traceparents[row]
    return {
      ...(traceparent === undefined ? {} : { traceparent }),
      atMs,
      updateId,
      status,
      durationMs,
      nextRetryMs,
      address,
      error,
      responseBody,
      responseHeaders,
      isRefused,
    }
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
