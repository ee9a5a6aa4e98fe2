/**
 * The last attempts to deliver over one queue's webhook, and how many there were by outcome: what an operator
 * looks at to learn why a bot gets nothing. In memory only; it outlives the dispatcher and the bot's unloading
 * (attempt-logs.ts), but not the process.
 *
 * A ring that grows to its size, five numbers a row, in one typed array; beside it the texts, which the rows share.
 * A row of a success writes into what is there and allocates nothing.
 *
 *     | time | update id | status | duration | next retry |     0 or NaN where unknown
 *
 * An endpoint that is set anew has failed nothing yet: what was before `newEndpoint` stays to be read here and
 * counts for the health no more.
 */

import { webhookAttemptsKept, webhookHealthRecentMs } from '../limits.ts'

/** How a delivery ended: an attempt, or (expired) the waiting for another one. */
export const outcomes = [
  'delivered',
  'rejected',
  'timed_out',
  'connection_failed',
  'tls_failed',
  'refused_for_good',
  'expired',
] as const

export type Outcome = (typeof outcomes)[number]
export type AttemptOutcome = Exclude<Outcome, 'expired'>
export type OutcomeCounts = Readonly<Record<Outcome, number>>

/** As it is written: in numbers throughout, so that one object can be filled again and again. */
export interface Attempt {
  /** Wall time; when its end was known. */
  atMs: number
  /** 0 for a connection whose update another one has taken over. */
  updateId: number
  /** 0 without an answer. */
  status: number
  durationMs: number
  /** Wall time; `atMs` where it is at once; NaN where there is none. */
  nextRetryMs: number
  /** Undefined where there was none to connect to. */
  address: string | undefined
  /** Undefined for a success. */
  error: string | undefined
}

export class AttemptLog {
  #numbers = new Float64Array(rowsMin * columns)
  #addresses: (string | undefined)[] = []
  #errors: (string | undefined)[] = []
  #rows = rowsMin
  /** Attempts ever written. */
  #count = 0
  /** `#count` when the present endpoint was set. */
  #endpointFrom = 0
  readonly #outcomes = new Float64Array(outcomes.length)
  #lastSuccessMs: number | undefined
  #failuresInRow = 0
  #failingSinceMs: number | undefined
  #lastError: string | undefined
  #lastErrorMs: number | undefined

  /** Of this endpoint: wall time, undefined without one. */
  get lastSuccessMs(): number | undefined {
    return this.#lastSuccessMs
  }

  /** Failures since the last success of this endpoint. */
  get failuresInRow(): number {
    return this.#failuresInRow
  }

  /** Wall time of the first of those failures. */
  get failingSinceMs(): number | undefined {
    return this.#failingSinceMs
  }

  /** What the last failure of this endpoint was. */
  get lastError(): string | undefined {
    return this.#lastError
  }

  /** Wall time of that failure. */
  get lastErrorMs(): number | undefined {
    return this.#lastErrorMs
  }

  count(outcome: Outcome, n = 1): void {
    const index = indexOf[outcome]
    this.#outcomes[index] = (this.#outcomes[index] ?? 0) + n
  }

  counts(): OutcomeCounts {
    return countsOf((outcome) => this.#outcomes[indexOf[outcome]] ?? 0)
  }

  /** Takes a copy. */
  add(attempt: Attempt, outcome: AttemptOutcome): void {
    this.count(outcome)
    if (this.#count >= this.#rows && this.#rows < webhookAttemptsKept) this.#grow()
    const row = this.#count++ % this.#rows
    const at = row * columns
    const numbers = this.#numbers
    numbers[at] = attempt.atMs
    numbers[at + 1] = attempt.updateId
    numbers[at + 2] = attempt.status
    numbers[at + 3] = attempt.durationMs
    numbers[at + 4] = attempt.nextRetryMs
    this.#addresses[row] = attempt.address
    if (attempt.error === undefined) {
      this.#errors[row] = undefined
      this.#lastSuccessMs = attempt.atMs
      this.#failuresInRow = 0
      this.#failingSinceMs = undefined
    } else {
      this.#errors[row] = attempt.error
      this.#lastError = attempt.error
      this.#lastErrorMs = attempt.atMs
      if (this.#failuresInRow++ === 0) this.#failingSinceMs = attempt.atMs
    }
  }

  /** The same text where it is kept already: an endpoint that fails says mostly the same, for thousands of keys. */
  shared(error: string): string {
    return this.#errors.find((kept) => kept === error) ?? error
  }

  /** The bot has set or deleted its webhook: the health begins anew. After a 410 for too long the bot looks for why. */
  newEndpoint(): void {
    this.#endpointFrom = this.#count
    this.#lastSuccessMs = undefined
    this.#failuresInRow = 0
    this.#failingSinceMs = undefined
    this.#lastError = undefined
    this.#lastErrorMs = undefined
  }

  /** The newest first. */
  latest(limit: number = webhookAttemptsKept): readonly Attempt[] {
    const first = Math.max(this.#count - Math.min(limit, this.#rows), 0)
    const attempts: Attempt[] = []
    for (let index = this.#count - 1; index >= first; index--) attempts.push(this.#read(index))
    return attempts
  }

  /** Attempts of this endpoint that are not long ago, and how many of them have failed. */
  recent(nowMs: number): { readonly attempts: number; readonly failures: number } {
    const first = Math.max(this.#count - this.#rows, this.#endpointFrom)
    let attempts = 0
    let failures = 0
    for (let index = this.#count - 1; index >= first; index--) {
      const row = index % this.#rows
      if (nowMs - (this.#numbers[row * columns] ?? 0) > webhookHealthRecentMs) break
      attempts++
      if (this.#errors[row] !== undefined) failures++
    }
    return { attempts, failures }
  }

  #read(index: number): Attempt {
    const row = index % this.#rows
    const at = row * columns
    const [atMs = 0, updateId = 0, status = 0, durationMs = 0, nextRetryMs = Number.NaN] =
      this.#numbers.subarray(at, at + columns)
    const [address, error] = [this.#addresses[row], this.#errors[row]]
    return { atMs, updateId, status, durationMs, nextRetryMs, address, error }
  }

  /** The ring has not yet come round when it grows, so rows stay where they are. */
  #grow(): void {
    this.#rows = Math.min(this.#rows * 4, webhookAttemptsKept)
    const numbers = new Float64Array(this.#rows * columns)
    numbers.set(this.#numbers)
    this.#numbers = numbers
  }
}

export function countsOf(countOf: (outcome: Outcome) => number): OutcomeCounts {
  const counts = Object.fromEntries(outcomes.map((outcome) => [outcome, countOf(outcome)]))
  // TypeScript forgets the names on the way through the list of pairs.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return counts as OutcomeCounts
}

const columns = 5
const rowsMin = 4
const indexOf = countsOf((outcome) => outcomes.indexOf(outcome))
