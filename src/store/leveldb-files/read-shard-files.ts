/**
 * Reads all records of a shard from LevelDB's files without LevelDB, and finds all damage on the way.
 *
 * Everything in the files is either yielded or is in a range that a reported damage describes by the keys around it.
 * A record that is damaged individually is reported by its own key. A record counts as usable under these conditions:
 *
 *   in a block whose checksum matches     its own checksum matches
 *   in a damaged block                    its own checksum matches, and so do those of all records before it in the
 *                                         block, because the checksum of old records does not cover the key
 *
 * Besides records, this checks that the tables and logs are there with the right sizes, the checksum of every block, and
 * the index and order of every table. A server may use the directory at the same time, even in the same process. LevelDB then deletes tables and logs that it no longer needs.
 * Before they count as missing, the MANIFEST is read again. No file is changed, and LOCK is not opened.
 */

import { nextTurn, sleep } from '../../kit/clock.ts'
import { decodeLevelBatch } from '../level/level-batch.ts'
import { judgeLevelLog, type LogPast } from '../level/level-log.ts'
import { damagedFile, DamagePlacer } from './damage-placer.ts'
import { type FileBytes, readFileBytes } from './file-bytes.ts'
import type { LevelTableEntry } from './level-edit.ts'
import { isTableBlock, levelTable } from './level-table.ts'
import {
  isStillListed,
  lastWrittenLogs,
  settledList,
  type ShardFileList,
} from './shard-file-list.ts'
import { type TableBlock, userKeyOf } from './table-block.ts'
import type { ReadShardOptions, RecordCheck, RecordVersion, ShardPart } from '../store-files.ts'
import { isMissing } from '../is-missing.ts'
import { kib } from '../../kit/limits.ts'

/** Reads the files of a shard, as `StoreFiles.read` says. */
export async function* readShardFiles(options: ReadShardOptions): AsyncGenerator<ShardPart> {
  const list = await settledList(options.directory)
  for (const fault of list.faults) {
    yield { kind: 'damage', ...fault, ...damagedFile(fault.file), mayLose: true }
  }
  const files = list.tables.length + list.logs.length
  let filesRead = 0
  const countFile = (): void => options.onProgress?.(++filesRead, files)
  yield* partsOfTables(list, options, countFile)
  yield* partsOfLogs(list, options, countFile)
}

async function* partsOfTables(
  list: ShardFileList,
  options: ReadShardOptions,
  countFile: () => void,
): AsyncGenerator<ShardPart> {
  for (const { path, listed } of list.tables) {
    const file = await readUnlessGone(path, options)
    if (options.signal?.aborted === true) return
    if (file !== undefined) yield* tableParts({ path, listed, file }, options)
    else if (await isStillListed(options.directory, path)) yield missingTable(path, listed)
    countFile()
  }
}

async function* partsOfLogs(
  list: ShardFileList,
  options: ReadShardOptions,
  countFile: () => void,
): AsyncGenerator<ShardPart> {
  const lastWritten = await lastWrittenLogs(list.logs)
  for (const { path, closedBytes } of list.logs) {
    const file = await readUnlessGone(path, options)
    if (options.signal?.aborted === true) return
    const isLast = lastWritten.has(path)
    // A log that is gone has become a table since it was listed.
    if (file !== undefined) yield* logParts({ path, isLast, closedBytes, file }, options)
    countFile()
  }
}

/** Returns undefined if the file is not there or the reading was ended. */
async function readUnlessGone(
  path: string,
  { clock, bytesPerS, signal, readAt }: ReadShardOptions,
): Promise<FileBytes | undefined> {
  try {
    return await readFileBytes(path, {
      readAt,
      async beforeRead(bytes) {
        signal?.throwIfAborted()
        if (bytesPerS !== undefined) await sleep(clock, (bytes / bytesPerS) * 1_000, signal)
      },
    })
  } catch (error) {
    if (signal?.aborted === true) return undefined
    if (isMissing(error)) return undefined
    throw error
  }
}

function missingTable(path: string, listed: LevelTableEntry | undefined): ShardPart {
  return {
    kind: 'damage',
    ...damagedFile(path),
    offset: 0,
    what: 'the table is missing, and the MANIFEST names it',
    mayLose: true,
    after: listed && userKeyOf(listed.smallest),
    before: listed && userKeyOf(listed.largest),
  }
}

interface TableFile {
  readonly path: string
  readonly listed: LevelTableEntry | undefined
  readonly file: FileBytes
}

/**
 * This many bytes of a shard's files are checked in one turn of the event loop: unpacking and decoding them takes some 5
 * ms.
 */
const shardReadTurnBytes = 64 * kib

async function* tableParts(
  { path, listed, file }: TableFile,
  { clock, records }: ReadShardOptions,
): AsyncGenerator<ShardPart> {
  const placer = new DamagePlacer(path, listed && userKeyOf(listed.smallest))
  yield* unreadableParts(placer, file)
  const { length } = file.bytes
  if (listed !== undefined && listed.size !== length) {
    const what = `the table has ${length} bytes, and the MANIFEST says ${listed.size}`
    yield* placer.certain({ offset: Math.min(length, listed.size), what })
  }
  let turnBytes = 0
  for (const part of levelTable(file.bytes, records)) {
    if (!isTableBlock(part)) {
      yield* placer.certain(part)
      continue
    }
    yield* part.isTrusted
      ? trustedParts(placer, part, records)
      : damagedParts(placer, part, records)
    turnBytes += part.length
    if (turnBytes < shardReadTurnBytes) continue
    turnBytes = 0
    await nextTurn(clock)
  }
  const largest = listed && userKeyOf(listed.largest)
  if (largest !== undefined && !placer.isWaiting && !hasReached(placer.lastKey, largest)) {
    placer.add({ offset: length, what: 'the last keys of the table are missing' })
  }
  yield* placer.end(largest)
}

function hasReached(key: Buffer | undefined, largest: Buffer): boolean {
  return key !== undefined && Buffer.compare(key, largest) >= 0
}

function* unreadableParts(placer: DamagePlacer, { unreadable }: FileBytes): Generator<ShardPart> {
  for (const { offset, length, code } of unreadable) {
    yield* placer.certain({ offset, what: `${length} bytes cannot be read (${code})` })
  }
}

function* trustedParts(
  placer: DamagePlacer,
  block: TableBlock,
  records: RecordCheck,
): Generator<ShardPart> {
  // One bit was flipped and has been restored: no record is lost.
  if (block.what !== undefined) yield* placer.certain({ offset: block.offset, what: block.what })
  yield* checkedEntries(placer, { entries: block.entries, offset: block.offset, records })
}

/** Yields the entries whose values are sound and reports the others. */
function* checkedEntries(
  placer: DamagePlacer,
  {
    entries,
    offset,
    records,
  }: {
    readonly entries: readonly RecordVersion[]
    readonly offset: number
    readonly records: RecordCheck
  },
): Generator<ShardPart> {
  let good: RecordVersion[] = []
  for (const entry of entries) {
    const what = faultOf(entry, records)
    if (what === undefined) {
      good.push(entry)
    } else {
      yield* placer.entries(good)
      yield* placer.certain({ offset, what, key: entry.key, mayLose: true })
      good = []
    }
  }
  yield* placer.entries(good)
}

function* damagedParts(
  placer: DamagePlacer,
  block: TableBlock,
  records: RecordCheck,
): Generator<ShardPart> {
  const before: RecordVersion[] = []
  const later: RecordVersion[] = []
  let isBroken = false
  for (const [index, entry] of block.entries.entries()) {
    const isRight = faultOf(entry, records) === undefined
    isBroken ||= !isRight || index >= block.unbroken
    if (!isBroken) before.push(entry)
    else if (isRight && records.isKeyCovered(entry)) later.push(entry)
  }
  yield* placer.entries(before)
  placer.add({ offset: block.offset, what: block.what ?? 'the block is damaged' })
  yield* placer.entries(later)
}

function faultOf(
  { key, value, isDeletion }: RecordVersion,
  records: RecordCheck,
): string | undefined {
  return records.recordFault(key, isDeletion ? undefined : value)
}

interface LogFile extends LogPast {
  readonly path: string
  readonly file: FileBytes
}

async function* logParts(
  { path, file, ...past }: LogFile,
  { clock, records: check }: ReadShardOptions,
): AsyncGenerator<ShardPart> {
  const placer = new DamagePlacer(path, undefined)
  yield* unreadableParts(placer, file)
  const { records, faults } = judgeLevelLog(file.bytes, past)
  const all = [...faults]
  let turnBytes = 0
  for (const { offset, payload } of records) {
    for (let next = all[0]; next !== undefined && next.offset < offset; next = all[0]) {
      placer.add({ offset: next.offset, what: next.reason })
      all.shift()
    }
    const entries = entriesOfBatch(payload)
    if (entries === undefined) placer.add({ offset, what: 'a record that holds no batch' })
    else yield* checkedEntries(placer, { entries, offset, records: check })
    turnBytes += payload.length
    if (turnBytes < shardReadTurnBytes) continue
    turnBytes = 0
    await nextTurn(clock)
  }
  for (const { offset, reason } of all) placer.add({ offset, what: reason })
  yield* placer.end(undefined)
}

function entriesOfBatch(payload: Buffer): RecordVersion[] | undefined {
  const batch = decodeLevelBatch(payload)
  return batch?.operations.map((operation, index) => ({
    key: operation.key,
    sequence: batch.sequence + index,
    isDeletion: operation.type === 'del',
    value: operation.type === 'put' ? operation.value : Buffer.alloc(0),
  }))
}
