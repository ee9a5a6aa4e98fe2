/**
 * What a store offers whose files this machine holds: making, checking and rescuing them without opening the database.
 * A store without such files, as on another machine, leaves it out. The `directory` of each call is that of one shard.
 *
 * The store does not know what its records mean: a `RecordCheck` tells it which of them are sound.
 */
import type { FileHandle } from 'node:fs/promises'
import type { Clock } from '../kit/clock.ts'
import type { FileDamage } from './shard-damaged.ts'
import type { Store, StoreEntry } from './store.ts'

export interface StoreFiles {
  /** Prepares the directory of a shard that has no database yet. Does not change a shard that has one. */
  makeNew(directory: string): Promise<void>
  /** Returns a store in a directory of its own, which `open` creates. A repair fills it and moves it to its shard. */
  create(directory: string, clock: Clock): Store
  /**
   * Reads the files, also while a server uses them.
   *
   * @returns all damaged places and all readable versions of records, in the order of each file. The reading ends early
   *   when `options.signal` is aborted.
   * @throws the error of the file system if files cannot be listed or opened. A missing file is not an error but damage.
   */
  read(options: ReadShardOptions): AsyncIterable<ShardPart>
  /**
   * Compares the checksums of the files of an open shard with their bytes: all that was not verified within a day.
   *
   * @returns the damage; whatever a compaction has removed meanwhile is none.
   */
  verify(options: VerifyOptions): Promise<VerifiedFiles>
  /** Returns whether the tables of a shard that is closed may be sound. */
  mayBeSound(options: VerifyOptions): Promise<boolean>
  /** Returns a text that changes if somebody changes the files of a shard that is closed. */
  fingerprint(directory: string): Promise<string>
  /** Returns the paths of the copies that were made of damaged files, which an operator moves away. */
  damagedCopies(directory: string): Promise<readonly string[]>
  /**
   * Returns whether the process that had the database open last was rewriting its files when it ended. Damage may have
   * ended it.
   */
  wasCompacting(directory: string): Promise<boolean>
  /** Returns how many bytes an opening may take on the disk, before it gives as many back. */
  roomToOpen(directory: string): Promise<number>
  /** Returns the damage that the error of a call to the store describes; undefined for a failure of another kind. */
  damageOf(error: unknown, directory: string): FileDamage | undefined
  /** Returns whether an error says that the disk has no room. */
  isOutOfRoom(error: unknown): boolean
  /** Returns whether opening failed because of a write, although the error describes a file as damaged. */
  isFailedWrite(error: unknown): Promise<boolean>
}

/** Determines which records are usable. */
export interface RecordCheck {
  /** Returns what is wrong with a record, or undefined for a sound one. `value` is undefined for a deletion. */
  recordFault(key: Buffer, value: Buffer | undefined): string | undefined
  /** Returns whether the checksum in a value also covers its key, so that a matching checksum proves both. */
  isKeyCovered(entry: StoreEntry): boolean
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

export interface ReadShardOptions {
  readonly records: RecordCheck
  /** The directory of the shard. */
  readonly directory: string
  readonly clock: Clock
  /** Maximum read rate in bytes per second; unlimited by default. */
  readonly bytesPerS?: number | undefined
  /** Ends the reading early; the generator then returns. */
  readonly signal?: AbortSignal | undefined
  /** Replaces `pread` in tests. */
  readonly readAt?: ReadAt | undefined
  /** Called with the number of files read and the number of all files. */
  readonly onProgress?: ((filesRead: number, files: number) => void) | undefined
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

/** The thread that verifies. `run` returns undefined if it cannot. */
export interface VerifyThread {
  run(taskOf: () => VerifyTask): Promise<readonly FileFault[] | undefined>
}

export interface VerifyOptions {
  /** The directory of the shard. */
  readonly directory: string
  readonly clock: Clock
  /** Without one, everything is verified in place. */
  readonly thread?: VerifyThread | undefined
  /** Maximum read rate in bytes per second; unlimited by default. */
  readonly bytesPerS?: number | undefined
  /** Ends the verification early. */
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes that are left. */
  readonly onProgress?: ((bytesLeft: number) => void) | undefined
}

export interface VerifiedFiles {
  /** The first `damagesNamedMax`. */
  readonly damages: readonly FileDamage[]
  readonly damagesFound: number
  readonly bytesVerified: number
}

/** One version of a record. The files may hold several of a key, in no order. */
export interface RecordVersion extends StoreEntry {
  /** The version with the largest number is the newest one. */
  readonly sequence: number
  /** Whether this version deletes the record. Its value is then empty. */
  readonly isDeletion: boolean
}

/** A damaged place in the files of a shard. */
export interface ShardDamage {
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

/** What reading the files of a shard yields: damaged places and readable records. */
export type ShardPart =
  | ({ readonly kind: 'damage' } & ShardDamage)
  | { readonly kind: 'entries'; readonly entries: readonly RecordVersion[] }
