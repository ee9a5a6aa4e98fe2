/** The fixed bounds of stores that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { kib } from '../kit/limits.ts'

/**
 * One visit to the thread pool reads at most this many bytes ahead: turning them into buffers blocks the event loop for
 * less than 1 ms.
 */
export const rangeReadBytesMax = 256 * kib
/** A step of a snapshot reads about this many bytes, so that an export shares the event loop with all other work. */
export const snapshotStepBytes = 256 * kib
/** And at most this many entries. Chosen: small records take as long to handle as large ones. */
export const snapshotStepEntries = 1_000
/** Connections on which one worker reads all of its shards. Chosen: one that reads a long list delays no other. */
export const pgReadersMax = 4
