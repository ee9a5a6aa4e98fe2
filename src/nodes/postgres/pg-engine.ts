/** Stores shards in PostgreSQL, each in one of the databases of the cluster. Nothing of them is on this machine. */
import type { Clock } from '../../kit/clock.ts'
import { databaseOfShard } from '../../store/database-of-shard.ts'
import type {
  OpenedStore,
  OpenStoreOptions,
  SharedStore,
  StoreEngine,
  StoreSpace,
} from '../../store/store-engine.ts'
import { PgSpace } from './pg-space.ts'
import { PgReaders } from './pg-readers.ts'
import { PgStore } from './pg-store.ts'
import type { PgUrl } from '../../api/pg-url.ts'

interface EngineDatabase {
  readonly url: PgUrl
  readonly readers: PgReaders
}

export class PgEngine implements StoreEngine {
  readonly asideText =
    'a shard is set aside because its tables are not as they were made, and all others are served: run postbote doctor, mend the tables, and reload the server'
  readonly shared: SharedStore
  readonly #options: PgEngineOptions
  readonly #databases: readonly EngineDatabase[]

  constructor(options: PgEngineOptions) {
    this.#options = options
    const name = this.#named('read')
    this.#databases = options.databases.map((url) => {
      return { url, readers: new PgReaders(url, name) }
    })
    this.shared = {
      node: options.node,
      databases: options.databases.length,
      databaseIsAt: (database, server) => this.#databases[database]?.readers.endBefore(server),
    }
  }

  async space(clock: Clock): Promise<StoreSpace | undefined> {
    const { databases, bytesMax } = this.#options
    if (bytesMax === undefined) return undefined
    const space = new PgSpace(clock, databases, this.#named('size'), bytesMax)
    // The shards of other databases must not wait for one that is silent.
    void space.start()
    return space
  }

  async open({ shard, boot, clock, onEnded }: OpenStoreOptions): Promise<OpenedStore> {
    const { node } = this.#options
    if (boot === undefined) throw new Error('expected the boot of the node that opens the shard')
    const { url: database, readers } = this.#databaseOf(shard)
    const owner = { node, boot }
    const store = new PgStore({ clock, database, shard, owner, readers, onEnded })
    return {
      store,
      hasLost: false,
      accept: async () => undefined,
      // Opening the store finds that out.
      probe: async () => true,
    }
  }

  #databaseOf(shard: number): EngineDatabase {
    const database = this.#databases[databaseOfShard(shard, this.#databases.length)]
    if (database === undefined) throw new Error('expected a database')
    return database
  }

  /** Names connections that hold nothing, so nobody has to end them. */
  #named(purpose: string): string {
    return `postbote/${this.#options.node}/${purpose}`
  }
}

/** Where shards are, and which node opens them. The processes of a node pass it to each other. */
export interface PgEngineOptions {
  /** In the order of `postbote database init`. */
  readonly databases: readonly PgUrl[]
  /** The name of this node. */
  readonly node: string
  /** Pushes for the shards of a database are refused while it is larger, in bytes. */
  readonly bytesMax: number | undefined
}
