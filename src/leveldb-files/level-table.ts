/**
 * Reads a LevelDB table, damaged or not, from the bytes of its file (LevelDB's doc/table_format.md):
 *
 *     data blocks, in the order of their keys | filter block | metaindex block | index block | footer (48)
 *     filter    which keys each block may hold; LevelDB uses it without verifying its checksum
 *     metaindex where the filter is
 *     index     for each data block, a key that is at or after its last key and before the first key of the next block;
 *               the value is the handle of the block
 *     handle    offset (varint) | length of the contents (varint)
 *     footer    handle of the metaindex | handle of the index | zeros up to byte 40 | magic number (8 LE)
 *
 * If the footer or the index cannot be used, the data blocks are found without them: they follow each other from the
 * beginning of the file, and a block ends where the checksum of everything before it matches. After a damaged block,
 * the search continues at the next place that looks like the beginning of a block and has a matching end.
 */
import { crc32cStep, maskCrc } from './crc32c.ts'
import type { FileFault, RecordCheck, RecordVersion } from './files-part.ts'
import { LevelCursor } from './level-cursor.ts'
import {
  blockTrailerBytes,
  compareEntries,
  readTableBlock,
  type TableBlock,
} from './table-block.ts'
import { unpackSnappy } from './unpack-snappy.ts'

/** Layout of the footer: kEncodedLength and kTableMagicNumber in LevelDB's table/format.h. */
const footerBytes = 48
const handlesBytes = 40
const magic = 0xdb4775248b80fb57n
/** Enough bytes of a block to see the lengths and the kind of its first key. */
const peekedBytes = 16
/** An internal key has so many bytes more than its user key. */
const internalBytes = 8

type Keys = Pick<RecordCheck, 'mayBeKey'>

/**
 * A data block, or damage of the table's structure: footer, index or order. `isTableBlock` tells them apart. Damage of a
 * block is reported in the block.
 */
export type TablePart = FileFault | TableBlock

/**
 * Reads the data blocks of a table.
 *
 * @param file - the bytes of the file.
 * @param records - tells which bytes may begin a key, and so a block.
 * @returns the faults and data blocks in the order of the file. Each block is read when it is requested.
 */
export function* levelTable(file: Buffer, records: Keys): Generator<TablePart> {
  const found = findIndex(file)
  yield* found.faults
  let last: RecordVersion | undefined
  for (const block of found.index === undefined
    ? scanBlocks(file, records)
    : indexedBlocks(file, found.index)) {
    if ('entries' in block && block.isTrusted) {
      const [first] = block.entries
      if (first !== undefined && last !== undefined && compareEntries(last, first) >= 0) {
        yield { offset: block.offset, what: 'the keys of the block are not after those before it' }
      }
      last = block.entries.at(-1) ?? last
    }
    yield block
  }
}

/**
 * Compares the checksum of every block of a table with its bytes, and decodes nothing but the index: some 800 MB per second.
 *
 * @param file - the bytes of the file; if the first ones were not read, only the faults of the others mean anything.
 * @param from - data blocks that begin before this offset are left out.
 */
export function blockFaults(file: Buffer, from = 0): readonly FileFault[] {
  const { index, faults } = findIndex(file)
  const all = [...faults]
  for (const { offset, length } of index ?? []) {
    if (offset < from) continue
    const { what } = readTableBlock(file, offset, length, 'raw')
    if (what !== undefined) all.push({ offset, what })
  }
  return all
}

/** Returns whether a part is a data block. */
export function isTableBlock(part: TablePart): part is TableBlock {
  return 'entries' in part
}

interface Handle {
  readonly offset: number
  readonly length: number
}

interface IndexEntry extends Handle {
  /** At or after the last key of its block. */
  readonly bound: Pick<RecordVersion, 'key' | 'sequence'>
}

function findIndex(file: Buffer): {
  readonly index: readonly IndexEntry[] | undefined
  readonly faults: readonly FileFault[]
} {
  const footerStart = Math.max(0, file.length - footerBytes)
  const footer = readFooter(file.subarray(footerStart))
  if (footer === undefined) {
    const faults = [{ offset: footerStart, what: 'the end of the table is no footer' }]
    return { index: undefined, faults }
  }
  const faults: FileFault[] = []
  const index = readIndex(file, footer, faults)
  const metaindex = readTableBlock(file, footer.metaindex.offset, footer.metaindex.length, 'raw')
  if (metaindex.what !== undefined) {
    faults.push({ offset: metaindex.offset, what: `metaindex: ${metaindex.what}` })
  }
  return { index, faults }
}

function readFooter(
  footer: Buffer,
): { readonly metaindex: Handle; readonly index: Handle } | undefined {
  if (footer.length < footerBytes || footer.readBigUInt64LE(handlesBytes) !== magic)
    return undefined
  const cursor = new LevelCursor(footer, 0, handlesBytes)
  const metaindex = readHandle(cursor)
  const index = readHandle(cursor)
  const isSound = footer.subarray(cursor.at, handlesBytes).every((byte) => byte === 0)
  if (metaindex === undefined || index === undefined || !isSound) return undefined
  return { metaindex, index }
}

function readHandle(cursor: LevelCursor): Handle | undefined {
  const offset = cursor.varint()
  const length = cursor.varint()
  return offset === undefined || length === undefined ? undefined : { offset, length }
}

/**
 * Returns undefined and adds a fault if the index cannot be read or its handles do not cover everything before the
 * metaindex.
 */
function readIndex(
  file: Buffer,
  footer: { readonly metaindex: Handle; readonly index: Handle },
  faults: FileFault[],
): readonly IndexEntry[] | undefined {
  const { offset, length } = footer.index
  const block = readTableBlock(file, offset, length, 'index')
  if (block.what !== undefined) faults.push({ offset, what: `index: ${block.what}` })
  if (!block.isTrusted) return undefined
  const index = indexEntries(block)
  const last = index?.at(-1)
  const dataEnd = last === undefined ? 0 : last.offset + last.length + blockTrailerBytes
  const filterLength = footer.metaindex.offset - blockTrailerBytes - dataEnd
  if (index === undefined || (filterLength < 0 && filterLength !== -blockTrailerBytes)) {
    faults.push({ offset, what: 'the index does not cover the data blocks' })
    return undefined
  }
  if (filterLength >= 0) {
    const { what } = readTableBlock(file, dataEnd, filterLength, 'raw')
    if (what !== undefined) faults.push({ offset: dataEnd, what: `filter: ${what}` })
  }
  return index
}

/** Returns undefined unless all values are handles that follow each other from the beginning of the file. */
function indexEntries(block: TableBlock): readonly IndexEntry[] | undefined {
  const index: IndexEntry[] = []
  let end = 0
  for (const entry of block.entries) {
    const cursor = new LevelCursor(entry.value)
    const handle = readHandle(cursor)
    if (handle === undefined || !cursor.isAtEnd || handle.offset !== end) return undefined
    index.push({ ...handle, bound: entry })
    end = handle.offset + handle.length + blockTrailerBytes
  }
  return index
}

function* indexedBlocks(file: Buffer, index: readonly IndexEntry[]): Generator<TablePart> {
  let boundBefore: IndexEntry['bound'] | undefined
  for (const { offset, length, bound } of index) {
    const block = readTableBlock(file, offset, length)
    const first = block.entries[0]
    const last = block.entries.at(-1)
    if (block.isTrusted && first !== undefined && last !== undefined) {
      const isAfter = boundBefore === undefined || compareEntries(boundBefore, first) < 0
      if (!isAfter || compareEntries(last, bound) > 0) {
        yield { offset, what: 'the block holds keys outside the range that the index says' }
      }
    }
    yield block
    boundBefore = bound
  }
}

/**
 * Scans to the end of the file if necessary: a footer has no checksum, so nothing in it reliably shows where the data
 * ends.
 */
function* scanBlocks(file: Buffer, records: Keys): Generator<TableBlock> {
  for (let at = 0; at < file.length; ) {
    const end = blockEnd(file, at)
    // A damaged block ends where the next good one begins.
    const next = end ?? nextBlockStart(file, at + 1, records)
    const length = (next ?? file.length + blockTrailerBytes) - blockTrailerBytes - at
    const block = readTableBlock(file, at, length)
    // The filter and the metaindex follow the data and hold no such entries. The index follows them.
    if (end !== undefined && block.what !== undefined) return
    if (block.entries.length > 0 && indexEntries(block) !== undefined) return
    yield block
    if (next === undefined) return
    at = next
  }
}

/** Returns the offset after the trailer of the block whose contents begin at `start`: where its checksum matches. */
function blockEnd(file: Buffer, start: number): number | undefined {
  let crc = -1
  for (let at = start; at + blockTrailerBytes <= file.length; at++) {
    const next = file[at] ?? 0
    crc = crc32cStep(crc, next)
    if (next > 1) continue
    // `next` may be the type byte, which the checksum covers.
    if (maskCrc(~crc >>> 0) === file.readUInt32LE(at + 1)) return at + blockTrailerBytes
  }
  return undefined
}

function nextBlockStart(file: Buffer, from: number, records: Keys): number | undefined {
  for (let at = from; at + blockTrailerBytes < file.length; at++) {
    if (looksLikeBlock(file, at, records) && blockEnd(file, at) !== undefined) return at
  }
  return undefined
}

/** The first key of a block shares nothing with a previous key, and is one that a record may have. */
function looksLikeBlock(file: Buffer, at: number, records: Keys): boolean {
  if (file[at] === 0) return looksLikeEntry(file.subarray(at, at + peekedBytes), records)
  const cursor = new LevelCursor(file, at)
  if (cursor.varint() === undefined) return false
  // A packed block begins with a literal, whose first byte is the first byte of the block.
  const tag = file[cursor.at] ?? 1
  if ((tag & 3) !== 0) return false
  const packed = file.subarray(at, at + 4 * peekedBytes)
  const { bytes } = unpackSnappy(packed, peekedBytes)
  return bytes[0] === 0 && looksLikeEntry(bytes, records)
}

function looksLikeEntry(bytes: Buffer, records: Keys): boolean {
  const cursor = new LevelCursor(bytes, 1)
  const keyBytes = (cursor.varint() ?? 0) - internalBytes
  const hasValue = cursor.varint() !== undefined
  return hasValue && records.mayBeKey(bytes[cursor.at] ?? 0, keyBytes)
}
