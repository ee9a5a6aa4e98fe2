/** The fixed bounds of the client for producers (postbote/client), each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { kib, mib } from '../limits.ts'

// The client for producers (postbote/client)
/**
 * A client that has never reached its server reports that within 3 s, because the address is wrong, or nobody listens there. An
 * attempt of it may take the first time, and the last one begins within the second. A restart of a server that was reached
 * may take longer.
 */
export const firstConnectMs = 2_000
export const firstContactMs = 2_500
/**
 * A longer Retry-After is reported to the caller instead of waited for. Chosen: a caller expects its call to end within a
 * minute or so.
 */
export const clientRetryAfterSMax = 60
/**
 * A client may have this many single calls under way, as many as a stream has pairs by default; a stream takes more at
 * less cost.
 */
export const clientCallsMax = 16_384
/** The response to a single call may have this many bytes, far more than a result or an error takes. */
export const clientResponseBytesMax = 1 * mib
/** A line of the response to a stream may have this many characters: a result has 50, an error a few hundred. */
export const clientResultLengthMax = 64 * kib
/** Pairs are passed to the connection in pieces of about this size, which is what a worker reads at a time. */
export const clientPieceLength = 64 * kib
/**
 * Past this many times the bounds of `ready`, a push is refused instead of kept: this is for callers that never await
 * `ready`.
 */
export const clientHardBoundFactor = 2
