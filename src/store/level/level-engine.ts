/**
 * LevelDB as the store of shards, each in a directory of its own. Only this file and tests use the other files of this
 * folder.
 *
 * `open` finds damaged blocks of tables before LevelDB reads them, and damaged logs before LevelDB drops them silently, and writes back what can be read of them. The check is
 * done only when the caller accepts the loss, because the next start finds no more damage.
 */
import { join } from 'node:path'
import { open as openFile } from 'node:fs/promises'
import { DiskSpace, probeDisk } from '../disk-space.ts'
import type { OpenedStore, OpenStoreOptions, StoreEngine } from '../store-engine.ts'
import { damageOf, isOutOfRoom } from './damage-of.ts'
import { isFailedWrite } from './failed-write.ts'
import { roomToOpen } from '../../leveldb-files/level-manifest.ts'
import { readShardFiles } from './read-shard-files.ts'
import { redoUndoneRename } from './undone-rename.ts'
import { damagedCopies } from './incidents.ts'
import { LevelStore } from './level-store.ts'
import { checkLogs, droppedLines, type LogCheck } from './log-check.ts'
import { assertNewShardOrMade, makeNewShard, newShardIsMade } from './new-shard.ts'
import { fingerprint, mayBeSound, verifyBeforeOpening, verifyShard } from './verify-shard.ts'
import { kib } from '../../kit/limits.ts'

/** A shard's directory may be held this long by a predecessor that was killed; after that the opening fails. */
const storeLockWaitMs = 5_000

export const levelEngine = {
  open,
  files: {
    makeNew: makeNewShard,
    create: (directory, clock) => new LevelStore({ directory, clock, lockWaitMs: storeLockWaitMs }),
    read: readShardFiles,
    verify: verifyShard,
    mayBeSound,
    fingerprint,
    damagedCopies,
    wasCompacting: hasUnfinishedCompaction,
    roomToOpen,
    damageOf,
    isFailedWrite,
    isOutOfRoom,
  },
  asideText:
    'a shard is set aside because its files are damaged, and all others are served: stop the server, run postbote verify and postbote repair, and start the server again',
  async space(clock, dataDir, reserveBytes) {
    const disk = new DiskSpace(dataDir, reserveBytes, clock)
    await disk.start()
    return disk
  },
} satisfies StoreEngine

async function open(options: OpenStoreOptions): Promise<OpenedStore> {
  const { shard, directory, clock, log } = options
  const isNew = await assertNewShardOrMade(directory)
  const manifest = await redoUndoneRename(directory)
  if (manifest !== undefined) log.warn({ shard, manifest }, renameWasUndone)
  const check = await checkLogs(directory, options)
  for (const { isLong, ...tornEnd } of check.tornEnds) {
    if (isLong) log.warn({ shard, ...tornEnd }, wasLong)
    else log.info({ shard, ...tornEnd }, wasTorn)
  }
  const verification = new Verification(options)
  const store = new LevelStore({
    directory,
    clock,
    lockWaitMs: storeLockWaitMs,
    async beforeOpening(failedWrite) {
      await verification.run(failedWrite)
      return assertNewShardOrMade(directory)
    },
  })
  try {
    await store.open()
    const dropped = await droppedLines(directory)
    if (check.damages.length > 0) await store.write(check.salvaged, { sync: true })
    if (isNew) await newShardIsMade(directory)
    return {
      store,
      hasLost: check.damages.length > 0 || dropped.length > 0,
      isUnverified: verification.bytesLeft > 0,
      accept: () => accept(options, check, dropped),
      probe: () => probeDisk(directory),
    }
  } catch (error) {
    // Otherwise the next attempt would find the database locked.
    await store.close().catch(() => undefined)
    throw error
  }
}

/** Verifies a shard before each of its openings, the first one and those after failed writes. */
class Verification {
  readonly #options: OpenStoreOptions
  #isDoubted: boolean
  #failedWrite: unknown
  /** Of tables that the last run has not verified. */
  bytesLeft = 0

  constructor(options: OpenStoreOptions) {
    this.#options = options
    this.#isDoubted = options.isDoubted === true
  }

  /** @throws ShardDamaged */
  async run(failedWrite: unknown): Promise<void> {
    const { directory, clock, verifyThread: thread } = this.#options
    // A compaction that has seen a damaged block fails, and then every write. All tables are verified once because of it.
    const isNew = failedWrite !== this.#failedWrite
    const isDoubted = this.#isDoubted || (isNew && damageOf(failedWrite, directory) !== undefined)
    this.#isDoubted = false
    this.#failedWrite = failedWrite
    this.bytesLeft = await verifyBeforeOpening({ directory, clock, thread, isDoubted })
  }
}

async function accept(
  { shard, log }: OpenStoreOptions,
  check: LogCheck,
  dropped: readonly string[],
): Promise<void> {
  if (check.damages.length > 0) {
    await check.done()
    const { damages, operationsLost } = check
    log.error({ shard, damages, salvaged: check.salvaged.length, operationsLost }, wasDamaged)
  }
  if (dropped.length > 0) {
    log.error({ shard, dropped }, 'LevelDB dropped damaged data of this shard')
  }
}

const renameWasUndone =
  'a power loss undid the last change of CURRENT; it names the newer MANIFEST again'
const wasTorn = 'the end of a file was not synced before a crash or a power loss, and was cut off'
const wasLong =
  'the end of a log was cut off that is longer than any group of it: more than what a crash interrupts may be lost'
const wasDamaged =
  'a log of this shard was damaged; it was copied beside the shard, and its readable records were kept'

/**
 * Determines from LevelDB's event log, the file `LOG`, whether its last process was compacting when it ended. LevelDB
 * writes each line immediately, so a process that was killed leaves the first line of the compaction but not the last
 * (db_impl.cc of LevelDB 1.20):
 *
 *     2026/11/22-07:00:00.000000 7f1c3a7fc700 Compacting 4@0 + 1@1 files
 *     2026/11/22-07:00:00.100000 7f1c3a7fc700 compacted to: files[ 0 1 0 0 0 0 0 ]
 *
 * Call this before the database is opened, because opening begins a new `LOG`.
 *
 * @param directory - the shard's directory.
 * @returns whether a compaction was in progress; false also if there is no readable `LOG`.
 */
export async function hasUnfinishedCompaction(directory: string): Promise<boolean> {
  const text = await endOf(join(directory, 'LOG')).catch(() => '')
  return text.lastIndexOf(' Compacting ') > text.lastIndexOf(' compacted to: ')
}

/**
 * This many bytes at the end of LevelDB's log of events are read: they contain its last compaction, which may write a few
 * hundred lines of 120 bytes.
 */
const eventLogBytesRead = 256 * kib

async function endOf(path: string): Promise<string> {
  const file = await openFile(path, 'r')
  try {
    const { size } = await file.stat()
    const length = Math.min(size, eventLogBytesRead)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length)
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await file.close()
  }
}
