/** The bounds of the commands. */
import { mib } from '../limits.ts'

/** `postbote database` copies this many records at a time. Chosen: one statement for each of these steps. */
export const entriesPerCopy = 1_000
/** And about this many bytes at a time. */
export const bytesPerCopy = 4 * mib
/** A node is alive whose beat moves within this time: it beats every 250 ms, and may be late. */
export const aliveWithinMs = 600
