/**
 * The embedded default `Store`: one LevelDB directory through levelup and leveldown. The only file that holds
 * the handle, and where its callbacks become promises.
 *
 * Life states and the guard against calls after close: store-life.ts. Speed of a write: level-handle.ts.
 * Writes run on threads: which of two at the same time is applied first is not defined, so await the first.
 * `sync` survives power loss, no `sync` survives a crash of this process but not one of the machine.
 *
 * After a failed write LevelDB 1.20 goes on acknowledging writes that are gone at the next start. Whoever sees `write`
 * reject must not write again before `close` and `open`; the store does not keep that memory itself, because the reader
 * of the queue goes on reading through this handle.
 */

import type { Clock } from '../../clock.ts'
import { sleep } from '../../clock.ts'
import { levelLockRetryMs, rangeReadBytesMax } from '../../limits.ts'
import { DirectorySync } from './directory-sync.ts'
import type { LevelHandle, LevelIterator, LevelOptions } from './level-handle.ts'
import { openLevel } from './level-handle.ts'
import type { RangeOptions, Store, StoreEntry, StoreOperation } from '../store.ts'
import { StoreLife } from '../store-life.ts'
import { messageOf } from '../../message-of.ts'

export interface LevelStoreOptions {
  readonly directory: string
  readonly clock: Clock
  /** How long `open` waits for another process to let go: a predecessor that was killed may still be dying. */
  readonly lockWaitMs: number
  /** Whether a database is made where there is none; true if absent. Asked each time the store is opened. */
  readonly mayCreate?: () => Promise<boolean>
  /** In place of fsync of the directory, for tests. */
  readonly syncDirectory?: (directory: string) => Promise<void>
}

/** A worker holds several shards, and a machine up to 256, so each is kept small. */
const levelOptions: Omit<LevelOptions, 'createIfMissing'> = {
  // 200,000 updates of 330 B in synced groups of 1,000: 20 MB on disk and 200-255k/s with Snappy, which
  // runs on LevelDB's own thread; 57 MB and 96-129k/s without, at the same CPU time.
  compression: true,
  // Hot reads are answered from the window in memory; this serves look-ups of idempotency keys.
  cacheSize: 2 << 20,
  // Two of these may be in memory, and one is the log that a start must read again.
  writeBufferSize: 4 << 20,
  // Reads are ranges of a queue, hardly ever single records: smaller indices, a tenth less on disk than 4 KiB.
  blockSize: 16 << 10,
  // File descriptors: 8 shards take 512 of the usual 1,024; each open table also holds its index in memory.
  maxOpenFiles: 64,
}

const emptyValue = Buffer.alloc(0)
const int32Max = 2 ** 31 - 1

export class LevelStore implements Store {
  readonly #options: LevelStoreOptions
  readonly #life: StoreLife
  readonly #names: DirectorySync
  #handle: LevelHandle | undefined

  constructor(options: LevelStoreOptions) {
    this.#options = options
    const { directory, clock, syncDirectory: sync } = options
    this.#names = new DirectorySync({ directory, clock, sync })
    this.#life = new StoreLife({
      name: options.directory,
      open: () => this.#open(),
      close: () => this.#close(),
    })
  }

  open(): Promise<void> {
    return this.#life.open()
  }

  close(): Promise<void> {
    return this.#life.close()
  }

  write(operations: readonly StoreOperation[], options: { readonly sync: boolean }): Promise<void> {
    return this.#call<void>((handle, resolve, reject) => {
      for (const operation of operations) {
        if (operation.key.length === 0)
          return reject(new Error('expected a key of at least one byte'))
      }
      handle.batch(operations, options, (error) => {
        if (error) return reject(error)
        if (!options.sync) return resolve()
        this.#settle(resolve, reject)
      })
    })
  }

  getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]> {
    return this.#call((handle, resolve, reject) => {
      handle.getMany(keys, (error, values) => {
        if (error) reject(error)
        else resolve(values)
      })
    })
  }

  range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    if (options.limit <= 0) return this.#call((_handle, resolve) => resolve([]))
    const keysOnly = options.keysOnly === true
    const valueBytesMax = options.valueBytesMax ?? Number.POSITIVE_INFINITY
    return new Promise((resolve, reject) => {
      const handle = this.#enter(reject)
      if (handle === undefined) return
      const iterator = handle.iterator({
        gte: options.gte,
        lt: options.lt,
        limit: Math.min(options.limit, int32Max),
        reverse: options.reverse === true,
        values: !keysOnly,
        valueAsBuffer: !keysOnly,
        highWaterMark: Math.min(valueBytesMax, rangeReadBytesMax),
      })
      readRange(iterator, { limit: options.limit, valueBytesMax, keysOnly }, (error, entries) => {
        // The reader has its answer one visit to the thread pool before the iterator has ended;
        // `close` waits for the end.
        iterator.end(() => this.#life.leave())
        if (error) reject(error)
        else resolve(entries)
      })
    })
  }

  /** Lets a call in, and out again when it settles. */
  #call<T>(
    start: (
      handle: LevelHandle,
      resolve: (value: T) => void,
      reject: (error: unknown) => void,
    ) => void,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const handle = this.#enter(reject)
      if (handle === undefined) return
      start(
        handle,
        (value) => {
          this.#life.leave()
          resolve(value)
        },
        (error) => {
          this.#life.leave()
          reject(error)
        },
      )
    })
  }

  #enter(reject: (error: unknown) => void): LevelHandle | undefined {
    const refusal = this.#life.enter()
    if (refusal === undefined) return this.#handle
    reject(refusal)
    return undefined
  }

  async #open(): Promise<void> {
    const { directory, clock, lockWaitMs, mayCreate } = this.#options
    const createIfMissing = mayCreate === undefined || (await mayCreate())
    const endMs = clock.monotonicMs() + lockWaitMs
    for (;;) {
      try {
        // A new handle each time: leveldown's state after a failed open is not documented.
        this.#handle = await openLevel(directory, { ...levelOptions, createIfMissing })
        break
      } catch (error) {
        if (!isLocked(error)) {
          // The reason is part of the message: causes are not shown where a server does not start.
          const reason = messageOf(error)
          throw new Error(`cannot open the database in ${directory}: ${reason}`, { cause: error })
        }
        if (clock.monotonicMs() >= endMs) {
          throw new Error(
            `the database in ${directory} is open in another process and stayed so for ${lockWaitMs} ms; ` +
              'stop that process or use another data directory',
            { cause: error },
          )
        }
      }
      await sleep(clock, levelLockRetryMs)
    }
    await this.#opened()
  }

  /** A write is synced once the log that it is in has a name. */
  #settle(resolve: () => void, reject: (error: unknown) => void): void {
    try {
      const naming = this.#names.written()
      if (naming === undefined) resolve()
      else naming.then(resolve, reject)
    } catch (error) {
      reject(error)
    }
  }

  async #opened(): Promise<void> {
    try {
      await this.#names.opened()
    } catch (error) {
      await this.#close()
      throw error
    }
  }

  #close(): Promise<void> {
    return new Promise((resolve, reject) => {
      const handle = this.#handle
      this.#handle = undefined
      if (handle === undefined) return resolve()
      handle.close((error) => {
        if (error) reject(error)
        else resolve()
      })
    })
  }
}

/** LevelDB has no error codes; these are strerror(EAGAIN) of fcntl and its own word for this very process. */
function isLocked(error: unknown): boolean {
  return (
    error instanceof Error &&
    /LOCK: (?:already held by process|Resource temporarily unavailable)/.test(error.message)
  )
}

/**
 * Reads to the end of the range or of the bytes. leveldown hands out entries one a tick; what it has read ahead
 * is taken out of its cache instead, all at once.
 */
function readRange(
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
        // Asking again at the limit would be one more visit to the thread pool.
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
