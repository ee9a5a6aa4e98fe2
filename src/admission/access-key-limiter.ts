/**
 * The limits of a key per second, as token buckets of `accessKeyBurstMs` (kit/token-bucket.ts), in which all processes of a
 * server count together (admission/shared-key-limits.ts). Who takes tokens in advance waits for them, and others
 * are refused meanwhile.
 */
import { PostboteError } from '../kit/errors.ts'
import { lackMs } from '../kit/token-bucket.ts'
import type { Access, KeyAccess } from '../api/access.ts'

export type LimitedThing = 'requests' | 'updates'

/** Counts what keys do. */
export interface AccessKeyLimiter {
  /**
   * Takes one token.
   *
   * @returns 0; or the milliseconds until there is one, and nothing was taken
   */
  take(access: KeyAccess, what: LimitedThing): number
  /**
   * Takes tokens for updates, in advance if they are not there yet.
   *
   * @returns the milliseconds until they are there
   */
  reserve(access: KeyAccess, count: number): number
}

/**
 * A key that was not used for a while may do at once what it may do in this time. Chosen: producers send in bursts, and a
 * second is what the limits are given in.
 */
const accessKeyBurstMs = 1_000

/** Returns how long the last token is in the future; 0 if it is there. */
export function waitOf(fullAtMs: number, nowMs: number): number {
  // Counts are kept in microseconds, so a smaller wait is an error of rounding.
  const waitMs = lackMs(fullAtMs, nowMs, accessKeyBurstMs)
  return waitMs > 0.002 ? waitMs : 0
}

/** Throws KEY_OVER_LIMIT if the key has used up what it may do per second. */
export function assertUnderLimit(
  limiter: AccessKeyLimiter,
  access: Access,
  what: LimitedThing,
): void {
  if (access === 'root') return
  const waitMs = limiter.take(access, what)
  if (waitMs === 0) return
  const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000))
  throw new PostboteError('KEY_OVER_LIMIT', { detail: `${what}_per_second`, retryAfterS })
}
