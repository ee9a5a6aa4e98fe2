/**
 * Reads one block of a table, damaged or not.
 *
 *     block     contents | type (1): 0 plain, 1 packed by Snappy | masked CRC-32C of contents and type (4 LE)
 *     contents  entries | offsets of the restart points (4 LE each) | their number (4 LE)
 *     entry     bytes shared with the previous key (varint) | further key bytes (varint) | value length (varint)
 *               | further key bytes | value
 *     key       the user key | type (1) and sequence (7), together 8 LE: type 1 is a value, 0 a deletion
 *
 * At a restart point nothing is shared, so reading can continue there after damage. A single flipped bit is restored,
 * because the CRC shows which bit it was.
 */
import { crc32c, findFlippedBit, maskCrc, unmaskCrc } from './crc32c.ts'
import type { RecordVersion } from './files-part.ts'
import { LevelCursor } from './level-cursor.ts'
import { unpackSnappy } from './unpack-snappy.ts'

/** Length of type and CRC after the contents of a block. */
export const blockTrailerBytes = 5
const internalBytes = 8

/** What could be read of a block. */
export interface TableBlock {
  /** Offset in the file, in bytes. */
  readonly offset: number
  /** Length of the contents in bytes, without type and CRC. */
  readonly length: number
  /** The entries that could be read, in their order. */
  readonly entries: readonly RecordVersion[]
  /** Number of entries before the first one that could not be read. */
  readonly unbroken: number
  /** Whether the entries are what was written: the checksum matches, if necessary after restoring one bit. */
  readonly isTrusted: boolean
  /** What is wrong with the block; undefined if it is as it was written. */
  readonly what: string | undefined
}

/** What a block holds: `raw` is a block without internal keys, of which only the checksum is verified. */
export type BlockForm = 'entries' | 'index' | 'raw'

/**
 * Reads what can be read of one block.
 *
 * @param file - the bytes of a table.
 * @param offset - offset of the block's contents.
 * @param length - length of the contents, which may reach past the end of a file that was cut off.
 * @param form - what the block holds. A `raw` block has no entries.
 */
export function readTableBlock(
  file: Buffer,
  offset: number,
  length: number,
  form: BlockForm = 'entries',
): TableBlock {
  const trailerEnd = offset + length + blockTrailerBytes
  if (trailerEnd > file.length) {
    const contents = file.subarray(offset, Math.min(offset + length, file.length))
    return { offset, length, ...salvage(contents), what: 'the block is cut off' }
  }
  const block = file.subarray(offset, trailerEnd)
  if (form === 'raw') {
    const what = hasRightCrc(block) ? undefined : 'checksum mismatch of the block'
    return { offset, length, entries: [], unbroken: 0, isTrusted: what === undefined, what }
  }
  if (hasRightCrc(block)) return decode(block, offset, form)
  const mended = withBitUndone(block)
  if (mended !== undefined) {
    const what = 'checksum mismatch: one bit of the block is flipped'
    return { ...decode(mended, offset, form), what }
  }
  const contents = file.subarray(offset, offset + length)
  return { offset, length, ...salvage(contents), what: 'checksum mismatch of the block' }
}

/** Compares in the order of a table: by user key, and the newest version of a key first. */
export function compareEntries(
  left: Pick<RecordVersion, 'key' | 'sequence'>,
  right: Pick<RecordVersion, 'key' | 'sequence'>,
): number {
  return Buffer.compare(left.key, right.key) || right.sequence - left.sequence
}

/** Splits an internal key into its parts; returns undefined if it is not one. */
function parseInternalKey(
  bytes: Buffer,
): Pick<RecordVersion, 'key' | 'sequence' | 'isDeletion'> | undefined {
  const at = bytes.length - internalBytes
  const type = bytes[at]
  if (at < 0 || type === undefined || type > 1) return undefined
  const sequence = bytes.readUIntLE(at + 1, 4) + bytes.readUIntLE(at + 5, 3) * 2 ** 32
  return { key: bytes.subarray(0, at), sequence, isDeletion: type === 0 }
}

function hasRightCrc(block: Buffer): boolean {
  const end = block.length - blockTrailerBytes + 1
  return maskCrc(crc32c(block, 0, end)) === block.readUInt32LE(end)
}

function withBitUndone(block: Buffer): Buffer | undefined {
  const end = block.length - blockTrailerBytes + 1
  const stored = block.readUInt32LE(end)
  const difference = (stored ^ maskCrc(crc32c(block, 0, end))) >>> 0
  // The difference is a power of two: the flipped bit is in the checksum itself.
  if ((difference & (difference - 1)) === 0) return block
  const flipped = findFlippedBit(block.subarray(0, end), unmaskCrc(stored))
  if (flipped === undefined) return undefined
  const mended = Buffer.from(block)
  mended[flipped.at] = (mended[flipped.at] ?? 0) ^ flipped.mask
  return mended
}

/** Decodes a block whose checksum matches. */
function decode(block: Buffer, offset: number, form: BlockForm): TableBlock {
  const length = block.length - blockTrailerBytes
  const packed = block.subarray(0, length)
  const isPacked = block[length] === 1
  const unpacked = isPacked ? unpackSnappy(packed) : { bytes: packed, isWhole: block[length] === 0 }
  const { entries, unbroken, isWhole } = readEntries(unpacked.bytes, form)
  const what =
    unpacked.isWhole && isWhole
      ? undefined
      : 'the block is malformed, although its checksum matches'
  return { offset, length, entries, unbroken, isTrusted: true, what }
}

/**
 * Decodes damaged contents. The type byte may be damaged too, so both types are tried: the wrong one soon makes no
 * sense.
 */
function salvage(contents: Buffer): Pick<TableBlock, 'entries' | 'unbroken' | 'isTrusted'> {
  const asIs = readEntries(contents)
  const unpacked = readEntries(unpackSnappy(contents).bytes)
  const { entries, unbroken } = asIs.entries.length > unpacked.entries.length ? asIs : unpacked
  return { entries, unbroken, isTrusted: false }
}

interface Entries {
  readonly entries: readonly RecordVersion[]
  readonly unbroken: number
  /** Whether the contents hold nothing but entries and restart points, all in order. */
  readonly isWhole: boolean
}

function readEntries(contents: Buffer, form: BlockForm = 'entries'): Entries {
  const { points, end, isSound } = readRestartPoints(contents)
  const entries: RecordVersion[] = []
  let isWhole = isSound
  let unbroken: number | undefined
  const nextPoints = points.values()
  let nextPoint = nextPoints.next().value
  let keyBefore: Buffer | undefined
  for (let at = 0; at < end; ) {
    while (nextPoint !== undefined && nextPoint < at) {
      // This restart point is in the middle of an entry.
      isWhole = false
      nextPoint = nextPoints.next().value
    }
    if (at === nextPoint) {
      keyBefore = undefined
      nextPoint = nextPoints.next().value
    }
    const read = readEntry(contents, { at, end, keyBefore, form })
    if (read !== undefined && follows(entries.at(-1), read.entry)) {
      entries.push(read.entry)
      keyBefore = read.internalKey
      at = read.next
    } else {
      isWhole = false
      unbroken ??= entries.length
      if (nextPoint === undefined) break
      at = nextPoint
    }
  }
  return { entries, unbroken: unbroken ?? entries.length, isWhole }
}

function follows(before: RecordVersion | undefined, entry: RecordVersion): boolean {
  return before === undefined || compareEntries(before, entry) < 0
}

/**
 * Reads the end of the contents. A block that was cut off has no restart points and is read from its beginning as far
 * as possible.
 */
function readRestartPoints(contents: Buffer): {
  readonly points: readonly number[]
  readonly end: number
  readonly isSound: boolean
} {
  const none = { points: [0], end: contents.length, isSound: false }
  if (contents.length < 4) return none
  const count = contents.readUInt32LE(contents.length - 4)
  const end = contents.length - 4 - count * 4
  if (count < 1 || end < 0) return none
  const points: number[] = []
  for (let index = 0; index < count; index++) {
    const point = contents.readUInt32LE(end + index * 4)
    if (point > end || point < (points.at(-1) ?? 0)) return none
    points.push(point)
  }
  return points[0] === 0 ? { points, end, isSound: true } : none
}

function readEntry(
  contents: Buffer,
  from: {
    readonly at: number
    readonly end: number
    readonly keyBefore: Buffer | undefined
    readonly form: BlockForm
  },
):
  | { readonly entry: RecordVersion; readonly internalKey: Buffer; readonly next: number }
  | undefined {
  const cursor = new LevelCursor(contents, from.at, from.end)
  const shared = cursor.varint()
  const further = cursor.varint()
  const valueLength = cursor.varint()
  if (shared === undefined || further === undefined || valueLength === undefined) return undefined
  if (shared > (from.keyBefore?.length ?? 0)) return undefined
  const keyEnd = cursor.take(further)
  const value = cursor.take(valueLength)
  if (keyEnd === undefined || value === undefined) return undefined
  const internalKey =
    shared === 0 || from.keyBefore === undefined
      ? keyEnd
      : Buffer.concat([from.keyBefore.subarray(0, shared), keyEnd])
  const entry = entryOf(internalKey, value, from.form)
  return entry === undefined ? undefined : { entry, internalKey, next: cursor.at }
}

function entryOf(internalKey: Buffer, value: Buffer, form: BlockForm): RecordVersion | undefined {
  const parsed = parseInternalKey(internalKey)
  if (parsed === undefined) return undefined
  // LevelDB writes no value with a deletion, so a bit of the type was flipped. Only in an index, the key may be that of
  // a deletion, the last one of a block, and the value is the handle of the block.
  const isFlipped = parsed.isDeletion && value.length > 0 && form !== 'index'
  return isFlipped ? undefined : { ...parsed, value }
}

/** Returns the key of a record without what LevelDB adds; undefined if these bytes are none. */
export function userKeyOf(internalKey: Buffer): Buffer | undefined {
  return parseInternalKey(internalKey)?.key
}
