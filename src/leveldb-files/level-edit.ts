/**
 * Decodes one record of a `MANIFEST-*` file: an edit of LevelDB's list of files (version_edit.cc of LevelDB 1.20).
 *
 *     edit    tag (varint) and the fields that belong to it, repeated
 */
import { LevelCursor } from './level-cursor.ts'

/** A table as listed in the MANIFEST. */
export interface LevelTableEntry {
  /** 0 to 6. Tables of level 0 may overlap; tables of any other level do not. */
  readonly level: number
  /** The file is named `<number with at least six digits>.ldb`, or `.sst` if an old version wrote it. */
  readonly number: number
  /** Size of the file in bytes. */
  readonly size: number
  /** First key of the table, an internal key: the user key, then 8 bytes of sequence and type. */
  readonly smallest: Buffer
  /** Last key of the table, an internal key. */
  readonly largest: Buffer
}

/** An edit. Absent fields stay as they were. */
export interface LevelEdit {
  /** Logs with smaller numbers are already in tables, except `previousLog`. */
  readonly log?: number
  readonly previousLog?: number
  readonly nextFile?: number
  readonly lastSequence?: number
  readonly deletedTables: readonly Pick<LevelTableEntry, 'level' | 'number'>[]
  readonly newTables: readonly LevelTableEntry[]
}

type Mutable<T> = { -readonly [Field in keyof T]: T[Field] }

interface Draft extends Mutable<Omit<LevelEdit, 'deletedTables' | 'newTables'>> {
  readonly deletedTables: Pick<LevelTableEntry, 'level' | 'number'>[]
  readonly newTables: LevelTableEntry[]
}

/**
 * Decodes an edit.
 *
 * @param payload - one complete record of a MANIFEST.
 * @returns undefined if the record cannot be decoded to its end.
 */
export function decodeLevelEdit(payload: Buffer): LevelEdit | undefined {
  const cursor = new LevelCursor(payload)
  const draft: Draft = { deletedTables: [], newTables: [] }
  while (!cursor.isAtEnd) {
    const read = fieldsOfTag.get(cursor.varint() ?? -1)
    if (read === undefined || !read(cursor, draft)) return undefined
  }
  return draft
}

/** By tag (version_edit.cc): reads the fields after the tag into the draft. Returns false if they cannot be read. */
const fieldsOfTag: ReadonlyMap<number, (cursor: LevelCursor, draft: Draft) => boolean> = new Map([
  [1, skipComparator],
  [2, numberReader('log')],
  [3, numberReader('nextFile')],
  [4, numberReader('lastSequence')],
  [5, skipCompactionPointer],
  [6, readDeletedTable],
  [7, readNewTable],
  [9, numberReader('previousLog')],
])

function numberReader(field: 'log' | 'nextFile' | 'lastSequence' | 'previousLog') {
  return (cursor: LevelCursor, draft: Draft): boolean => {
    const number = cursor.varint()
    if (number === undefined) return false
    draft[field] = number
    return true
  }
}

/** Skips the name of the order of the keys, which is LevelDB's own. */
function skipComparator(cursor: LevelCursor): boolean {
  return cursor.text() !== undefined
}

/** Skips a level and a key. */
function skipCompactionPointer(cursor: LevelCursor): boolean {
  return cursor.varint() !== undefined && cursor.text() !== undefined
}

function readDeletedTable(cursor: LevelCursor, draft: Draft): boolean {
  const level = cursor.varint()
  const number = cursor.varint()
  if (level === undefined || number === undefined) return false
  draft.deletedTables.push({ level, number })
  return true
}

function readNewTable(cursor: LevelCursor, draft: Draft): boolean {
  const level = cursor.varint()
  const number = cursor.varint()
  const size = cursor.varint()
  const smallest = cursor.text()
  const largest = cursor.text()
  if (level === undefined || number === undefined || size === undefined) return false
  if (smallest === undefined || largest === undefined) return false
  draft.newTables.push({ level, number, size, smallest, largest })
  return true
}
