/** The fixed bounds of relays that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */
import { mib } from '../../kit/limits.ts'

/** An origin holds a getUpdates call without updates this long. [ref] */
export const relayPollS = 50
/** A getUpdates call returns at most this many updates. [ref] */
export const relayBatchMax = 100
/**
 * An answer of an origin may have this many bytes; a single update with more is skipped. Chosen: a hundred updates of 80 KB, far
 * more than real ones have.
 */
export const relayAnswerBytesMax = 8 * mib
