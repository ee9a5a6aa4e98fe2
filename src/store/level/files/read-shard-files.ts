/**
 * Reads all records of a shard from LevelDB's own files, without LevelDB, and finds every damage on the way.
 *
 * Whatever is in the files is either handed out or in a range that a damage names by the keys around it; a record that
 * is damaged by itself is named by its own key. What counts as a record that can be used:
 *
 *   in a block whose checksum is right    its own checksum is right too
 *   in a damaged block                    the same, and the records of the block before it are right without a gap,
 *                                         since the checksum of old records does not cover the key
 *
 * A server may run on the directory meanwhile. LevelDB then deletes tables and logs that it needs no more; those are
 * looked for in the MANIFEST again before they count as missing. No file is changed, and LOCK is not opened.
 */

import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Clock, nextTurn, sleep } from '../../../clock.ts'
import { shardReadTurnBytes } from '../../../limits.ts'
import { decodeLevelBatch } from '../level-batch.ts'
import { readLevelLog } from '../level-log.ts'
import { DamagePlacer, type ShardPart } from './damage-placer.ts'
import { type FileBytes, type ReadAt, readFileBytes } from './file-bytes.ts'
import type { LevelTableEntry } from './level-edit.ts'
import { isTableBlock, levelTable } from './level-table.ts'
import { listShardFiles, type ShardFileList } from './shard-file-list.ts'
import { parseInternalKey, type TableBlock, type TableEntry } from './table-block.ts'
import type { StoreEntry } from '../../store.ts'
import { isMissing } from '../../is-missing.ts'

/** Tells which records can be used, for what is stored in LevelDB's files has checksums of its own. */
export interface RecordCheck {
  /** What is wrong with a record, undefined for a sound one. Of a deletion, without a value, the key alone counts. */
  recordFault(key: Buffer, value: Buffer | undefined): string | undefined
  /** Whether the checksum in a value covers its key as well, so that a right one proves both. */
  isKeyCovered(entry: StoreEntry): boolean
}

export interface ReadShardOptions {
  readonly records: RecordCheck
  /** Of the shard. */
  readonly directory: string
  readonly clock: Clock
  /** Read no faster than this; without it as fast as the disk allows. */
  readonly bytesPerS?: number | undefined
  /** Ends the reading early; the generator returns then. */
  readonly signal?: AbortSignal | undefined
  /** In place of `pread`, for tests. */
  readonly readAt?: ReadAt | undefined
  /** Told how many of how many files have been read. */
  readonly onProgress?: ((filesRead: number, files: number) => void) | undefined
}

/** LevelDB may replace its MANIFEST or delete a log between two looks of one try. */
const listTries = 3

/**
 * @returns the damages and the records of all files that belong to the shard, each file in its own order.
 * @throws what the file system says where files cannot be listed or opened; a missing one is a damage.
 */
export async function* readShardFiles(options: ReadShardOptions): AsyncGenerator<ShardPart> {
  const list = await settledList(options.directory)
  for (const fault of list.faults) yield { kind: 'damage', ...fault, mayLose: true }
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
  for (const path of list.logs) {
    const file = await readUnlessGone(path, options)
    if (options.signal?.aborted === true) return
    const isLast = lastWritten.has(path)
    // A log that is gone has become a table since it was listed.
    if (file !== undefined) yield* logParts({ path, isLast, file }, options)
    countFile()
  }
}

async function settledList(directory: string): Promise<ShardFileList> {
  let list = await listShardFiles(directory)
  for (let tries = 1; list.faults.length > 0 && tries < listTries; tries++) {
    list = await listShardFiles(directory)
  }
  return list
}

async function isStillListed(directory: string, path: string): Promise<boolean> {
  const { tables } = await settledList(directory)
  return tables.some((table) => table.path === path)
}

/** Of each directory the log that was written last: what is unfinished at its end was never acknowledged. */
async function lastWrittenLogs(logs: readonly string[]): Promise<ReadonlySet<string>> {
  const last = new Map<string, string>()
  for (const path of logs) {
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    )
    // A start that was interrupted leaves an empty log after the one that was written last.
    if (size > 0) last.set(dirname(path), path)
  }
  return new Set(last.values())
}

/** Undefined where the file is not there, or the reading was ended. */
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
    file: path,
    offset: 0,
    what: 'the table is missing, and the MANIFEST names it',
    mayLose: true,
    after: listed && userKey(listed.smallest),
    before: listed && userKey(listed.largest),
  }
}

interface TableFile {
  readonly path: string
  readonly listed: LevelTableEntry | undefined
  readonly file: FileBytes
}

async function* tableParts(
  { path, listed, file }: TableFile,
  { clock, records }: ReadShardOptions,
): AsyncGenerator<ShardPart> {
  const placer = new DamagePlacer(path, listed && userKey(listed.smallest))
  yield* unreadableParts(placer, file)
  const { length } = file.bytes
  if (listed !== undefined && listed.size !== length) {
    const what = `the table has ${length} bytes, and the MANIFEST says ${listed.size}`
    yield* placer.certain({ offset: Math.min(length, listed.size), what })
  }
  let turnBytes = 0
  for (const part of levelTable(file.bytes)) {
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
  const largest = listed && userKey(listed.largest)
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
  // One flipped bit, which was undone: nothing is lost by it.
  if (block.what !== undefined) yield* placer.certain({ offset: block.offset, what: block.what })
  yield* checkedEntries(placer, { entries: block.entries, offset: block.offset, records })
}

/** Hands out the entries whose values are right, and names the others. */
function* checkedEntries(
  placer: DamagePlacer,
  {
    entries,
    offset,
    records,
  }: {
    readonly entries: readonly TableEntry[]
    readonly offset: number
    readonly records: RecordCheck
  },
): Generator<ShardPart> {
  let good: TableEntry[] = []
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
  const before: TableEntry[] = []
  const later: TableEntry[] = []
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

function faultOf({ key, value, isDeletion }: TableEntry, records: RecordCheck): string | undefined {
  return records.recordFault(key, isDeletion ? undefined : value)
}

interface LogFile {
  readonly path: string
  readonly isLast: boolean
  readonly file: FileBytes
}

async function* logParts(
  { path, isLast, file }: LogFile,
  { clock, records: check }: ReadShardOptions,
): AsyncGenerator<ShardPart> {
  const placer = new DamagePlacer(path, undefined)
  yield* unreadableParts(placer, file)
  const { records, faults, tail } = readLevelLog(file.bytes)
  const all = isLast || tail === undefined ? [...faults] : [...faults, tail]
  const begun = isLast || tail?.begun === undefined ? [] : [tail.begun]
  let turnBytes = 0
  for (const { offset, payload } of [...records, ...begun]) {
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

function entriesOfBatch(payload: Buffer): TableEntry[] | undefined {
  const batch = decodeLevelBatch(payload)
  return batch?.operations.map((operation, index) => ({
    key: operation.key,
    sequence: batch.sequence + index,
    isDeletion: operation.type === 'del',
    value: operation.type === 'put' ? operation.value : Buffer.alloc(0),
  }))
}

function userKey(internalKey: Buffer): Buffer | undefined {
  return parseInternalKey(internalKey)?.key
}
