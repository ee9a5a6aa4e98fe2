/** The fixed bounds of the bot API, each with its reason. src/limits.ts explains [ref] and "Chosen". */

// Bot API requests (protocol.md §3)
/**
 * A JSON body may have this many values, including nested ones. JSON.parse takes up to 2 us for one (an object with a new
 * key), so this is 8 ms at worst.
 */
export const jsonValuesMax = 4_000
/** A JSON body may have this many levels. [ref] */
export const jsonNestingMax = 100
/**
 * A compressed body of parameters may unpack to this many times its size. JSON and forms are compressed 3 to 20 times;
 * the 1,000 times that gzip can reach make an attack cheap.
 */
export const bodyGrowthMax = 100

// getUpdates (protocol.md §5) [ref]
/** A poll returns at most this many updates, which is also the default. [ref] */
export const pollLimitMax = 100
/**
 * A poll waits at most this long; a longer timeout is clamped, because clients that ask for 60 s or more often give up
 * themselves. [ref]
 */
export const pollTimeoutSMax = 50

// Webhooks (protocol.md §6, 8)
/** A secret_token may have this many characters. [ref] */
export const webhookSecretLengthMax = 256
