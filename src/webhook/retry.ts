/**
 * When a failed delivery is tried again: immediately after the first failure, then after 2, 4, 8 ... s, up to a cap that
 * is drawn from 60..120 s each time, so that bots whose endpoints failed together do not return together. A Retry-After
 * header of the endpoint replaces this delay.
 */

/** What decides the delay before a retry. */
export interface Failure {
  /** How often this update has failed, including this time. */
  readonly failures: number
  /** The delay the endpoint asked for, as `parseRetryAfter` returns it. */
  readonly retryAfterMs: number | undefined
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
  if (failure.retryAfterMs !== undefined) return failure.retryAfterMs
  if (failure.failures <= 1) return 0
  const capMs = webhookRetryCapMsMin + random() * (webhookRetryCapMsMax - webhookRetryCapMsMin)
  // 2 ** 7 s is above any cap; without this limit the delay of an update that fails for long would reach Infinity.
  return Math.min(1_000 * 2 ** Math.min(failure.failures - 1, 7), capMs)
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
const imfDate = /^\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/
const rfc850Date = /^\w{6,9}, (\d{2})-(\w{3})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/
const asctimeDate = /^\w{3} (\w{3}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/

/** Parses the three date forms of RFC 9110. Returns NaN for anything else; a general date parser accepts far too much. */
function httpDateMs(text: string): number {
  const common = imfDate.exec(text) ?? rfc850Date.exec(text)
  const asctime = common === null ? asctimeDate.exec(text) : null
  const [day, month, year, ...time] =
    common?.slice(1) ??
    (asctime === null
      ? []
      : [asctime[2], asctime[1], asctime[6], asctime[3], asctime[4], asctime[5]])
  const monthIndex = months.indexOf(month ?? '')
  if (year === undefined || monthIndex < 0) return Number.NaN
  const fullYear = year.length === 2 ? 2_000 + Number(year) : Number(year)
  const [hours, minutes, seconds] = time.map(Number)
  return (
    utcMidnightMs(fullYear, monthIndex, Number(day)) +
    ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000
  )
}

/** Computes days since 1970 by the civil calendar, in milliseconds. The linter reserves Date for the clock. */
function utcMidnightMs(year: number, monthIndex: number, day: number): number {
  const shifted = monthIndex < 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * ((monthIndex + 10) % 12) + 2) / 5) + day - 1
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return (era * 146_097 + dayOfEra - 719_468) * 86_400_000
}
