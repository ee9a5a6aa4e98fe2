/**
 * Every fixed bound of the server, with its reason. Bounds an operator may change are options (config.ts).
 * A number marked [ref] is the reference server's.
 */

const kib = 1024
const mib = 1024 * kib

// Bot API requests (SPEC 3)
export const parameterBytesMax = 1 * mib
export const certificateRequestBytesMax = 4 * mib
export const certificateBytesMax = 3 * mib
export const headerBytesMax = 64 * kib
export const tokenLengthMax = 80

// Bot ids (SPEC 2): exact in a JavaScript number
export const botIdMin = 100
export const botIdMax = 2 ** 52 - 1

// Update ids (SPEC 4): clients hold them in 32 bits [ref]
export const updateIdFirstMin = 2_000_001
export const updateIdFirstMax = 2 ** 27 - 1
export const updateIdRenumber = 2_147_000_000
export const updateIdMax = 2 ** 31 - 2
/** An offset further below the oldest update than this means "from the oldest". [ref] */
export const offsetBehindMax = 100_000

// getUpdates (SPEC 5) [ref]
export const pollLimitMax = 100
export const pollTimeoutSMax = 50
export const answerBytesMax = 1 << 22
/** What the envelope `,{"update_id":2147483646,...}` of one update is counted as. [ref] */
export const updateEnvelopeBytes = 50
export const delayedRefusalsPerBotMax = 8
export const delayedRefusalsPerWorkerMax = 1_000
export const refusalDelayMs = 3_000

// Updates (SPEC 4)
export const updateNestingMax = 64
export const orderingKeyBytesMax = 256
export const ttlSMax = 365 * 86_400
export const pairHeaderBytesMax = 4 * kib

// Connections (ARCHITECTURE 3)
export const requestLineBytesMax = 8 * kib
export const requestLineWaitMs = 10_000
export const handOffWaitMs = 4_000
export const handOffQueueMax = 4_096
export const headersTimeoutMs = 10_000
export const keepAliveTimeoutMs = 80_000
export const requestTimeoutMs = 60_000

// Life of the process (SPEC 10)
export const drainMs = 10_000

// Store (ARCHITECTURE 7, 11)
/** A native batch that grew past this is given up after its write: every shard keeps one. */
export const levelBatchBytesKeptMax = 4 * mib
/** Read ahead by one visit to the thread pool; turning it into buffers holds the event loop for under 1 ms. */
export const rangeReadBytesMax = 256 * kib
/** Between two tries to open a database that another process still has open. */
export const levelLockRetryMs = 50

// Data directory
/** Slots are 12 bits of a hash; a worker opens its shards' files all the time. */
export const shardsMax = 256
/** sockaddr_un holds 108 bytes on Linux and 104 elsewhere. */
export const socketPathBytesMax = 100
export const adminKeyLengthMin = 16

// Disk space (ARCHITECTURE 9)
export const diskCheckPeriodMs = 1_000
/**
 * Opening a database again writes its logs as tables: two of LevelDB's write buffers. With less room than that the
 * open fails too, and a shard that could at least be read is closed.
 */
export const diskProbeBytes = 8 * mib
