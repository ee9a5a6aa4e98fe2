import { setImmediate as turn } from 'node:timers/promises'
import type {
  PurgeOptions,
  RangeOptions,
  Store,
  StoreEntry,
  StoreOperation,
  StoreSnapshot,
} from '../../../src/store/store.ts'

/**
 * A store on another machine: every call reaches it some turns of the event loop later, in any order among reads, and its
 * result takes some more. What a read sees is the state in between, and not that of the call.
 */
export class LateStore implements Store {
  readonly #store: Store
  readonly #turns: () => number

  /** @param turns - draws how many turns a call or a result is on its way */
  constructor(store: Store, turns: () => number) {
    this.#store = store
    this.#turns = turns
  }

  open(): Promise<void> {
    return this.#store.open()
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  write(operations: readonly StoreOperation[], options: { readonly sync: boolean }): Promise<void> {
    const copies = [...operations]
    return this.#travel(() => this.#store.write(copies, options))
  }

  getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]> {
    return this.#travel(() => this.#store.getMany(keys))
  }

  range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    return this.#travel(() => this.#store.range(options))
  }

  purge(options: PurgeOptions): Promise<readonly string[]> {
    return this.#travel(() => this.#store.purge(options))
  }

  snapshot(): Promise<StoreSnapshot> {
    return this.#travel(() => this.#store.snapshot())
  }

  async #travel<Result>(call: () => Promise<Result>): Promise<Result> {
    await this.#pass()
    const result = await call()
    await this.#pass()
    return result
  }

  async #pass(): Promise<void> {
    for (let left = this.#turns(); left > 0; left--) await turn()
  }
}
