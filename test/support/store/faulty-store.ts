import type {
  PurgeOptions,
  RangeOptions,
  Store,
  StoreEntry,
  StoreOperation,
  StoreSnapshot,
} from '../../../src/store/store.ts'

export interface HeldWrite {
  readonly operations: readonly StoreOperation[]
  readonly sync: boolean
  /** Passes the write on to the store; resolves when its caller has the result. */
  release(): Promise<void>
  /** Fails the write without applying it. */
  fail(code: 'ENOSPC' | 'EIO'): Promise<void>
}

type Fault = { readonly code: 'ENOSPC' | 'EIO'; readonly applied: boolean }

/**
 * A disk that fails on demand, before any store:
 *
 * - `failNextWrite`: the next write rejects. With `applied` its bytes reach the log nevertheless (a failed fsync).
 * - `lieAfterFailure`: as in LevelDB 1.20, every write after a failed one is acknowledged and can be read until
 *   `close`, and is gone after the next `open`. `lost` counts these writes.
 * - `holdWrites`: writes wait in `held` until a test releases or fails each of them, in any order.
 */
export class FaultyStore implements Store {
  readonly #store: Store & { loseUnsynced?(): void }
  readonly #faults: Fault[] = []
  readonly #lieAfterFailure: boolean
  #lying = false
  #holding = false
  #onHeld: (() => void) | undefined
  readonly held: HeldWrite[] = []
  /** All writes that reached this store, in order. */
  readonly writes: { readonly operations: readonly StoreOperation[]; readonly sync: boolean }[] = []
  opens = 0
  lost = 0
  /** How often room was freed. */
  freed = 0

  constructor(
    store: Store & { loseUnsynced?(): void },
    options: { readonly lieAfterFailure?: boolean } = {},
  ) {
    this.#store = store
    this.#lieAfterFailure = options.lieAfterFailure === true
  }

  failNextWrite(code: 'ENOSPC' | 'EIO', options: { readonly applied?: boolean } = {}): void {
    this.#faults.push({ code, applied: options.applied === true })
  }

  holdWrites(): void {
    this.#holding = true
  }

  /** Stops holding writes and releases all held ones, in order. */
  async releaseAll(): Promise<void> {
    this.#holding = false
    while (this.held.length > 0) await this.held[0]?.release()
  }

  /** Returns the `count`th held write when there are that many. */
  async waitForHeld(count = 1): Promise<HeldWrite> {
    while (this.held.length < count) {
      await new Promise<void>((resolve) => {
        this.#onHeld = resolve
      })
    }
    return this.held[count - 1]!
  }

  async open(): Promise<void> {
    this.opens++
    await this.#store.open()
  }

  async close(): Promise<void> {
    await this.#store.close()
    if (this.#lying) this.#store.loseUnsynced?.()
    this.#lying = false
  }

  write(operations: readonly StoreOperation[], options: { readonly sync: boolean }): Promise<void> {
    this.writes.push({ operations, sync: options.sync })
    if (!this.#holding) return this.#write(operations, options)
    return new Promise((resolve, reject) => {
      const settle = async (outcome: () => Promise<void>): Promise<void> => {
        this.held.splice(this.held.indexOf(held), 1)
        await outcome().then(resolve, reject)
      }
      const held: HeldWrite = {
        operations,
        sync: options.sync,
        release: () => settle(() => this.#write(operations, options)),
        fail: (code) =>
          settle(() => {
            this.failNextWrite(code)
            return this.#write(operations, options)
          }),
      }
      this.held.push(held)
      this.#onHeld?.()
    })
  }

  getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]> {
    return this.#store.getMany(keys)
  }

  range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    return this.#store.range(options)
  }

  purge(options: PurgeOptions): Promise<readonly string[]> {
    return this.#store.purge(options)
  }

  snapshot(): Promise<StoreSnapshot> {
    return this.#store.snapshot()
  }

  async freeRoom(): Promise<void> {
    this.freed++
  }

  async #write(
    operations: readonly StoreOperation[],
    options: { readonly sync: boolean },
  ): Promise<void> {
    const fault = this.#faults.shift()
    if (fault === undefined) {
      if (this.#lying) this.lost++
      return this.#store.write(operations, this.#lying ? { sync: false } : options)
    }
    if (fault.applied) await this.#store.write(operations, { sync: false })
    this.#lying = this.#lieAfterFailure
    throw Object.assign(new Error(`IO error: 000003.log: ${fault.code}`), { code: fault.code })
  }
}
