/**
 * The port to one ordered key-value database: one directory, one process that has it open, keys and values of bytes.
 * Keys are ordered bytewise.
 *
 * `LevelStore` is the embedded default, `PgStore` keeps shards in PostgreSQL, `MemoryStore` is for tests. All pass test/contract/store.ts in every state
 * of the life cycle.
 */
import { messageOf } from '../kit/errors.ts'

/** One change in a batch. */
export type StoreOperation =
  | { readonly type: 'put'; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: Buffer }

/**
 * A put whose key and value follow each other in a buffer of many. A store reads each of them once: views that were made
 * before would live as long as the write, and the collection of garbage took a quarter of the CPU of pushed updates.
 */
export class EncodedPut {
  readonly type = 'put'
  readonly #bytes: Buffer
  readonly #start: number
  readonly #keyEnd: number
  readonly #end: number

  constructor(bytes: Buffer, place: { start: number; keyEnd: number; end: number }) {
    this.#bytes = bytes
    this.#start = place.start
    this.#keyEnd = place.keyEnd
    this.#end = place.end
  }

  get key(): Buffer {
    return this.#bytes.subarray(this.#start, this.#keyEnd)
  }

  get value(): Buffer {
    return this.#bytes.subarray(this.#keyEnd, this.#end)
  }
}

/** A key and its value. */
export interface StoreEntry {
  readonly key: Buffer
  readonly value: Buffer
}

/** A write of which nothing was stored, for certain: the database refused it. */
export class WriteRefused extends Error {
  constructor(cause: unknown) {
    super(`the database refused a write: ${messageOf(cause)}`, { cause })
    this.name = 'WriteRefused'
  }
}

/** Which entries to read. */
export interface RangeOptions {
  /** First key of the range. */
  readonly gte: Buffer
  /** First key after the range. */
  readonly lt: Buffer
  /** Maximum number of entries. */
  readonly limit: number
  /** The read stops after the entry with which the values reach this number of bytes. */
  readonly valueBytesMax?: number
  /** Reads from the end of the range toward its beginning. */
  readonly reverse?: boolean
  /** Values are not read and come back empty. */
  readonly keysOnly?: boolean
}

/** A range of keys, up to and including `last`. */
export interface KeyRange {
  readonly first: Buffer
  readonly last: Buffer
}

/** What `purge` needs. */
export interface PurgeOptions {
  readonly ranges: readonly KeyRange[]
  /**
   * Writes a deletion of a key of the range, or of those around it, that no entry has, and none will ever have.
   *
   * @returns false if there is no such key, so that nothing in the range was ever deleted
   */
  readonly mark: (range: KeyRange) => Promise<boolean>
}

/** One consistent view of all entries of a store, read in steps. Writes after its creation do not change it. */
export interface StoreSnapshot {
  /**
   * Reads on. Call it again only after the last call has settled.
   *
   * @returns the next entries in the order of their keys: at most `snapshotStepEntries`, and the step ends with the entry
   *   with which the values reach `snapshotStepBytes`. No entries: that was all.
   * @throws PostboteError STORE_UNAVAILABLE after `close` of the snapshot or of the store, or the error of the database.
   */
  next(): Promise<readonly StoreEntry[]>
  /** Frees what the snapshot holds. Idempotent. */
  close(): Promise<void>
}

/**
 * The port to the database. Until `open` and after `close`, every other call rejects with PostboteError
 * STORE_UNAVAILABLE.
 */
export interface Store {
  /**
   * Makes the database usable; creates it if it is missing and the options of the store allow that. Has no effect if
   * the store is open.
   *
   * @throws NotOwnerError if another process that is alive owns the database; Error if it cannot be opened or read for
   *   another reason.
   */
  open(): Promise<void>
  /**
   * Applies all operations or none. Later operations on a key override earlier ones.
   *
   * @param operations - if one has an empty key, the call rejects and applies nothing.
   * @param options.sync - true: the promise resolves when the operations survive a power loss. False: they survive
   *   only a crash of this process.
   * @throws WriteRefused if nothing was stored. The outcome of a write that ends with any other error is unknown. After
   *   either, do not write again before `close` and `open`.
   */
  write(operations: readonly StoreOperation[], options: { readonly sync: boolean }): Promise<void>
  /**
   * Reads single values.
   *
   * @returns the values of `keys`, in the given order; undefined for an absent key.
   * @throws the error of the database if a file cannot be read.
   */
  getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]>
  /**
   * Reads entries of a range, from one consistent view: of one moment between the call and its result.
   *
   * @returns the entries in the order of their keys, or in the opposite order with `reverse`.
   * @throws the error of the database if a file cannot be read.
   */
  range(options: RangeOptions): Promise<readonly StoreEntry[]>
  /**
   * Begins to read all entries. As long as the snapshot is open, the database cannot free what is overwritten or deleted:
   * close it soon. `close` of the store ends it.
   *
   * @returns a view of one moment between the call and its result.
   */
  snapshot(): Promise<StoreSnapshot>
  /**
   * Takes what was deleted or overwritten in some ranges out of the files, where it otherwise stays for a while. Snapshots that are
   * open end, because they would keep it. The copies of damaged files go, too, because nobody can tell what is in them.
   *
   * @returns the paths of the removed copies, relative to the directory that holds the shards
   * @throws the error of the database, or Error if a file could not be replaced.
   */
  purge(options: PurgeOptions): Promise<readonly string[]>
  /**
   * Frees the room on the disk that deleted entries of a range still take. Absent if the database does so by itself. It reads
   * and writes what the range has, which may take seconds.
   */
  freeRoom?(range: Pick<RangeOptions, 'gte' | 'lt'>): Promise<void>
  /** Waits for calls in progress, then refuses every later call. Idempotent. */
  close(): Promise<void>
}
