/**
 * The embedded default `Store`: one LevelDB directory, opened through levelup and leveldown. Only this file and its
 * snapshots (level-snapshot.ts) hold the handle, and they turn callbacks into promises.
 *
 * store-life-cycle.ts has the states and refuses calls after close. level-handle.ts explains the speed of a write. Writes
 * run on threads, and the order in which concurrent writes are applied is not defined: await the first one. A write
 * with `sync` survives a power loss; one without survives a crash of this process but not of the machine.
 *
 * After a failed write, LevelDB 1.20 continues to acknowledge writes that are gone at the next start. When `write`
 * rejects, do not write again before `close` and `open`. The store does not enforce this, because reads of the queue
 * continue through this handle.
 */
import type { Clock } from '../../kit/clock.ts'
import { sleep } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { Mutex } from '../../kit/mutex.ts'
import { rangeReadBytesMax } from '../limits.ts'
import {
  EncodedPut,
  type KeyRange,
  type PurgeOptions,
  type RangeOptions,
  type Store,
  type StoreEntry,
  type StoreOperation,
  type StoreSnapshot,
} from '../store.ts'
import { StoreLifeCycle } from '../store-life-cycle.ts'
import { recordClose } from './close-record.ts'
import { DirectorySync } from './directory-sync.ts'
import { removeCopies } from './incidents.ts'
import { type LevelHandle, type LevelOptions, openLevel, readRange } from './level-handle.ts'
import { purgeLevel } from './level-purge.ts'
import { LevelSnapshot } from './level-snapshot.ts'

export interface LevelStoreOptions {
  readonly directory: string
  readonly clock: Clock
  /**
   * How long `open` waits for another process to release the database, in milliseconds: a predecessor that was killed
   * may not be gone yet.
   */
  readonly lockWaitMs: number
  /**
   * Called before every opening, with the error of the write that has failed since the last one. Returns whether a missing
   * database may be created, which it may by default. If this rejects, LevelDB does not see the files.
   */
  readonly beforeOpening?: (failedWrite: unknown) => Promise<boolean>
  /** Replaces leveldown in tests. */
  readonly openLevel?: typeof openLevel
  /** Replaces fsync of the directory in tests. */
  readonly syncDirectory?: (directory: string) => Promise<void>
}

/** Calls in progress. */
interface Calls {
  count: number
  /** Called when the last of them has ended. */
  ended: (() => void) | undefined
}

/** Each shard is kept small, because a worker holds several and a machine up to 256. */
const levelOptions: Omit<LevelOptions, 'createIfMissing'> = {
  // 200,000 updates of 330 bytes in synced groups of 1,000: 20 MB on disk and 200-255k updates/s with Snappy, which
  // runs on LevelDB's own thread; 57 MB and 96-129k updates/s without it, at the same CPU time.
  compression: true,
  // Hot reads come from the window in memory. This cache serves look-ups of idempotency keys.
  cacheSize: 2 << 20,
  // Up to two of these buffers may be in memory, and one is the size of the log that a start must replay.
  writeBufferSize: 4 << 20,
  // Reads are ranges of a queue and rarely single records. Larger blocks make smaller indexes: a tenth less on disk
  // than with 4 KiB.
  blockSize: 16 << 10,
  // Limits file descriptors: 8 shards use 512 of the usual 1,024. Each open table also holds its index in memory.
  maxOpenFiles: 64,
}

const int32Max = 2 ** 31 - 1

/**
 * A database that another process still has open is tried again after this time. Chosen: 100 attempts within
 * `storeLockWaitMs`.
 */
const levelLockRetryMs = 50

export class LevelStore implements Store {
  readonly #options: LevelStoreOptions
  readonly #life: StoreLifeCycle
  readonly #names: DirectorySync
  readonly #snapshots = new Set<LevelSnapshot>()
  readonly #purges = new Mutex()
  /** The calls that have begun since the last purge asked, except for snapshots. */
  #calls: Calls = { count: 0, ended: undefined }
  #handle: LevelHandle | undefined
  /** The error of a write that has failed since the database was opened: its log may have ended in the middle of a record. */
  #failedWrite: unknown

  constructor(options: LevelStoreOptions) {
    this.#options = options
    const { directory, clock, syncDirectory: sync } = options
    this.#names = new DirectorySync(directory, clock, sync)
    this.#life = new StoreLifeCycle({
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
        if (!(operation instanceof EncodedPut) && operation.key.length === 0)
          return reject(new Error('expected a key of at least one byte'))
      }
      handle.batch(operations, options, (error) => {
        if (error) {
          this.#failedWrite = error
          return reject(error)
        }
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
      const calls = this.#begin()
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
        // The caller gets the entries before the iterator has ended, which takes another call on the thread pool.
        // `close` waits for that end.
        iterator.end(() => this.#end(calls))
        if (error) reject(error)
        else resolve(entries)
      })
    })
  }

  snapshot(): Promise<StoreSnapshot> {
    return this.#call((handle, resolve) => {
      const snapshot = new LevelSnapshot(handle, this.#life, () => this.#snapshots.delete(snapshot))
      this.#snapshots.add(snapshot)
      resolve(snapshot)
    })
  }

  freeRoom({ gte, lt }: Pick<RangeOptions, 'gte' | 'lt'>): Promise<void> {
    return this.#compact({ first: gte, last: lt })
  }

  purge(options: PurgeOptions): Promise<readonly string[]> {
    return this.#purges.run(() => this.#purge(options))
  }

  /** Each step is a call of its own, so `close` waits for one of them only. */
  async #purge(options: PurgeOptions): Promise<readonly string[]> {
    const { directory } = this.#options
    await purgeLevel(
      directory,
      options,
      (range) => this.#compact(range),
      () => this.#readsEnded(),
    )
    return this.#call((_handle, resolve, reject) => {
      removeCopies(directory).then(resolve, reject)
    })
  }

  #compact({ first, last }: KeyRange): Promise<void> {
    return this.#call<void>((handle, resolve, reject) => {
      handle.compactRange(first, last, (error) => {
        if (error) reject(error)
        else resolve()
      })
    })
  }

  /** Ends the snapshots, and waits for the calls that are in progress. */
  async #readsEnded(): Promise<void> {
    await Promise.all(Array.from(this.#snapshots, (snapshot) => snapshot.close()))
    const calls = this.#calls
    if (calls.count === 0) return
    this.#calls = { count: 0, ended: undefined }
    await new Promise<void>((resolve) => {
      calls.ended = resolve
    })
  }

  #begin(): Calls {
    this.#calls.count += 1
    return this.#calls
  }

  #end(calls: Calls): void {
    calls.count -= 1
    if (calls.count === 0) calls.ended?.()
    this.#life.leave()
  }

  /** Admits a call, and releases it when it settles. */
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
      const calls = this.#begin()
      start(
        handle,
        (value) => {
          this.#end(calls)
          resolve(value)
        },
        (error) => {
          this.#end(calls)
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
    const {
      directory,
      clock,
      lockWaitMs,
      beforeOpening,
      openLevel: openHandle = openLevel,
    } = this.#options
    const createIfMissing = beforeOpening === undefined || (await beforeOpening(this.#failedWrite))
    const endMs = clock.monotonicMs() + lockWaitMs
    for (;;) {
      try {
        // Creates a new handle for each attempt, because the state of leveldown after a failed open is not
        // documented.
        this.#handle = await openHandle(directory, { ...levelOptions, createIfMissing })
        this.#failedWrite = undefined
        break
      } catch (error) {
        if (!isLocked(error)) {
          // The message includes the reason, because causes are not shown when a server fails to start.
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

  /** A write is synced when the name of its log is durable. */
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
      await this.#closeHandle()
      throw error
    }
  }

  async #close(): Promise<void> {
    await this.#closeHandle()
    // Without the record, the next opening judges the files as after a crash.
    if (this.#failedWrite === undefined)
      await recordClose(this.#options.directory).catch(() => undefined)
  }

  async #closeHandle(): Promise<void> {
    // No read of them is in progress any more. An iterator that outlives its database is a segmentation fault.
    await Promise.all(Array.from(this.#snapshots, (snapshot) => snapshot.end()))
    await new Promise<void>((resolve, reject) => {
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

/**
 * LevelDB has no error codes. These texts are strerror(EAGAIN) of fcntl and LevelDB's own message for the same
 * process.
 */
function isLocked(error: unknown): boolean {
  return (
    error instanceof Error &&
    /LOCK: (?:already held by process|Resource temporarily unavailable)/.test(error.message)
  )
}
