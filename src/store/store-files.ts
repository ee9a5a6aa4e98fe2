/**
 * What a store offers whose files this machine holds: making, checking and rescuing them without opening the database.
 * A store without such files, as on another machine, leaves it out. The `directory` of each call is that of one shard.
 *
 * The store does not know what its records mean: a `RecordCheck` tells it which of them are sound.
 */
import type { Clock } from '../kit/clock.ts'
import type { FileFault, FilesPart, Reading, VerifyTask } from '../leveldb-files/files-part.ts'
import type { FileDamage } from './shard-damaged.ts'
import type { Store } from './store.ts'

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
  read(options: ReadShardOptions): AsyncIterable<FilesPart>
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

export interface ReadShardOptions extends Reading {
  /** The directory of the shard. */
  readonly directory: string
  /** Called with the number of files read and the number of all files. */
  readonly onProgress?: ((filesRead: number, files: number) => void) | undefined
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
