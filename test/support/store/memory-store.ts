/**
 * A `Store` in memory, for tests and the simulator: a sorted array with the semantics of `LevelStore`, without a
 * disk.
 *
 * Its contents outlive `close`, so that a test can reopen it. It can undo writes that were never synced:
 * `loseUnsynced` simulates a power loss. As in LevelDB's log, a synced write also makes all earlier writes durable.
 * Inserting moves the rest of the array, which is fast enough up to about 100,000 entries.
 */
import { PostboteError } from '../../../src/kit/errors.ts'
import { snapshotStepBytes, snapshotStepEntries } from '../../../src/store/limits.ts'
import type {
  RangeOptions,
  Store,
  StoreEntry,
  StoreOperation,
  StoreSnapshot,
} from '../../../src/store/store.ts'
import { StoreLifeCycle } from '../../../src/store/store-life-cycle.ts'

export interface MemoryStoreOptions {
  /** While this returns an error, `open` rejects with it. */
  readonly openFailure?: () => Error | undefined
}

const emptyValue = Buffer.alloc(0)

export class MemoryStore implements Store {
  readonly #life: StoreLifeCycle
  readonly #entries: StoreEntry[] = []
  /** How often it was opened. */
  #lives = 0
  /** Operations that restore the last synced state, to be applied in reverse order. */
  #undo: StoreOperation[] = []

  constructor(options: MemoryStoreOptions = {}) {
    this.#life = new StoreLifeCycle({
      name: 'in memory',
      open: async () => {
        const failure = options.openFailure?.()
        if (failure !== undefined) throw failure
        this.#lives++
      },
      close: async () => undefined,
    })
  }

  /** Number of entries, including those not synced; for tests. */
  get size(): number {
    return this.#entries.length
  }

  /** Simulates a power loss: undoes all writes since the last synced one. Works in every state. */
  loseUnsynced(): void {
    for (const operation of this.#undo.toReversed()) this.#apply(operation)
    this.#undo = []
  }

  open(): Promise<void> {
    return this.#life.open()
  }

  close(): Promise<void> {
    return this.#life.close()
  }

  write(operations: readonly StoreOperation[], options: { readonly sync: boolean }): Promise<void> {
    return this.#call(() => {
      if (operations.some((operation) => operation.key.length === 0)) {
        throw new Error('expected a key of at least one byte')
      }
      for (const operation of operations) this.#undo.push(this.#apply(operation))
      if (options.sync) this.#undo = []
    })
  }

  getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]> {
    return this.#call(() =>
      keys.map((key) => {
        const entry = this.#entries[this.#firstNotBelow(key)]
        return entry !== undefined && entry.key.equals(key) ? Buffer.from(entry.value) : undefined
      }),
    )
  }

  range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    return this.#call(() => {
      const inside = this.#entries.slice(
        this.#firstNotBelow(options.gte),
        this.#firstNotBelow(options.lt),
      )
      return take(options.reverse === true ? inside.toReversed() : inside, options)
    })
  }

  /** What is deleted is gone at once. */
  purge(): Promise<readonly string[]> {
    return this.#call(() => [])
  }

  snapshot(): Promise<StoreSnapshot> {
    return this.#call(() => {
      // Entries are replaced and never changed, so a copy of the array is a view of this moment.
      const left = [...this.#entries]
      const life = this.#lives
      let isClosed = false
      return {
        next: () =>
          this.#call(() => {
            if (isClosed || life !== this.#lives) throw new PostboteError('STORE_UNAVAILABLE')
            const limits = { limit: snapshotStepEntries, valueBytesMax: snapshotStepBytes }
            const taken = take(left, limits)
            left.splice(0, taken.length)
            return taken
          }),
        close: async () => {
          isClosed = true
        },
      }
    })
  }

  async #call<T>(work: () => T): Promise<T> {
    const refusal = this.#life.enter()
    if (refusal !== undefined) throw refusal
    try {
      return work()
    } finally {
      this.#life.leave()
    }
  }

  /** Returns the operation that undoes this one. Copies the buffers, because the caller may reuse them. */
  #apply(operation: StoreOperation): StoreOperation {
    const at = this.#firstNotBelow(operation.key)
    const old = this.#entries[at]
    const present = old !== undefined && old.key.equals(operation.key)
    if (operation.type === 'put') {
      const entry = { key: Buffer.from(operation.key), value: Buffer.from(operation.value) }
      this.#entries.splice(at, present ? 1 : 0, entry)
    } else if (present) {
      this.#entries.splice(at, 1)
    }
    return present
      ? { type: 'put', key: old.key, value: old.value }
      : { type: 'del', key: Buffer.from(operation.key) }
  }

  #firstNotBelow(key: Buffer): number {
    let low = 0
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const entry = this.#entries[middle]
      if (entry !== undefined && Buffer.compare(entry.key, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

function take(
  inside: readonly StoreEntry[],
  options: Pick<RangeOptions, 'limit' | 'valueBytesMax' | 'keysOnly'>,
): StoreEntry[] {
  const taken: StoreEntry[] = []
  let valueBytes = 0
  for (const { key, value } of inside) {
    if (taken.length >= options.limit) break
    taken.push({
      key: Buffer.from(key),
      value: options.keysOnly === true ? emptyValue : Buffer.from(value),
    })
    if (options.keysOnly !== true) valueBytes += value.length
    if (valueBytes >= (options.valueBytesMax ?? Number.POSITIVE_INFINITY)) break
  }
  return taken
}
