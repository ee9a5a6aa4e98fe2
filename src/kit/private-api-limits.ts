/** The fixed bounds of the private API that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { kib } from './limits.ts'

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
