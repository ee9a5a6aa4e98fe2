/** The fixed bounds of update queues and dead letters that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { kib } from '../kit/limits.ts'

/** The updates of a getUpdates response, each counted with `updateEnvelopeBytes`, have fewer bytes than this. [ref] */
export const responseBytesMax = 1 << 22
/** The envelope `,{"update_id":2147483646,...}` of one update counts as this many bytes. [ref] */
export const updateEnvelopeBytes = 50
/**
 * Chunks grow up to this size, at which they are allocated as shared memory for the compression thread. Chosen: 64 such
 * chunks are the largest response; larger ones would keep more memory alive for a single update.
 */
export const windowChunkBytesMax = 64 * kib
