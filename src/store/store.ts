/**
 * The port to one ordered key-value database: one directory, one opener, byte keys and values.
 *
 * Implementations: `LevelStore` (the embedded default) and `MemoryStore` (for tests). Both pass
 * test/contract/store.ts in every life state. Keys are ordered bytewise.
 */

export type StoreOperation =
  | { readonly type: 'put'; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: Buffer }

export interface StoreEntry {
  readonly key: Buffer
  readonly value: Buffer
}

export interface RangeOptions {
  /** First key that belongs to the range. */
  readonly gte: Buffer
  /** First key behind the range. */
  readonly lt: Buffer
  /** At most this many entries. */
  readonly limit: number
  /** Stop after the entry with which the values read reach this many bytes. */
  readonly valueBytesMax?: number
  /** From the end of the range backwards. */
  readonly reverse?: boolean
  /** Values come back empty and are not read. */
  readonly keysOnly?: boolean
}

export interface Store {
  /** Makes the database usable, creating it where it is missing. Rejects where another process has it open. */
  open(): Promise<void>
  /**
   * Applies all operations or none. With `sync` the promise resolves once they survive power loss; without
   * it they survive a crash of the process only.
   */
  write(operations: readonly StoreOperation[], options: { readonly sync: boolean }): Promise<void>
  /** The values of `keys`, in their order; undefined where a key is absent. */
  getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]>
  /** Entries of a range in order, from one consistent view. */
  range(options: RangeOptions): Promise<readonly StoreEntry[]>
  /** Waits for what is under way, then refuses every later call. Idempotent. */
  close(): Promise<void>
}
