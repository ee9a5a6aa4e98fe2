/** Stores shards in PostgreSQL. Nothing of them is on this machine. */
import type { OpenedStore, OpenStoreOptions, StoreEngine } from '../store-engine.ts'
import type { Clock } from '../../clock.ts'
import { PgSpace } from './pg-space.ts'
import { PgReaders } from './pg-readers.ts'
import { PgStore } from './pg-store.ts'
import type { PgEngineOptions } from './pg-engine-options.ts'

export class PgEngine implements StoreEngine {
  readonly #options: PgEngineOptions
  readonly #readers: PgReaders

  constructor(options: PgEngineOptions) {
    this.#options = options
    this.#readers = new PgReaders({ database: options.database, name: this.#named('read') })
  }

  space(clock: Clock): PgSpace | undefined {
    const { database, bytesMax } = this.#options
    if (bytesMax === undefined) return undefined
    return new PgSpace({ database, name: this.#named('size'), bytesMax, clock })
  }

  databaseIsAt(server: string): void {
    this.#readers.endBefore(server)
  }

  async open({ shard, boot, onEnded }: OpenStoreOptions): Promise<OpenedStore> {
    const { database, node } = this.#options
    if (boot === undefined) throw new Error('expected the boot of the node that opens the shard')
    const owner = { node, boot }
    const store = new PgStore({ database, shard, owner, readers: this.#readers, onEnded })
    return {
      store,
      hasLost: false,
      accept: async () => undefined,
      // Opening the store finds that out.
      probe: async () => true,
    }
  }

  /** Names connections that hold nothing, so nobody has to end them. */
  #named(purpose: string): string {
    return `postbote/${this.#options.node}/${purpose}`
  }
}
