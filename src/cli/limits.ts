/** The bounds of the commands. */
import { kib, mib } from '../limits.ts'
import { tailSilenceMs } from '../private-api/limits.ts'

/** `postbote database` copies this many records at a time. Chosen: one statement for each of these steps. */
export const entriesPerCopy = 1_000
/** And about this many bytes at a time. */
export const bytesPerCopy = 4 * mib
/**
 * The heartbeats of nodes are read twice with this pause to see which ones move. Chosen: more than two of them.
 */
export const nodeWatchMs = 600
/** A database that was away when the server started is asked again after this pause. Chosen: 16 of them cost little. */
export const databaseAskAgainMs = 1_000
/** A notice for which the service manager's queue has no room is sent again after this pause. Chosen: systemd empties it in milliseconds. */
export const noticeRetryMs = 100
/** This many notices wait for the service manager. Past that the oldest is dropped, because newer ones replace it. */
export const noticesWaitingMax = 16
/**
 * A command waits this long for a server that sends nothing. Chosen: longer than the replay of all dead letters of a bot
 * takes, which is the longest call.
 */
export const privateApiIdleMsMax = 120_000
/** A command reads this much of a response. Chosen: four times the largest one, a dead letter of 4 MiB. */
export const privateApiResponseBytesMax = 16 * mib
/** `postbote bots list` lists this many bots at most. Chosen: their JSON fits into the memory of a command. */
export const botsListedMax = 1_000_000
/** A tail that sends nothing for this long, not even a comment, is opened again. Chosen: three comments are missing. */
export const tailIdleMsMax = 3 * tailSilenceMs
/** The pause before a tail is opened again doubles up to this. Chosen: nobody notices it after a restart of the server. */
export const tailReopenMsMax = 5_000
/** `postbote export` asks for a shard again after this pause. Chosen: a reload or a take-over lasts a second or two. */
export const exportAgainMs = 1_000
/** It gives up a shard that nobody has sent for this long. Chosen: a database fails over in half a minute. */
export const exportShardMsMax = 120_000
/** `postbote import` reads the file in pieces of this size. Chosen: the size of most frames. */
export const backupReadBytes = 256 * kib
/**
 * `postbote import` fills this many shards at a time. Chosen: each of them holds an open database, and a backup of few shards
 * is read once for so many new ones.
 */
export const shardsFilledMax = 16
/** `--skip-ids` may be as large as this: below 2^31, since that is where ids end. */
export const skippedIdsMax = 1_000_000_000
/** `postbote keys create` takes a `--ttl` of at most this: 100 years. Chosen: a key that should last longer has no end. */
export const accessKeyTtlSMax = 100 * 365 * 86_400

// Dead letters
/** `dead-letters replay --wait` asks this often, and gives up after the second. Chosen: an endpoint that works takes them sooner. */
export const replayAskMs = 500
export const replayWaitMs = 60_000
