/**
 * A token bucket as one number, the time at which it is full again, so that it takes 8 bytes and fits into one word of shared
 * memory. Each taking moves this time on by what it costs: the time in which the bucket gains as much. Also known as GCRA.
 *
 *   fullAt <= now            the bucket is full
 *   fullAt  = now + burst    the bucket is empty
 *   fullAt  > now + burst    more was taken than there was: the next taker waits until this time is back at now + burst
 *
 * All times are of one clock, in milliseconds.
 */

/** When the bucket is full again. */
export type TokenBucket = number

/** Returns when the bucket will be full again after something was taken that costs `costMs`. */
export function fullAfter(fullAtMs: TokenBucket, nowMs: number, costMs: number): TokenBucket {
  return Math.max(fullAtMs, nowMs) + costMs
}

/** Returns how long a bucket that holds what it gains in `burstMs` still lacks something; 0 if it lacks nothing. */
export function lackMs(fullAtMs: TokenBucket, nowMs: number, burstMs: number): number {
  return Math.max(fullAtMs - nowMs - burstMs, 0)
}
