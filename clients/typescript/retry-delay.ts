/**
 * Decides when a failed attempt is retried: after a random part of a delay that doubles, and not before the server's
 * Retry-After.
 *
 * The random part (full jitter) keeps producers that lost the same server from returning at the same moment.
 */
import { firstContactMs } from './limits.ts'
import type { ClientSettings } from './client-options.ts'
import type { PostboteClientError } from './postbote-client-error.ts'

/** A failed attempt, as far as the retry depends on it. */
export interface FailedAttempt {
  readonly error: PostboteClientError
  /** Number of attempts so far, from 1. */
  readonly attempt: number
  /** Whether carrying out the call twice has the same effect as once: it has an idempotency key, or it only reads. */
  readonly isRepeatable: boolean
  /** For how long the client has tried to reach the server; undefined once it has reached it. */
  readonly unreachedMs: number | undefined
}

/**
 * A longer Retry-After is reported to the caller instead of waited for. Chosen: a caller expects its call to end within a
 * minute or so.
 */
const clientRetryAfterSMax = 60

/**
 * Returns the time until the next attempt.
 *
 * @param failed - The error, the number of attempts and whether the call is repeatable.
 * @param settings - The number of retries and the bounds of the delay.
 * @param random - Returns a number from 0 up to, but not including, 1.
 * @returns Milliseconds, or undefined if there is no retry: the error is final, the retries are used up, the outcome is
 *   unknown and the call not repeatable, Retry-After is longer than `clientRetryAfterSMax`, or the server was never reached.
 */
export function retryDelayMs(
  { error, attempt, isRepeatable, unreachedMs }: FailedAttempt,
  settings: ClientSettings,
  random: () => number,
): number | undefined {
  const { retries, retryDelayMsMin, retryDelayMsMax } = settings
  if (!error.isRetryable || attempt > retries) return undefined
  if (error.isOutcomeUnknown && !isRepeatable) return undefined
  const { retryAfterS = 0 } = error
  if (retryAfterS > clientRetryAfterSMax) return undefined
  // TOO_MANY_KEYS lasts until the end of the UTC day. Only the response to a single push tells how long that is.
  if (error.code === 'TOO_MANY_KEYS' && retryAfterS === 0) return undefined
  const ceilingMs = Math.min(retryDelayMsMax, retryDelayMsMin * 2 ** (attempt - 1))
  const delayMs = retryAfterS * 1_000 + random() * ceilingMs
  return unreachedMs !== undefined && unreachedMs + delayMs > firstContactMs ? undefined : delayMs
}
