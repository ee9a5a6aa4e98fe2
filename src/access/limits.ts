/** The fixed bounds of keys of the private API, each with its reason. src/limits.ts explains [ref] and "Chosen". */

/** A key may be for this many bots at most. Chosen: a tenant with its bots; 1,000 keys of this size take 10 MB in a worker. */
export const accessKeyBotsMax = 1_000
/** A key and all keys that come from it are this many at most. Chosen: a tenth of what the server has, so one key cannot take all. */
export const accessKeysPerFamilyMax = 100
/** The share of a worker's tails, and of its streams of events, that one such family may have. */
export const keyPlacesShare = 1 / 4
/**
 * So many ended sessions of a key are remembered one by one. Chosen: a session lasts 12 hours, and few people share a key.
 * Past that, all sessions of the key that are older than the oldest of them end, too.
 */
export const endedSessionsPerKeyMax = 16
/** A key has at most two secrets: the current one, and an old one until its overlap ends. */
export const accessKeySecretsMax = 2
/** The largest limit of a key per second: more than one server can do. A key that should do nothing is revoked. */
export const accessKeyRateMax = 1_000_000
/**
 * A key that was not used for a while may do at once what it may do in this time. Chosen: producers send in bursts, and a
 * second is what the limits are given in.
 */
export const accessKeyBurstMs = 1_000
/** An attempt to count in the shared memory is repeated this often if other processes count at the same moment. */
export const accessKeyCountAttemptsMax = 8
/**
 * A worker asks for changes of the keys this often. It is also told of each change at once, so this bounds how long a worker
 * that could not be reached goes on with old keys.
 */
export const keyRefreshMs = 5_000
/** A worker that does not know the keys yet asks this often: it has just started, and so may have the owner of the keys. */
export const keyFirstRefreshMs = 200
/** An answer with the keys is waited for this long, as other questions between workers are (`ownersAnswerMs`). */
export const keyAnswerMs = 5_000
/** A request waits this long for a worker that does not know the keys yet: they are there some milliseconds after its start. */
export const keysKnownWaitMs = 2_000
/** The last use of a key is written this often at most, so that reading programs cause no steady writes. */
export const keyUseWriteMs = 60_000
