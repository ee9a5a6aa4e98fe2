/** The fixed bounds of shards, each with its reason. src/limits.ts explains [ref] and "Chosen". */
import { kib, mib } from '../limits.ts'

// Updates (protocol.md §4)
/** An idempotency key stands for its update for this long: 24 hours, as docs/know/guarantees.md promises. */
export const idempotencyLifeMs = 86_400_000
/**
 * One queue may have this many idempotency keys per day. They are not in memory; each takes some 60 bytes on disk for up
 * to two days, so this is 120 MB.
 */
export const idempotencyKeysPerDayMax = 1_000_000
/** Old idempotency keys are deleted in slices of this many, which take 2 to 3 ms. */
export const idempotencySweepKeys = 1_000
/**
 * The filter over the keys of one half-day of a shard takes at most this many bytes of memory, enough for 4 million keys, 100
 * a second. Four half-days of four shards take 128 MiB at the most, while their keys take 4 GB on disk. A half-day with more
 * keys has no filter, and its keys are looked up on disk.
 */
export const keyFilterBytesMax = 8 * mib
/** Stored keys are read into the filters in slices of this many, which hold the event loop for 1 ms. */
export const keyFilterSliceKeys = 500
/** The pause after each of these slices, so that reading a million keys takes some 15 s and little of a worker. */
export const keyFilterPauseMs = 5

// Forwarding to the owner
/** The longest name of a socket in the run directory, which the check of the directory's path adds. */
export const socketNameBytesMax = 24

// Store
/**
 * A group for which no caller waits may wait this long for further operations, so that confirms and deletions share a
 * sync. It bounds what a crash may deliver again (docs/know/guarantees.md).
 */
export const groupLingerMs = 20
/**
 * A group is closed at this cost, since its encoding and the work after its sync block the event loop: 40 ms for 10,000
 * updates. The throughput is the same with 1,000, 2,000, 4,000 and 10,000.
 */
export const groupCostMax = 2_000
/**
 * This many bytes of an update add 1 to its cost, because they are copied and summed. Chosen, not measured: with less,
 * groups of large updates become small; with more, they block longer.
 */
export const groupCostBytes = 2 * kib
/** One write deletes this many dead records; a group with more operations deletes as many as it stores. */
export const reclaimedPerWriteMax = 1_000
/**
 * Dead records are deleted in a write of their own if no group has been written for this long. Chosen: under load every
 * group takes some along, so this is for idle shards.
 */
export const reclaimIdleMs = 100
/**
 * A poisoned shard tests its disk, or asks its database, this often at the most; pushes are refused until that succeeds,
 * so the outage lasts at most this much longer than the failure.
 */
export const shardProbePeriodMs = 1_000
/** The pause before the first of these tests; it doubles up to `shardProbePeriodMs`. A failover is over this soon. */
export const shardFirstProbeMs = 50
/** Dead records are searched and deleted in batches of this size; groups are written in between. */
export const leftoversPerWriteMax = 1_000
/** One read of a queue that is recounted after damage returns this many updates. */
export const recountPageUpdates = 1_000
/** One read of a recount returns at most this many bytes, all of them in memory: two of the largest getUpdates responses. */
export const recountPageBytes = 8 * mib
/**
 * A recount skips this many ids, more than a lost log can have held: LevelDB writes 4 MiB to a log, and an update takes
 * over 40 bytes there.
 */
export const recountSkippedIds = 1_000_000
/**
 * After a crash that left a torn end of a log, the ids of each queue go on this much higher: the end may have held as many
 * ids as a log, since nothing tells an end that was never synced from one that was lost.
 */
export const tornSkippedIds = 110_000
/**
 * A shard may assign this many ids before it must record again, synced, how far it has come: a synced write per million
 * ids costs next to nothing.
 */
export const idsReservedAhead = 1_000_000
/** This many damaged records are named and copied in one life of a shard; each may be an update of 512 KiB. */
export const damagedRecordsKeptMax = 1_000
/** A repair writes this many records in one batch; a few batches are in memory. */
export const rescueBatchRecords = 1_000
/** A repair writes a batch when it has this many bytes, so that large updates do not fill the memory. */
export const rescueBatchBytes = mib
/**
 * The report of a repair lists this many ranges of missing ids per queue. Chosen: enough to see where the damage is; a
 * line stays readable.
 */
export const lostRangesMax = 5
/**
 * This many expiry minutes are remembered per queue, so that a bucket is written once and not per update. Chosen: updates
 * of one type expire in one or two minutes; forgetting costs one small record.
 */
export const expiryBucketsRememberedMax = 64

// Backups
/**
 * A frame of a backup may have this many bytes: a step of a snapshot ends with the record that reaches its size, and the
 * largest record is a dead letter of 4 MiB.
 */
export const backupFrameBytesMax = 8 * mib
/**
 * After an import, the ids of each queue go on this much higher, unless `--skip-ids` says otherwise: more than most bots get
 * while an export is moved to its new place. docs/know/guarantees.md says what that means.
 */
export const importSkippedIds = 1_000_000

// Data directory
/** An admin key has at least this many characters: 16 random visible ones have 104 bits and cannot be guessed. */
export const adminKeyLengthMin = 16
