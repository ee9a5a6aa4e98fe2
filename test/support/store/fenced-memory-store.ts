/**
 * A shard in memory that several owners open in turn, as they do in a database: opening claims it, and the stores of
 * earlier claims write nothing any more. So everything but SQL can be tested without a database.
 */
import { PostboteError } from '../../../src/kit/errors.ts'
import { NotOwnerError } from '../../../src/store/store-engine.ts'
import { MemoryStore } from './memory-store.ts'
import {
  type RangeOptions,
  type Store,
  type StoreEntry,
  type StoreOperation,
  type StoreSnapshot,
  WriteRefused,
} from '../../../src/store/store.ts'
import { StoreLifeCycle } from '../../../src/store/store-life-cycle.ts'

/** What becomes of a write whose answer is lost. */
export type Fate = 'stored' | 'not stored'

export class FencedMemoryShard {
  /** Rises with every claim. */
  epoch = 0
  owner = ''
  /** The owners that are alive: nobody else can claim a shard of theirs. */
  readonly alive = new Set<string>()
  readonly records = new MemoryStore()
  /** Set: the next write has no answer. */
  nextFate: Fate | undefined

  storeOf(owner: string): FencedMemoryStore {
    return new FencedMemoryStore(this, owner)
  }
}

export class FencedMemoryStore implements Store {
  readonly #shard: FencedMemoryShard
  readonly #owner: string
  readonly #life: StoreLifeCycle
  #epoch = 0
  /** How often it was opened. */
  #lives = 0
  #hasFailed = false

  constructor(shard: FencedMemoryShard, owner: string) {
    this.#shard = shard
    this.#owner = owner
    this.#life = new StoreLifeCycle({
      name: `of ${owner}`,
      open: () => this.#claim(),
      close: async () => undefined,
    })
  }

  open(): Promise<void> {
    return this.#life.open()
  }

  close(): Promise<void> {
    return this.#life.close()
  }

  write(operations: readonly StoreOperation[], options: { readonly sync: boolean }): Promise<void> {
    return this.#call(async () => {
      if (this.#hasFailed) throw new Error('the connection has ended')
      if (this.#shard.epoch !== this.#epoch)
        throw new WriteRefused(new Error('another process has claimed the shard'))
      const fate = this.#shard.nextFate
      this.#shard.nextFate = undefined
      this.#hasFailed = fate !== undefined
      if (fate !== 'not stored') await this.#shard.records.write(operations, options)
      if (fate !== undefined) throw new Error('the connection was reset')
    })
  }

  getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]> {
    return this.#call(() => this.#shard.records.getMany(keys))
  }

  range(options: RangeOptions): Promise<readonly StoreEntry[]> {
    return this.#call(() => this.#shard.records.range(options))
  }

  purge(): Promise<readonly string[]> {
    return this.#call(() => this.#shard.records.purge())
  }

  snapshot(): Promise<StoreSnapshot> {
    return this.#call(async () => {
      const snapshot = await this.#shard.records.snapshot()
      const life = this.#lives
      const next = (): Promise<readonly StoreEntry[]> =>
        this.#call(async () => {
          if (life !== this.#lives) throw new PostboteError('STORE_UNAVAILABLE')
          return snapshot.next()
        })
      return { next, close: () => snapshot.close() }
    })
  }

  async #claim(): Promise<void> {
    const shard = this.#shard
    const { epoch, owner } = shard
    // As in a database, others may act between the look at the owner and the claim.
    await shard.records.open()
    if (shard.epoch !== epoch || (owner !== this.#owner && shard.alive.has(owner)))
      throw new NotOwnerError(0, shard.owner)
    shard.epoch += 1
    this.#lives += 1
    shard.owner = this.#owner
    this.#epoch = shard.epoch
    this.#hasFailed = false
  }

  async #call<Result>(work: () => Promise<Result>): Promise<Result> {
    const refusal = this.#life.enter()
    if (refusal !== undefined) throw refusal
    try {
      return await work()
    } finally {
      this.#life.leave()
    }
  }
}
