/**
 * One opened LevelDB behind levelup, typed as the part of it that `LevelStore` uses.
 *
 * levelup adds nothing that rose above the noise. What costs is below it: leveldown's `batch(array)` clones every
 * operation and then asks V8 for each of its properties by name. Per operation of 350 B on the main thread, in
 * batches of 10,000: 1.2-2.0 us as shipped, 1.0 without the clones, 0.5 with one native call an operation into a
 * native batch. So `batch` of the instance is replaced by the last, with a native batch that is kept from write
 * to write: a dropped one holds its bytes until V8, which does not know about them, collects its wrapper.
 * The underscored methods are abstract-leveldown's contract with its implementations; the version is pinned.
 */

// oxlint-disable no-underscore-dangle -- abstract-leveldown names the methods for implementations so

import leveldown from 'leveldown'
import levelup from 'levelup'
import { levelBatchBytesKeptMax } from '../../limits.ts'
import type { StoreOperation } from '../store.ts'

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
  close(done: Done): void
}

export interface LevelIterator {
  /** Entries already read but not handed out: value, key, value, key, the next one last. */
  cache: Buffer[] | null
  next(done: (error?: Error | null, key?: Buffer, value?: Buffer) => void): void
  end(done: Done): void
}

export interface LevelIteratorOptions {
  readonly gte: Buffer
  readonly lt: Buffer
  readonly limit: number
  readonly reverse: boolean
  /** Without it what stands for a value is empty. */
  readonly values: boolean
  /** False saves making a buffer of each value that is not read; an empty text stands for it then. */
  readonly valueAsBuffer: boolean
  /** Bytes read ahead by one visit to the thread pool. */
  readonly highWaterMark: number
}

/** leveldown's own names; see `levelOptions` in level-store.ts for the values. */
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

/** Rejects with levelup's OpenError, whose message is LevelDB's. */
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

function useNativeBatches(database: LevelDown): void {
  // Taken while a write uses it, so that a second write at the same time gets another.
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
    bytes += operation.key.length
    if (operation.type === 'put') {
      bytes += operation.value.length
      batch._put(operation.key, operation.value)
    } else {
      batch._del(operation.key)
    }
  }
  return bytes
}
