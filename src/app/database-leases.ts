/** The leases of a server, one from each of its databases. A server without one has none: nobody can take its shards over. */
import type { Clock } from '../clock.ts'
import type { SharedMemory } from '../cluster/shared-memory/shared-memory.ts'
import { endlessLease, type Lease } from '../lease.ts'
import { databaseOfShard } from '../store/database-of-shard.ts'

export interface DatabaseLeasesOptions {
  /** The number of databases. */
  readonly databases: number
  readonly clock: Clock
  readonly memory: Pick<SharedMemory, 'leaseMs'>
}

export class DatabaseLeases {
  readonly #leases: readonly Lease[]

  constructor({ databases, clock, memory }: DatabaseLeasesOptions) {
    this.#leases = Array.from({ length: databases }, (_, database) => ({
      isValid: () => clock.machineMs() < memory.leaseMs(database),
    }))
  }

  /** Returns the lease of the database that has the shard; an endless one if there is no database. */
  ofShard(shard: number): Lease {
    return this.#leases[databaseOfShard(shard, this.#leases.length)] ?? endlessLease
  }

  /** Returns the numbers of the databases whose lease is over. */
  over(): readonly number[] {
    return [...this.#leases.keys()].filter((database) => !this.#leases[database]?.isValid())
  }

  /** Whether there is something that may be served. */
  isAnyValid(): boolean {
    return this.#leases.length === 0 || this.over().length < this.#leases.length
  }
}
