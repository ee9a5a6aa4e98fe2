/** The bounds of what a call may contain, each with its reason. src/limits.ts explains [ref] and "Chosen". */

/** An idempotency key may have this many characters: room for more than two UUIDs. Keys are stored only as hashes. */
export const idempotencyKeyLengthMax = 128
/**
 * A page of a list has at most this many entries. Chosen: 100,000 bots take 100 calls; a larger page would hold more
 * records in memory.
 */
export const listedPerPageMax = 1_000
/** The smallest limit in deliveries per second: one in ten seconds. To send nothing, the operator pauses the bot. */
export const deliveriesPerSecondMin = 0.1
/** The largest limit in deliveries per second, more than one webhook can get from a worker. */
export const deliveriesPerSecondMax = 10_000
/** A server keeps its counts of this many minutes, a day: 389 kB of shared memory. */
export const serverHistoryMinutes = 1_440
/** A list of `allowed_updates` has this many names. Chosen: more than there will be types. */
export const allowedUpdatesMax = 100
/** A name in it has this many characters. Chosen: twice the longest name of a type. */
export const typeNameLengthMax = 64
