/**
 * A snapshot of a LevelDB: an iterator, which keeps its view of the database from its creation to its end. The snapshot
 * enters the life of its store for each read only, so that a store can be closed between two reads. The store then ends
 * the snapshot.
 */
import { PostboteError } from '../../kit/errors.ts'
import { rangeReadBytesMax, snapshotStepBytes, snapshotStepEntries } from '../limits.ts'
import type { StoreEntry, StoreSnapshot } from '../store.ts'
import type { StoreLifeCycle } from '../store-life-cycle.ts'
import { type LevelHandle, type LevelIterator, readRange } from './level-handle.ts'

const step = {
  limit: snapshotStepEntries,
  valueBytesMax: snapshotStepBytes,
  keysOnly: false,
}
/** All keys begin with a letter. */
const everything = { gte: Buffer.from([0]), lt: Buffer.from([0xff]) }

export class LevelSnapshot implements StoreSnapshot {
  readonly #life: StoreLifeCycle
  readonly #iterator: LevelIterator
  readonly #onEnded: () => void
  /** Resolves when no read is in progress. */
  #reading: Promise<unknown> = Promise.resolve()
  #ending: Promise<void> | undefined

  /**
   * The store must be open.
   *
   * @param onEnded - called once, when the snapshot holds nothing any more
   */
  constructor(handle: LevelHandle, life: StoreLifeCycle, onEnded: () => void) {
    this.#life = life
    this.#onEnded = onEnded
    this.#iterator = handle.iterator({
      ...everything,
      limit: -1,
      reverse: false,
      values: true,
      valueAsBuffer: true,
      highWaterMark: rangeReadBytesMax,
    })
  }

  next(): Promise<readonly StoreEntry[]> {
    const read = this.#read()
    this.#reading = read.catch(() => undefined)
    return read
  }

  async close(): Promise<void> {
    // A store that is closed, or is being closed, has ended the iterator or will.
    if (this.#ending !== undefined || this.#life.enter() !== undefined) return this.#ending
    try {
      await this.#reading
      await this.end()
    } finally {
      this.#life.leave()
    }
  }

  /** Ends the iterator while no read is in progress. For the store, which closes the database afterward. */
  end(): Promise<void> {
    this.#ending ??= new Promise((resolve) => {
      // It has no error that says more than that it has ended.
      this.#iterator.end(() => {
        this.#onEnded()
        resolve()
      })
    })
    return this.#ending
  }

  #read(): Promise<readonly StoreEntry[]> {
    return new Promise((resolve, reject) => {
      const refusal = this.#ending === undefined ? this.#life.enter() : hasEnded()
      if (refusal !== undefined) {
        reject(refusal)
        return
      }
      readRange(this.#iterator, step, (error, entries) => {
        this.#life.leave()
        if (error) reject(error)
        else resolve(entries)
      })
    })
  }
}

function hasEnded(): PostboteError {
  return new PostboteError('STORE_UNAVAILABLE', { cause: new Error('the snapshot has ended') })
}
