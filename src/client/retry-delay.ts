/**
 * When a failed attempt is repeated: after a random part of a time that doubles (full jitter: producers that lost the
 * same server do not come back at the same moment), and not before the server's Retry-After.
 */
import { clientRetryAfterSMax } from '../limits.ts'
import type { ClientSettings } from './client-options.ts'
import type { PostboteClientError } from './postbote-client-error.ts'

export interface FailedAttempt {
  readonly error: PostboteClientError
  /** Attempts so far, from 1. */
  readonly attempt: number
  /** The same again would change nothing: it has an idempotency key, or only reads. */
  readonly isRepeatable: boolean
}

/** Milliseconds until the next attempt; undefined where there is to be none. */
export function retryDelayMs(
  { error, attempt, isRepeatable }: FailedAttempt,
  settings: ClientSettings,
  random: () => number,
): number | undefined {
  const { retries, retryDelayMsMin, retryDelayMsMax } = settings
  if (!error.isRetryable || attempt > retries) return undefined
  if (error.isOutcomeUnknown && !isRepeatable) return undefined
  const { retryAfterS = 0 } = error
  if (retryAfterS > clientRetryAfterSMax) return undefined
  // It ends with the UTC day, and only the answer to a single push says how long that is.
  if (error.code === 'TOO_MANY_KEYS' && retryAfterS === 0) return undefined
  const ceilingMs = Math.min(retryDelayMsMax, retryDelayMsMin * 2 ** (attempt - 1))
  return retryAfterS * 1_000 + random() * ceilingMs
}
