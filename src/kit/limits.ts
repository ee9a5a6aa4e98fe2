/**
 * The fixed bounds that several folders share, each with its reason. A bound of one file is above the code that uses it, and one of
 * several files of a folder is in that folder's `limits.ts`. Bounds that an operator may change are options (config-options.ts).
 *
 * [ref] marks a number of the reference server, the public C++ server of the bot API. "Chosen" marks a number that
 * follows from no rule and no measurement; the comment says what it weighs.
 */

export const kib = 1024
export const mib = 1024 * kib
export const gib = 1024 * mib

// Bot API requests (protocol.md §3)
/** A call may have this many bytes of parameters, counted after decompression. [ref] */
export const parameterBytesMax = 1 * mib
/**
 * A setWebhook with a certificate part may have this many bytes: the largest certificate, plus `parameterBytesMax` for
 * everything else.
 */
export const certificateRequestBytesMax = 4 * mib
/**
 * A call may have this many parameters in its query or its body, and a multipart body this many parts. No method has more
 * than ten, so this leaves room for unknown parameters, which are ignored.
 */
export const parametersMax = 1_000
/**
 * The header lines of a multipart part may have this many bytes: clients send one to three lines with a name and a file
 * name.
 */
export const partHeadBytesMax = 16 * kib

// Bot ids (protocol.md §2): exact in a JavaScript number
/**
 * The smallest bot id. Chosen: any number above 0 would do; a token with a smaller id is invalid, and no such bot can be
 * registered.
 */
export const botIdMin = 100
/** The largest bot id: 2^52 - 1 is exact in a JavaScript number. */
export const botIdMax = 2 ** 52 - 1

// Update ids (protocol.md §4): clients hold them in 32 bits [ref]
/** A numbering begins at this id or below, so that it has 2,000,000,000 ids before it must begin again. */
export const updateIdFirstMax = 2 ** 27 - 1
/** The largest update id: clients hold ids in 32 bits, and the offset that confirms this one is 2^31 - 1. */
export const updateIdMax = 2 ** 31 - 2
/** The largest id of a replay, which is the second in which it began or later: a key has 32 bits for it. */
export const jobIdMax = 2 ** 32 - 2

// getUpdates (protocol.md §5) [ref]
/**
 * This many delayed refusals wait per worker, each with a timer and a connection; past that a refusal is sent immediately
 * and closes its connection. Chosen: with `refusalDelayMs` that is 330 refusals a second; fewer would pace less, more
 * would hold more connections.
 */
export const delayedRefusalsPerWorkerMax = 1_000
/**
 * A refusal waits this long if another one was sent without delay within the same time: several frameworks repeat a
 * failed call without a pause. [ref]
 */
export const refusalDelayMs = 3_000

// Updates (protocol.md §4)
/** An ordering key may have this many bytes. Chosen: several UUIDs fit; a webhook keeps the key of each lane in memory. */
export const orderingKeyBytesMax = 256
/**
 * The `ttl` of an update is at most a year. Chosen: no update is useful for longer, and a point in time that is given by
 * mistake is far above and refused.
 */
export const ttlSMax = 365 * 86_400

// Dead letters
/** Updates that have left a queue can be kept for this long: a year and a day. Chosen: what nobody may look at later should not be kept. */
export const retentionMsMax = 366 * 86_400_000
/** What is kept may have this many bytes: 16 TiB, more than the disks of a server. A sum of sizes stays exact. */
export const retentionBytesMax = 16 * 1024 * gib
/**
 * A dead letter is kept for a week. Chosen: long enough for an operator to notice a failed endpoint and replay its
 * updates.
 */
export const deadLetterLifeMs = 7 * 86_400_000
/** One read of dead letters from disk returns at most this many, since their texts are in memory. */
export const deadLettersPerRead = 200

// Connections
/**
 * A request may take this long to arrive completely. Chosen: 4 MiB in 60 s is 70 kB/s; a shorter time fails slow uploads,
 * a longer one holds memory longer for clients that stall.
 */
export const requestTimeoutMs = 60_000
/** The bytes of a refused client are read and dropped for this long, so that it receives the response and no reset. */
export const refusedLingerMs = 2_000

// Life of the process (protocol.md §10)
/**
 * When the server ends, requests and deliveries may take this long to finish, as docs/run/operations.md promises. Chosen:
 * with less, more deliveries are cut and repeated; with more, a shutdown may exceed the 30 s after which Kubernetes kills
 * a process.
 */
export const drainMs = 10_000

// The private API (protocol.md §9)
/**
 * A stream that sends nothing for this long is ended between pairs; one whose results are not read is cut. Chosen:
 * producers with rare events keep their stream for ten minutes, and a dead one is noticed.
 */
export const streamIdleMs = 600_000

// Shared memory: sizes of fixed tables in the mapped file
/** The server may have this many workers: the shared memory has tables of this size, and each worker needs a shard. */
export const workersMax = 256
/**
 * The server may have this many shards: the shared memory has a table of this size, and 4,096 slots still give each shard
 * 16.
 */
export const shardsMax = 256
/**
 * A cluster has at most this many databases. Chosen: one for each 16 of the most shards. A node has a lease, a connection
 * and a heartbeat for each of them.
 */
export const databasesMax = 16

/**
 * A server has at most this many keys of the private API, beside the admin key. Chosen: each worker keeps all of them in
 * memory, and the shared memory counts what each one does.
 */
export const accessKeysMax = 1_000

// Forwarding to the owner
/** The path of a socket between workers must be shorter than this: sun_path holds 108 bytes on Linux and 104 elsewhere. */
export const socketPathBytesMax = 100

// Store
/** This many bots or queues are recounted between two reads of the list, so that the list is never in memory as a whole. */
export const countedPerReadMax = 500
/**
 * /readyz and the log name this many damaged places of a shard; `postbote verify` names all. Chosen: enough to judge the
 * damage, and the log line stays short.
 */
export const damagesNamedMax = 16

// Retry-After of a 503 (protocol.md §3.4)
/**
 * A client may try again after this time if a worker is down, a shard cannot be written, or no connection is free. A
 * worker starts in about a second, and a shard that cannot be written tests its disk every second.
 */
export const unavailableRetryAfterS = 1

// Webhooks (protocol.md §6, 8)
/** The text of an error is cut to this many characters, because the endpoint decides what it says. */
export const webhookErrorLengthMax = 256

// Attempts and health of a webhook
/** This many attempts of a webhook are kept for its operator; they take 4 KB with their texts. */
export const webhookAttemptsKept = 50

// Clocks of a cluster
/**
 * A node whose clock differs by more from that of the database is reported, and so is a clock of the database that jumps by
 * more. Chosen: the round trip of a heartbeat takes at most 1 s, and a time service keeps clocks within some milliseconds.
 */
export const clockDifferenceMsMax = 2_000
/**
 * What ends within this time is shown to the operator. Chosen: keys and certificates that people renew by hand are renewed in
 * working time, and a holiday may be in between.
 */
export const endingSoonMs = 14 * 86_400_000

// Operator events
/** The log keeps this many events. Chosen: an outage of thousands of webhooks fits; an event takes some 300 bytes. */
export const eventsKeptMax = 10_000
/** A page of events for one reader has at most this many: some 60 KB over the process channel. */
export const eventsPerPageMax = 200
