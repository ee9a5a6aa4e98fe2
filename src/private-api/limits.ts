/** The fixed bounds of the private API, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { kib, mib } from '../limits.ts'

// Bot API requests (protocol.md §3)
/** The body of a private call that is not a push may have this many bytes: it has only names, settings and ids. */
export const privateBodyBytesMax = 64 * kib

// Updates (protocol.md §4)
/**
 * The header line of a pair may have this many bytes. An ordering key and an idempotency key of the largest size, all
 * escaped, take about 2,300.
 */
export const pairHeaderBytesMax = 4 * kib

// The private API (protocol.md §9)
/** A pushed update may have this many bytes of braces and white space around the text that is stored. */
export const updateSlackBytes = 1024
/** The buffer for the beginning of a line has this size at first and doubles up to the longest line; usual pairs fit. */
export const streamCarryBytesMin = 1 * kib
/** The pairs of all streams of a worker that wait for results may have this weight: about 10,000 pairs of 300 bytes. */
export const streamsWeightMax = 8 * mib
/** A pair weighs this many bytes in addition to its own: the objects that represent it until its result is there. */
export const pairWeight = 512
/**
 * One turn of the event loop handles pairs of this weight from all streams together: 600 pairs of 300 bytes, which take 5
 * ms.
 */
export const streamsTurnWeight = 512 * kib
/** Pairs of one stream are handled in slices of this many, so that other streams have their turn in between. */
export const streamSlicePairs = 256
/**
 * The beginning of a pair over this size takes one of the places for long lines, so that usual pairs never wait for one. Up to
 * this size it is counted in the budget for bodies of the private listener.
 */
export const streamCarryBytesFree = 128 * kib
/**
 * Long pairs whose end has not arrived may have this many bytes in all streams of a worker; a place counts as the longest
 * pair, so there are 128 by default.
 */
export const longLinesBytesMax = 64 * mib
/** A key may have this share of the places for long pairs. Chosen: a quarter, so that three keys leave room for others. */
export const longLinesKeyShare = 1 / 4
/**
 * A stream waits this long for the rest of a pair, and for as long as its bytes take at `pairBytesPerS`; then it is ended, so
 * that stalled producers do not keep memory and places. Chosen: half of what a single push has to arrive.
 */
export const pairWaitMs = 30_000
/** The least rate of a pair in bytes per second: the largest update of the default size arrives in a minute. */
export const pairBytesPerS = 16 * kib

// Forwarding to the owner
/**
 * A pair of a stream whose owner was lost is sent again this often: once to the successor, and once more because the
 * killed process may still have taken the first. A pair that has ended two processes must not end all. If the owner hung,
 * the pair is not sent again.
 */
export const pairRepeatsMax = 2
/**
 * An open stream waits this long for an owner that takes its pairs: below the 30 s after which postbote/client takes a
 * silent stream for dead. On a busy machine a worker starts in 10 s.
 */
export const ownerWaitOfStreamMs = 20_000
/** Any other call waits this long for an owner: as long as a forwarded call (`peerConnectWaitMs`). */
export const ownerWaitMs = 4_000
/**
 * A question about all bots waits this long for the other workers: longer than for one that is being replaced
 * (`ownerWaitMs`), and no longer for one that hangs.
 */
export const ownersAnswerMs = 5_000
/** A registration waits this long for what the other workers know of its username: its client waits for the token. */
export const sameUsernameAnswerMs = 1_000
/** A registration names at most this many other bots with its username. Chosen: one is reason enough to look. */
export const sameUsernamesShownMax = 10
/** An owner that is not there is looked for again after this time: a hand-over takes about as long. */
export const ownerAskAgainMs = 100

// Keys of the private API
/** A stream that the limit of its key paces has this many slices in a second. Chosen: an update waits 0.1 s longer at most. */
export const pacedSlicesPerS = 10

// The dashboard
/** A session lasts this long: a working day with a margin. It ends earlier with the key that it began with. */
export const sessionS = 12 * 3_600
/** The cookie of a session has at most this many characters; a longer one is not looked at. It takes 88. */
export const sessionCookieLengthMax = 96
/** So many cookies with its name are looked at. Browsers send 180 of a host at most, with paths that let each come first. */
export const sessionCookiesMax = 200
/**
 * A worker has this many tails open. Chosen: some operators with some bots each; a tail takes its connection, and
 * `tailWaitingBytesMax` if its reader is slow.
 */
export const tailsMax = 64
/** Events of a tail that wait for a slow reader may have this many bytes, or be one: 4,000 events without payloads. */
export const tailWaitingBytesMax = 256 * kib
/**
 * A tail without events sends a comment this often: well below the minute after which many proxies end a silent
 * connection.
 */
export const tailSilenceMs = 15_000
/** The reader of a tail that has ended connects again after this time. Chosen: as long as a usual hand-over takes. */
export const tailReconnectMs = 500

// Events for the operator
/** A worker has this many streams of events open. Chosen: some operators and programs; each holds a page of events at most. */
export const eventStreamsMax = 32
/** A stream of events keeps the positions of at most this many nodes. Chosen: ten times as many as a large cluster has. */
export const eventPositionNodesMax = 100
/** The reader of a stream of events that has ended connects again after this time, as that of a tail. */
export const eventsReconnectMs = tailReconnectMs
/** A node that did not answer a reader of events is asked again after this time: a worker restarts in about as long. */
export const eventsAskAgainMs = 1_000

// Exports
/** So many exports read the shards of a worker at a time. Chosen: one export asks for one shard after the other. */
export const recordStreamsMax = 4
/** An export that takes nothing for this long is cut off. Chosen: longer than a disk stands still while it writes back. */
export const recordStreamIdleMs = 30_000
/**
 * An export reads a shard this fast at most. Chosen: 10 GiB take 5 minutes, and a step of 2 ms comes every 8 ms, so the worker
 * has three quarters of its time for its bots.
 */
export const recordStreamBytesPerS = 32 * mib
