/** What is asked of LevelDB's files and found in them. Nothing here knows what the records mean: a `RecordCheck` tells. */
import type { FileHandle } from 'node:fs/promises'
import type { Clock } from '../kit/clock.ts'

/** A record. */
export interface Entry {
  readonly key: Buffer
  readonly value: Buffer
}

/** Determines which records are usable. */
export interface RecordCheck {
  /** Returns what is wrong with a record, or undefined for a sound one. `value` is undefined for a deletion. */
  recordFault(key: Buffer, value: Buffer | undefined): string | undefined
  /** Returns whether the checksum in a value also covers its key, so that a matching checksum proves both. */
  isKeyCovered(entry: Entry): boolean
  /** Returns whether a key may begin with this byte and have this length in bytes. */
  mayBeKey(firstByte: number, length: number): boolean
}

/** A range of a file in bytes. */
export interface FileSpan {
  readonly offset: number
  readonly length: number
}

/** Fills `target` from `span.offset` on and returns the number of bytes read. */
export type ReadAt = (file: FileHandle, target: Buffer, span: FileSpan) => Promise<number>

/** How files are read. */
export interface Reading {
  readonly records: RecordCheck
  readonly clock: Clock
  /** Maximum read rate in bytes per second; unlimited by default. */
  readonly bytesPerS?: number | undefined
  /** Ends the reading early; the generator then returns. */
  readonly signal?: AbortSignal | undefined
  /** Replaces `pread` in tests. */
  readonly readAt?: ReadAt | undefined
}

/** A file to verify. */
export interface VerifyTask {
  readonly path: string
  /** All of a table, or only its filter, index and footer; a log, or the log that may still be written. */
  readonly part: 'whole' | 'end' | 'log' | 'last log'
  /** The size of a table according to the list of files. */
  readonly bytes: number
}

/** A place of a file that is not as it was written. */
export interface FileFault {
  /** In bytes. */
  readonly offset: number
  /** What was found, in words for the operator. */
  readonly what: string
}

/** One version of a record. The files may hold several of a key, in no order. */
export interface RecordVersion extends Entry {
  /** The version with the largest number is the newest one. */
  readonly sequence: number
  /** Whether this version deletes the record. Its value is then empty. */
  readonly isDeletion: boolean
}

/** A damaged place in the files of a database. */
export interface FilesDamage {
  readonly file: string
  /** Whether the file is a log: it holds the newest records, in the order in which they were written. */
  readonly isLog: boolean
  /** Offset in the file, in bytes, of the damaged block or record. */
  readonly offset: number
  /** What was found, in words for the operator. */
  readonly what: string
  /** Whether records may be lost; false if everything that the damage affects could be read in another way. */
  readonly mayLose: boolean
  /** The key of the record, if a single record is damaged. */
  readonly key?: Buffer | undefined
  /**
   * The last readable key before the damage. Records of a table that are lost have keys between `after` and `before`;
   * for a missing table these are its first and last keys. Records of a log that are lost were written between the
   * two.
   */
  readonly after?: Buffer | undefined
  /** The first readable key after the damage. */
  readonly before?: Buffer | undefined
}

/** What reading the files yields: damaged places and readable records. */
export type FilesPart =
  | ({ readonly kind: 'damage' } & FilesDamage)
  | { readonly kind: 'entries'; readonly entries: readonly RecordVersion[] }
