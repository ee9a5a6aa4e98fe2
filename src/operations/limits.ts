/** The bounds of what a call may contain, each with its reason. src/limits.ts explains [ref] and "Chosen". */

/** An idempotency key may have this many characters: room for more than two UUIDs. Keys are stored only as hashes. */
export const idempotencyKeyLengthMax = 128
/**
 * A page of a list has at most this many entries. Chosen: 100,000 bots take 100 calls; a larger page would hold more
 * records in memory.
 */
export const listedPerPageMax = 1_000
/**
 * An old token may stay valid this long beside a new one: a week is long enough to roll a new token out and short enough
 * for a leaked one to end.
 */
export const tokenOverlapSMax = 7 * 86_400
/**
 * An old signing key may sign this long beside a new one, as with tokens (`tokenOverlapSMax`): a week is enough to bring
 * a new key to every receiver.
 */
export const signingKeyOverlapSMax = 7 * 86_400
/** The smallest limit in deliveries per second: one in ten seconds. To send nothing, the operator pauses the bot. */
export const deliveriesPerSecondMin = 0.1
/** The largest limit in deliveries per second, more than one webhook can get from a worker. */
export const deliveriesPerSecondMax = 10_000
/** A name of a key has at most this many characters: enough for a program, its place and a date. */
export const accessKeyNameLengthMax = 64
/** A key ends at this Unix time in seconds at the latest: below the last date of JavaScript, and far beyond any use. */
export const accessKeyEndSMax = 2 ** 40
/** An old secret of a key may stay valid this long beside a new one, as with tokens (`tokenOverlapSMax`). */
export const accessKeyOverlapSMax = 7 * 86_400
/** The position of a reader of events has at most this many characters: `eventPositionNodesMax` nodes with the longest names fit. */
export const eventPositionLengthMax = 8_192
