/**
 * The limits of a key per second, as token buckets of one second. A bucket is one number, the time at which it is full
 * again, so that all processes of a server can count in one word (cluster/shared-memory/shared-key-limits.ts).
 *
 *   fullAt <= now                       the bucket is full: `perSecond` tokens
 *   fullAt  = now + accessKeyBurstMs    the bucket is empty
 *   fullAt  > now + accessKeyBurstMs    tokens were taken in advance: their taker waits, and others are refused
 */
import { PostboteError } from '../errors.ts'
import type { Access, KeyAccess } from './access.ts'
import { accessKeyBurstMs } from './limits.ts'

export type LimitedThing = 'requests' | 'updates'

/** Counts what keys do. */
export interface KeyLimiter {
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

/** Returns when the bucket will be full after `count` tokens were taken from it. */
export function fullAfter(
  fullAtMs: number,
  { nowMs, count, perSecond }: Readonly<Record<'nowMs' | 'count' | 'perSecond', number>>,
): number {
  return Math.max(fullAtMs, nowMs) + (count * 1_000) / perSecond
}

/** Returns how long the last token is in the future; 0 if it is there. */
export function waitOf(fullAtMs: number, nowMs: number): number {
  // Counts are kept in microseconds, so a smaller wait is an error of rounding.
  const waitMs = fullAtMs - nowMs - accessKeyBurstMs
  return waitMs > 0.002 ? waitMs : 0
}

/** Throws KEY_OVER_LIMIT if the key has used up what it may do per second. */
export function assertUnderLimit(limiter: KeyLimiter, access: Access, what: LimitedThing): void {
  if (access === 'root') return
  const waitMs = limiter.take(access, what)
  if (waitMs === 0) return
  const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000))
  throw new PostboteError('KEY_OVER_LIMIT', { detail: `${what}_per_second`, retryAfterS })
}
