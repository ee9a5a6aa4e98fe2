/** Stores shards in PostgreSQL. Nothing of them is on this machine. */
import type { OpenedStore, OpenStoreOptions, StoreEngine } from '../store-engine.ts'
import { connectionName } from './claim-shard.ts'
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
    const { database, boot } = options
    this.#readers = new PgReaders({ database, name: `${connectionName(boot)}/read` })
  }

  space(clock: Clock): PgSpace | undefined {
    const { database, boot, bytesMax } = this.#options
    if (bytesMax === undefined) return undefined
    return new PgSpace({ database, name: `${connectionName(boot)}/size`, bytesMax, clock })
  }

  async open({ shard, onEnded }: OpenStoreOptions): Promise<OpenedStore> {
    const { database, node, boot } = this.#options
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
}
