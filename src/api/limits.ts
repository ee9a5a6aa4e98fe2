/** The bounds of what a call may contain, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */

/** An idempotency key may have this many characters: room for more than two UUIDs. Keys are stored only as hashes. */
export const idempotencyKeyLengthMax = 128
/**
 * A page of a list has at most this many entries. Chosen: 100,000 bots take 100 calls; a larger page would hold more
 * records in memory.
 */
export const listedPerPageMax = 1_000
/** A replay pushes this many updates in a second at most. Chosen: with 300 bytes each, a tenth of what a worker takes. */
export const replaysPerSecondMax = 10_000
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
/** A cap of a bot's connections is at most this: as much as `--max-webhook-connections` may be. */
export const connectionsCapMax = 1_000
/** A retry of a bot waits at most this many seconds: as long as a Retry-After of its endpoint may have it wait. */
export const retryDelaySMax = 3_600
/** A bot has at most this many delays. Chosen: the usual schedule has seven. */
export const retryDelaysMax = 16
/** A bot has at most this many headers of its own. Chosen: one for authorization and a few for the routes of a platform. */
export const headersMax = 5
/** The value of one has at most this many characters: room for a signed token. */
export const headerValueLengthMax = 1_024
/** The name of one has at most this many characters. Chosen: more than any usual name. */
export const headerNameLengthMax = 64
/** A link of the owner's page lasts at most this many seconds: 30 days, after which the operator decides again. */
export const portalLinkTtlSMax = 30 * 86_400
/** An origin has at most this many characters: the longest host name, the scheme and a port. */
export const originLengthMax = 267
