/**
 * When a failed delivery is tried again: immediately after the first failure, then after 2, 4, 8 ... s, up to a cap that
 * is drawn from 60..120 s each time, so that bots whose endpoints failed together do not return together. A Retry-After
 * header of the endpoint replaces this delay.
 */
import assert from 'node:assert/strict'
import { utcMs } from '../../kit/clock.ts'

/** What decides the delay before a retry. */
export interface Failure {
  /** How often this update has failed, including this time. */
  readonly failures: number
  /** The delay the endpoint asked for, as `parseRetryAfter` returns it. */
  readonly retryAfterMs: number | undefined
  /** What the operator has set for the bot in place of the usual delays: one for each failure, of which the last repeats. */
  readonly delaysS?: readonly number[] | undefined
}

/** The delay between attempts never exceeds a cap that is drawn at random each time, from this value. [ref] */
const webhookRetryCapMsMin = 60_000
/** The cap is drawn up to this value: the random range spreads the retries of many keys. [ref] */
const webhookRetryCapMsMax = 120_000

/**
 * Returns the delay before the next attempt, in milliseconds.
 *
 * @param random - returns numbers in [0, 1)
 */
export function retryDelayMs(failure: Failure, random: () => number): number {
  assert(failure.failures > 0, 'a retry follows a failure')
  if (failure.retryAfterMs !== undefined) return failure.retryAfterMs
  if (failure.delaysS !== undefined) return ownDelayMs(failure.failures, failure.delaysS, random)
  if (failure.failures <= 1) return 0
  const capMs = webhookRetryCapMsMin + random() * (webhookRetryCapMsMax - webhookRetryCapMsMin)
  // 2 ** 7 s is above any cap; without this limit the delay of an update that fails for long would reach Infinity.
  return Math.min(1_000 * 2 ** Math.min(failure.failures - 1, 7), capMs)
}

/** The last delay is spread as the usual cap is, so that bots whose endpoints failed together do not return together. */
function ownDelayMs(failures: number, delaysS: readonly number[], random: () => number): number {
  const delayMs = 1_000 * (delaysS[Math.min(failures, delaysS.length) - 1] ?? 0)
  return failures < delaysS.length ? delayMs : delayMs * (1 + random())
}

/** A Retry-After of a webhook counts up to this many seconds. [ref] */
const webhookRetryAfterSMax = 3_600

/**
 * Reads a Retry-After header (RFC 9110): seconds or a date.
 *
 * @param value - the header as received
 * @param nowMs - wall time in milliseconds
 * @returns milliseconds, at most an hour; undefined if the header is absent, cannot be parsed, or is not in the future
 */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined
  const text = value.trim()
  const delayMs = /^\d+$/.test(text) ? Number(text) * 1_000 : httpDateMs(text) - nowMs
  return delayMs > 0 ? Math.min(delayMs, webhookRetryAfterSMax * 1_000) : undefined
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
/** The three forms of RFC 9110. */
const dateForms = [
  /^\w{3}, (?<day>\d{2}) (?<month>\w{3}) (?<year>\d{4}) (?<time>\d{2}:\d{2}:\d{2}) GMT$/,
  /^\w{6,9}, (?<day>\d{2})-(?<month>\w{3})-(?<year>\d{2}) (?<time>\d{2}:\d{2}:\d{2}) GMT$/,
  /^\w{3} (?<month>\w{3}) (?<day>[ \d]\d) (?<time>\d{2}:\d{2}:\d{2}) (?<year>\d{4})$/,
]

/** Returns NaN for anything else than these forms; a general date parser accepts far too much. */
function httpDateMs(text: string): number {
  const form = dateForms.find((each) => each.test(text))
  const { day, month = '', year = '', time = '' } = form?.exec(text)?.groups ?? {}
  const monthIndex = months.indexOf(month)
  if (monthIndex < 0) return Number.NaN
  const fullYear = year.length === 2 ? 2_000 + Number(year) : Number(year)
  return utcMs([fullYear, monthIndex, Number(day), ...time.split(':').map(Number)])
}
