/** The fixed bounds of the private API that several files use, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { kib } from '../limits.ts'

/**
 * The header line of a pair may have this many bytes. An ordering key and an idempotency key of the largest size, all
 * escaped, take about 2,300.
 */
export const pairHeaderBytesMax = 4 * kib
/** The body of a private call that is not a push may have this many bytes: it has only names, settings and ids. */
export const privateBodyBytesMax = 64 * kib
/** A pushed update may have this many bytes of braces and white space around the text that is stored. */
export const updateSlackBytes = 1024
/** A call that is no stream of pushes waits this long for an owner: as long as a forwarded call (`peerConnectWaitMs`). */
export const ownerWaitMs = 4_000
/**
 * A tail without events sends a comment this often: well below the minute after which many proxies end a silent
 * connection.
 */
export const tailSilenceMs = 15_000
/** The reader of a tail that has ended connects again after this time. Chosen: as long as a usual hand-over takes. */
export const tailReconnectMs = 500
