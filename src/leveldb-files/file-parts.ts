/**
 * Yields what the tables and logs of a LevelDB hold, and all their damage, without LevelDB.
 *
 * Everything in a file is either yielded or is in a range that a reported damage describes by the keys around it.
 * A record that is damaged individually is reported by its own key. A record counts as usable under these conditions:
 *
 *   in a block whose checksum matches     its own checksum matches
 *   in a damaged block                    its own checksum matches, and so do those of all records before it in the
 *                                         block, because the checksum of old records does not cover the key
 *
 * Besides records, this checks the checksum of every block, and the index and order of every table.
 */
import { nextTurn, sleep } from '../kit/clock.ts'
import { kib } from '../kit/limits.ts'
import { DamagePlacer, damagedFile } from './damage-placer.ts'
import { type FileBytes, readFileBytes } from './file-bytes.ts'
import type { FilesDamage, FilesPart, Reading, RecordCheck, RecordVersion } from './files-part.ts'
import { decodeLevelBatch } from './level-batch.ts'
import type { LevelTableEntry } from './level-edit.ts'
import { judgeLevelLog, type LogPast } from './level-log.ts'
import { keysOfTable } from './level-manifest.ts'
import { isTableBlock, levelTable } from './level-table.ts'
import type { TableBlock } from './table-block.ts'

/** Returns undefined if the file is not there or the reading was ended. */
export async function readUnlessGone(
  path: string,
  { clock, bytesPerS, signal, readAt }: Reading,
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
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Yields the records of a file, and its damage. */
export function fileParts(file: TableFile | LogFile, reading: Reading): AsyncGenerator<FilesPart> {
  return 'listed' in file ? tableParts(file, reading) : logParts(file, reading)
}

/** Returns the damage of a table that is not there. */
export function missingTable(path: string, listed: LevelTableEntry | undefined): FilesPart {
  const [after, before] = listed === undefined ? [] : keysOfTable(listed)
  return lossIn(path, {
    offset: 0,
    what: 'the table is missing, and the MANIFEST names it',
    after,
    before,
  })
}

/** Returns a damaged place of a file that may have cost records. */
export function lossIn(
  file: string,
  place: Pick<FilesDamage, 'offset' | 'what' | 'after' | 'before'>,
): FilesPart {
  return { kind: 'damage', ...damagedFile(file), mayLose: true, ...place }
}

/** A table, and its entry in the MANIFEST; undefined without a sound MANIFEST. */
export interface TableFile {
  readonly path: string
  readonly listed: LevelTableEntry | undefined
  readonly file: FileBytes
}

/**
 * This many bytes are checked in one turn of the event loop: unpacking and decoding them takes some 5
 * ms.
 */
const readTurnBytes = 64 * kib

async function* tableParts(
  { path, listed, file }: TableFile,
  { clock, records }: Reading,
): AsyncGenerator<FilesPart> {
  const [smallest, largest] = listed === undefined ? [] : keysOfTable(listed)
  const placer = new DamagePlacer(path, smallest)
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
    if (turnBytes < readTurnBytes) continue
    turnBytes = 0
    await nextTurn(clock)
  }
  if (largest !== undefined && !placer.isWaiting && !hasReached(placer.lastKey, largest)) {
    placer.add({ offset: length, what: 'the last keys of the table are missing' })
  }
  yield* placer.end(largest)
}

function hasReached(key: Buffer | undefined, largest: Buffer): boolean {
  return key !== undefined && Buffer.compare(key, largest) >= 0
}

function* unreadableParts(placer: DamagePlacer, { unreadable }: FileBytes): Generator<FilesPart> {
  for (const { offset, length, code } of unreadable) {
    yield* placer.certain({ offset, what: `${length} bytes cannot be read (${code})` })
  }
}

function* trustedParts(
  placer: DamagePlacer,
  block: TableBlock,
  records: RecordCheck,
): Generator<FilesPart> {
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
): Generator<FilesPart> {
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
): Generator<FilesPart> {
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

export interface LogFile extends LogPast {
  readonly path: string
  readonly file: FileBytes
}

async function* logParts(
  { path, file, ...past }: LogFile,
  { clock, records: check }: Reading,
): AsyncGenerator<FilesPart> {
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
    if (turnBytes < readTurnBytes) continue
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
