/** The fixed bounds of update queues and dead letters, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { kib, mib } from '../limits.ts'

// Bot API requests (protocol.md §3)
/**
 * The text of allowed_updates may have this many characters; all 22 names have 400. A longer text counts as text that is
 * not JSON.
 */
export const allowedUpdatesLengthMax = 16 * kib

// Update ids (protocol.md §4): clients hold them in 32 bits [ref]
/**
 * A numbering begins at this id or above, as in the reference, which uses twice its longest queue plus 1. [ref] A large
 * first id also keeps clear of clients that treat 0 and 1 as special.
 */
export const updateIdFirstMin = 2_000_001
/**
 * Past this id a new numbering begins at the next push into an empty queue. The 483,646 ids above it are for a queue that
 * does not become empty soon.
 */
export const updateIdRenumber = 2_147_000_000
/** An offset further below the oldest update than this means "from the oldest". [ref] */
export const offsetBelowOldestMax = 100_000

// getUpdates (protocol.md §5) [ref]
/** The updates of a getUpdates response, each counted with `updateEnvelopeBytes`, have fewer bytes than this. [ref] */
export const responseBytesMax = 1 << 22
/** The envelope `,{"update_id":2147483646,...}` of one update counts as this many bytes. [ref] */
export const updateEnvelopeBytes = 50
/**
 * The client of a poll that repeats an offset within this time has handled nothing since: the poll waits at least
 * `pollRepeatedTimeoutMs`, so that a client without pauses does not spin. [ref]
 */
export const pollRepeatedWithinMs = 3_000
/** A poll that repeats an offset within `pollRepeatedWithinMs` has at least this timeout. [ref] */
export const pollRepeatedTimeoutMs = 3_000
/**
 * A poll that repeats an offset within this time gets a single update, because its client has handled none of those it
 * just got. [ref]
 */
export const pollHastyWithinMs = 500
/** A waiting poll gets its response this long after the last push, so that further updates can join it. [ref] */
export const pollPauseAfterLastMs = 1
/** A waiting poll gets its response at most this long after the first push. [ref] */
export const pollPauseAfterFirstMs = 2
/**
 * A waiting poll is answered after a pause only if the queue got an update within this time before, because then another
 * one is likely. Chosen: updates that a person causes one after the other come further apart.
 */
export const pollPauseWithinMs = 10

// Updates (protocol.md §4)
/**
 * An update may nest this deep, including its outer object. Chosen: deeper ones break the JSON parsers of clients at
 * every poll, and real updates stay far below it.
 */
export const updateNestingMax = 64
/** Memory for loaded updates begins with a chunk of this size and grows, so that a bot with one short update costs little. */
export const windowChunkBytesMin = 1 * kib
/**
 * Chunks grow up to this size, at which they are allocated as shared memory for the compression thread. Chosen: 64 such
 * chunks are the largest response; larger ones would keep more memory alive for a single update.
 */
export const windowChunkBytesMax = 64 * kib
/**
 * A chunk up to this size is kept when the window becomes empty, as most windows do all the time, so that the next update
 * needs no new one.
 */
export const windowChunkBytesKept = 2 * kib
/**
 * A window keeps up to this many removed entries in its middle, or as many as it has live ones, before it is compacted:
 * so compaction is rare and removes at least half.
 */
export const windowHolesMax = 256
/**
 * A queue keeps at most this many pushed bytes in memory, two of the largest responses; older or further updates are read
 * from disk when they are needed. Updates that were removed count, too, while pending ones keep their chunk in memory.
 */
export const queueWindowBytesMax = 8 * mib
/**
 * A queue that nobody has read for this long keeps no pushed updates in memory. It is longer than any poll waits (50 s),
 * so a bot that polls reads from memory.
 */
export const queueUnreadAfterMs = 60_000
/** One read of a queue that is too long for memory returns this many updates: five getUpdates responses. */
export const queuePageUpdates = 500
/**
 * One read of a queue that is too long for memory returns at most this many bytes: two of the largest getUpdates
 * responses.
 */
export const queuePageBytes = 8 * mib
/** One read of ids alone returns this many; each takes 40 bytes in memory, so this is 200 KB. */
export const queuePageIds = 5_000

// Dead letters
/**
 * A queue keeps this many dead letters; past that the oldest are removed. This is enough to see what is wrong and to
 * replay an afternoon of a small bot; the index takes 24 KB of memory per queue with this many.
 */
export const deadLettersMax = 1_000
/**
 * A queue keeps dead letters of this many bytes; past that the oldest are removed. Chosen: `deadLettersMax` dead letters of 16
 * KiB each, more than usual ones; so 1,000 bots whose endpoints all fail take 16 GB of disk at most.
 */
export const deadLetterBytesMax = 16 * mib
/** One read of dead letters returns at most this many bytes, or a single longer dead letter. */
export const deadLetterBytesPerRead = 1 * mib

// Compressed answers
/**
 * This many responses wait for the compression thread. One takes 0.5 to 5 ms, so with more the wait would be longer than
 * sending the response uncompressed.
 */
export const compressPendingMax = 32
/**
 * The compression thread ends after this idle time. It costs 5 to 10 MB, and 30 ms to start, so it is kept between the
 * polls of a backlog.
 */
export const compressIdleMs = 60_000

// Updates checked in a thread
/** The shared memory for updates on their way to the checking thread begins with this size; most workers need no more. */
export const checkScratchBytesMin = 256 * kib
/**
 * Shared memory up to this size is kept for later updates: twice what all streams of a worker have under way
 * (`streamsWeightMax`).
 */
export const checkScratchBytesMax = 16 * mib
/**
 * This many updates wait for the checking thread: at 1 to 2 ms each for the largest, the last one waits a tenth of a
 * second. Further ones are checked in place.
 */
export const checkPendingMax = 64
/** The checking thread ends after this idle time, for the same reason as the compression thread (`compressIdleMs`). */
export const checkIdleMs = 60_000

// Store
/**
 * One operation removes this many updates from a queue, in one turn of the event loop; further ones need further
 * operations.
 */
export const removedPerOperationMax = 1_000

// Webhooks (protocol.md §6, 8)
/**
 * One read from disk returns at most this many bytes, because updates that do not fit beside the loaded ones are read
 * again.
 */
export const webhookPageBytes = 1 * mib

// Events for the operator about queues
/** A queue is high above this share of one of its limits. Chosen: an operator has time to act before it is full. */
export const queueHighShare = 0.8
/**
 * A queue that was high or full is reported again only after it has fallen below this share. Chosen: one that oscillates
 * around `queueHighShare` stays silent.
 */
export const queueCalmShare = 0.6
/** A worker remembers this many queues that are high or full; others are reported without it. Chosen: they take 1 MB. */
export const highQueuesMax = 10_000
