/** The fixed bounds of bots and their polls that several files use, each with its reason. src/limits.ts explains [ref] and "Chosen". */

/**
 * Expired updates and old idempotency keys are removed this often. An expired update is never sent, but it uses memory
 * and disk for up to this long.
 */
export const expirySweepPeriodMs = 60_000
/** One call reads this many bots from disk, because three records of each are in memory together. */
export const botLoadCountMax = 500
