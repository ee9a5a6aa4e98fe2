/**
 * One LevelDB opened through levelup, typed as the subset that `LevelStore` uses.
 *
 * The cost of levelup itself is too small to measure. leveldown's `batch(array)` is expensive: it clones every
 * operation and then asks V8 for each of its properties by name. Per operation of 350 bytes on the main thread, in
 * batches of 10,000: 1.2-2.0 us as shipped, 1.0 us without the clones, 0.5 us with one native call for each operation
 * into a native batch. So `batch` of the instance is replaced by the last variant. It reuses its native batch from
 * write to write, because a dropped native batch holds its bytes until V8, which does not know about them, collects
 * its wrapper. The underscored methods are abstract-leveldown's contract with its implementations; the version is
 * pinned.
 */

// oxlint-disable no-underscore-dangle -- abstract-leveldown gives these names to the methods of implementations

import leveldown from 'leveldown'
import levelup from 'levelup'
import type { StoreEntry, StoreOperation } from '../store.ts'
import { mib } from '../../kit/limits.ts'

type Done = (error?: Error | null) => void

export interface LevelHandle {
  batch(
    operations: readonly StoreOperation[],
    options: { readonly sync: boolean },
    done: Done,
  ): void
  getMany(
    keys: readonly Buffer[],
    done: (error: Error | null | undefined, values: (Buffer | undefined)[]) => void,
  ): void
  iterator(options: LevelIteratorOptions): LevelIterator
  /** Writes what is in memory to tables, then moves the tables with keys from `start` to `end` to the last level that has such. */
  compactRange(start: Buffer, end: Buffer, done: Done): void
  close(done: Done): void
}

export interface LevelIterator {
  /** Entries that were read ahead and not returned yet: value, key, value, key, with the next entry last. */
  cache: Buffer[] | null
  next(done: (error?: Error | null, key?: Buffer, value?: Buffer) => void): void
  end(done: Done): void
}

export interface LevelIteratorOptions {
  readonly gte: Buffer
  readonly lt: Buffer
  readonly limit: number
  readonly reverse: boolean
  /** If false, values are not read and come back empty. */
  readonly values: boolean
  /** If false, no buffer is created for a value that is not read; an empty string replaces it. */
  readonly valueAsBuffer: boolean
  /** Number of bytes that one call on the thread pool reads ahead. */
  readonly highWaterMark: number
}

/** The option names are leveldown's. `levelOptions` in level-store.ts explains the values. */
export interface LevelOptions {
  readonly createIfMissing: boolean
  readonly compression: boolean
  readonly cacheSize: number
  readonly writeBufferSize: number
  readonly blockSize: number
  readonly maxOpenFiles: number
}

interface NativeBatch {
  _put(key: Buffer, value: Buffer): void
  _del(key: Buffer): void
  _clear(): void
  _write(options: { readonly sync: boolean }, done: Done): void
}

interface LevelDown {
  batch: LevelHandle['batch']
  _chainedBatch(): NativeBatch
}

/** Rejects with levelup's OpenError, which has LevelDB's message. */
export function openLevel(directory: string, options: LevelOptions): Promise<LevelHandle> {
  return new Promise((resolve, reject) => {
    const database = leveldown(directory)
    // oxlint-disable-next-line no-unsafe-type-assertion -- the published types leave the inner methods out
    useNativeBatches(database as unknown as LevelDown)
    const level = levelup(database, { ...options }, (error) => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- typed as the subset we use
      const handle = level as unknown as LevelHandle
      if (error) reject(error)
      else resolve(handle)
    })
  })
}

/**
 * A native batch that holds no more than this many bytes is reused for the next write. A larger one is freed after its
 * write, because every shard keeps a batch.
 */
const levelBatchBytesKeptMax = 4 * mib

function useNativeBatches(database: LevelDown): void {
  // Taken while a write uses it, so that a concurrent write creates another one.
  let spare: NativeBatch | undefined
  database.batch = (operations, options, done) => {
    const batch = spare ?? database._chainedBatch()
    spare = undefined
    const bytes = fill(batch, operations)
    batch._write(options, (error) => {
      if (bytes <= levelBatchBytesKeptMax) {
        batch._clear()
        spare = batch
      }
      done(error)
    })
  }
}

function fill(batch: NativeBatch, operations: readonly StoreOperation[]): number {
  let bytes = 0
  for (const operation of operations) {
    const { key } = operation
    bytes += key.length
    if (operation.type === 'put') {
      const { value } = operation
      bytes += value.length
      batch._put(key, value)
    } else {
      batch._del(key)
    }
  }
  return bytes
}

const emptyValue = Buffer.alloc(0)

/**
 * Reads to the end of the range or to the byte limit. leveldown returns one entry for each tick; entries that it has
 * read ahead are taken directly from its cache instead.
 */
export function readRange(
  iterator: LevelIterator,
  limits: { readonly limit: number; readonly valueBytesMax: number; readonly keysOnly: boolean },
  done: (error: Error | null | undefined, entries: StoreEntry[]) => void,
): void {
  const entries: StoreEntry[] = []
  let valueBytes = 0
  visit()

  function visit(): void {
    iterator.next((error, firstKey, firstValue) => {
      let key = firstKey
      let value = firstValue
      if (error || key === undefined) return done(error, entries)
      while (key !== undefined && value !== undefined) {
        entries.push({ key, value: limits.keysOnly ? emptyValue : value })
        valueBytes += value.length
        // Another `next` at the limit would be one more call on the thread pool.
        if (valueBytes >= limits.valueBytesMax || entries.length >= limits.limit) {
          return done(null, entries)
        }
        key = iterator.cache?.pop()
        value = iterator.cache?.pop()
      }
      visit()
    })
  }
}
