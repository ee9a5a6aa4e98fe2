/** The fixed bounds of stores, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { kib, mib } from '../limits.ts'

// Store
/**
 * A native batch that holds no more than this many bytes is reused for the next write. A larger one is freed after its
 * write, because every shard keeps a batch.
 */
export const levelBatchBytesKeptMax = 4 * mib
/**
 * One visit to the thread pool reads at most this many bytes ahead: turning them into buffers blocks the event loop for
 * less than 1 ms.
 */
export const rangeReadBytesMax = 256 * kib
/** A step of a snapshot reads about this many bytes, so that an export shares the event loop with all other work. */
export const snapshotStepBytes = 256 * kib
/** And at most this many entries. Chosen: small records take as long to handle as large ones. */
export const snapshotStepEntries = 1_000
/**
 * A database that another process still has open is tried again after this time. Chosen: 100 attempts within
 * `storeLockWaitMs`.
 */
export const levelLockRetryMs = 50
/**
 * This many bytes of a shard's files are checked in one turn of the event loop: unpacking and decoding them takes some 5
 * ms.
 */
export const shardReadTurnBytes = 64 * kib
/**
 * This many bytes at the end of LevelDB's log of events are read: they contain its last compaction, which may write a few
 * hundred lines of 120 bytes.
 */
export const eventLogBytesRead = 256 * kib

// Disk space
/**
 * The free space of the disk is read this often. In one second the fastest measured ingest (134,000 updates of 300 bytes)
 * stores some 40 MB, far less than the reserve of 256 MiB.
 */
export const diskCheckPeriodMs = 1_000
/**
 * A probe of the disk writes this many bytes: when a database is opened, it writes its logs as tables of up to two of
 * LevelDB's write buffers. With less space the opening fails, too, and a shard that could be read is closed.
 */
export const diskProbeBytes = 8 * mib

// PostgreSQL
/** A statement waits this long for a lock. A claim that waits longer ends the connections of the old owner. Measured. */
export const pgLockMs = 300
/** The outcome of a statement without a response in this time is unknown. Chosen: the pause that a failover takes. */
export const pgStatementMs = 2_000
/** The same for heartbeats: as long as a node may serve after one. */
export const pgNodeStatementMs = 1_000
/**
 * The database ends a node that stands still for this long while it joins, so that others can join. Chosen: as long as the
 * node itself waits for the response to a statement.
 */
export const pgJoinIdleMs = pgNodeStatementMs
/** A server that is not connected in this time counts as away. Chosen: one lost packet is sent again after 1 s. */
export const pgConnectMs = 3_000
/** A server that refused is asked again after this pause, while another one is silent. Chosen: a heartbeat's pause. */
export const pgAskAgainMs = 250
/** A transaction that is open for longer is reported: what is deleted meanwhile stays. Measured: 4 times slower after 2 min. */
export const pgSnapshotWarnS = 60
/**
 * The doctor reads the rows of nodes and shards twice, this long apart. Chosen: longer than a lost node keeps its row
 * (`nodeEvictedMs`) and than the second node in the rank of a shard waits for the first (`orphanTurnMs`).
 */
export const pgDoctorLookMs = 3_000
/** The doctor waits this long for a response: a busy database is one that it is asked about. Chosen. */
export const pgDoctorStatementMs = 30_000
/** After one server of a database has responded, the others have this long. Chosen: a few round trips. */
export const pgOthersMs = 100
/** Period of the look at the size of a database. Chosen: it reads the sizes of all files, and 10 s of pushes are small. */
export const pgSizePeriodMs = 10_000
/** Connections on which one worker reads all of its shards. Chosen: one that reads a long list delays no other. */
export const pgReadersMax = 4
