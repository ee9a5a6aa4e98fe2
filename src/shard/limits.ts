/** The fixed bounds of shards that several files use, each with its reason. src/kit/limits.ts explains [ref] and "Chosen". */

/** One read of a queue that is recounted after damage returns this many updates. */
export const recountPageUpdates = 1_000
