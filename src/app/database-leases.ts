/**
 * The leases of a server, one from each of its databases. A server without one has none: nobody can take its shards over.
 *
 * A lease belongs to one life of the node. If the node was evicted and joined again, what a worker still holds from before
 * has no lease, however late the worker learns of it.
 */
import type { Clock } from '../clock.ts'
import { lifeOf, type SharedMemory } from '../cluster/shared-memory/shared-memory.ts'
import { endlessLease, type Lease } from '../lease.ts'
import { databaseOfShard } from '../store/database-of-shard.ts'

export interface DatabaseLeasesOptions {
  /** The number of databases. */
  readonly databases: number
  readonly clock: Clock
  readonly memory: Pick<SharedMemory, 'leaseMs' | 'leaseLife'>
}

export class DatabaseLeases {
  readonly #options: DatabaseLeasesOptions

  constructor(options: DatabaseLeasesOptions) {
    this.#options = options
  }

  /** Returns the lease of a shard that was claimed in this life, as long as it is open. */
  ofShard(shard: number, boot: string): Lease {
    const { databases, memory } = this.#options
    if (databases === 0) return endlessLease
    const database = databaseOfShard(shard, databases)
    const life = lifeOf(boot)
    return { isValid: () => this.#isOn(database) && memory.leaseLife(database) === life }
  }

  /** Returns the numbers of the databases whose lease is over. */
  over(): readonly number[] {
    return [...Array(this.#options.databases).keys()].filter((database) => !this.#isOn(database))
  }

  /** Whether the shard may not be served, because its database is away. */
  isOver(shard: number): boolean {
    const { databases } = this.#options
    return databases > 0 && !this.#isOn(databaseOfShard(shard, databases))
  }

  /** Whether there is something that may be served. */
  isAnyValid(): boolean {
    const { databases } = this.#options
    return databases === 0 || this.over().length < databases
  }

  #isOn(database: number): boolean {
    const { clock, memory } = this.#options
    return clock.machineMs() < memory.leaseMs(database)
  }
}
