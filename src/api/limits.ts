/** The bounds of what a call of the private API may contain and how long it waits, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { kib } from '../kit/limits.ts'

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

/**
 * The header line of a pair may have this many bytes. An ordering key and an idempotency key of the largest size, all
 * escaped, take about 2,300.
 */
export const pairHeaderBytesMax = 4 * kib
/** The body of a private call that is not a push may have this many bytes: it has only names, settings and ids. */
export const privateBodyBytesMax = 64 * kib
/** A pushed update may have this many bytes of braces and white space around the text that is stored. */
export const updateSlackBytes = 1024
/**
 * A call that is no stream of pushes waits this long for an owner of which nothing is heard: as long as for a worker that is not
 * there (`peerConnectWaitMs`).
 */
export const ownerWaitMs = 4_000
/**
 * No call and no open stream waits longer for an owner, whatever is heard: below the 30 s after which postbote/client takes a
 * silent stream for dead. On a busy machine a worker starts in 10 s.
 */
export const ownerWaitMsMax = 20_000
/**
 * A tail without events sends a comment this often: well below the minute after which many proxies end a silent
 * connection.
 */
export const tailSilenceMs = 15_000
/** The reader of a tail that has ended connects again after this time. Chosen: as long as a usual hand-over takes. */
export const tailReconnectMs = 500
