/** The fixed bounds of keys of the private API that several files use, each with its reason. src/limits.ts explains [ref] and "Chosen". */

/** A key may be for this many bots at most. Chosen: a tenant with its bots; 1,000 keys of this size take 10 MB in a worker. */
export const accessKeyBotsMax = 1_000
/** The largest limit of a key per second: more than one server can do. A key that should do nothing is revoked. */
export const accessKeyRateMax = 1_000_000
/** An attempt to count in the shared memory is repeated this often if other processes count at the same moment. */
export const accessKeyCountAttemptsMax = 8
