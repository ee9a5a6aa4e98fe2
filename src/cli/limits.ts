/** The bounds that several commands share. */
import { mib } from '../kit/limits.ts'

/** `postbote database` copies this many records at a time. Chosen: one statement for each of these steps. */
export const entriesPerCopy = 1_000
/** And about this many bytes at a time. */
export const bytesPerCopy = 4 * mib
/**
 * The heartbeats of nodes are read twice with this pause to see which ones move. Chosen: more than two of them.
 */
export const nodeWatchMs = 600
/** A command reads this much of a response. Chosen: four times the largest one, a dead letter of 4 MiB. */
export const privateApiResponseBytesMax = 16 * mib
/** The doctor waits this long for a program of this machine, and for a connection to a proxy. Chosen. */
export const answerMsMax = 5_000
/**
 * A command waits this long for a server that sends nothing, unless `--timeout` says otherwise. Chosen: longer than the replay of
 * all dead letters of a bot takes, which is the longest call.
 */
export const privateApiIdleMs = 120_000
/** And this long for the end of a response that comes in small pieces. Chosen: five times as long. */
export const privateApiCallMsMax = 600_000
