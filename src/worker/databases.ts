/**
 * The databases of this server as any of its processes sees them, in the shared memory: each has a lease and a clock. A server
 * without a database has all shards for ever, with the clock of the machine.
 *
 * - What a shard stores with an end (times to live, tokens, keys, dead letters) is judged by the clock of its database, so
 *   that all nodes judge alike.
 * - A lease belongs to one life of the node. If the node was evicted and joined again, what a worker still holds from before
 *   has no lease, however late the worker learns of it.
 */
import type { Clock, Timer } from '../kit/clock.ts'
import { nodeLeaseMs } from '../process/limits.ts'
import { lifeOf, type SharedMemory } from '../process/shared-memory/shared-memory.ts'
import { endlessLease, type Lease } from '../kit/lease.ts'
import { databaseOfShard } from '../store/database-of-shard.ts'

export interface DatabasesOptions {
  /** The number of databases. */
  readonly databases: number
  readonly clock: Clock
  readonly memory: Pick<SharedMemory, 'clockOffsetMs' | 'clockSkewMs' | 'leaseLife' | 'leaseMs'>
}

export class Databases {
  readonly #options: DatabasesOptions
  readonly #numbers: readonly number[]
  readonly #clocks: readonly Clock[]

  constructor(options: DatabasesOptions) {
    const { databases, clock, memory } = options
    this.#options = options
    this.#numbers = Array.from({ length: databases }, (_, database) => database)
    this.#clocks = this.#numbers.map(
      (database) => new ShardClock(clock, () => memory.clockOffsetMs(database)),
    )
  }

  clockOf(shard: number): Clock {
    return this.#clocks[this.#of(shard)] ?? this.#options.clock
  }

  /** Returns the lease of a shard that was claimed in this life, as long as it is open. */
  leaseOf(shard: number, boot: string): Lease {
    const { databases, memory } = this.#options
    if (databases === 0) return endlessLease
    const database = this.#of(shard)
    const life = lifeOf(boot)
    return { isValid: () => this.#isOn(database) && memory.leaseLife(database) === life }
  }

  /** Returns the numbers of the databases that are away: their leases are over. */
  away(): readonly number[] {
    return this.#numbers.filter((database) => !this.#isOn(database))
  }

  /** Whether the shard may not be served, because its database is away. */
  isAway(shard: number): boolean {
    return this.#numbers.length > 0 && !this.#isOn(this.#of(shard))
  }

  /** Whether there is something that may be served. */
  isAnyOn(): boolean {
    return this.#numbers.length === 0 || this.away().length < this.#numbers.length
  }

  /** Returns the time since the oldest of the last heartbeats; undefined if no database was joined. */
  heartbeatAgeMs(): number | undefined {
    const { clock, memory } = this.#options
    const beats = this.#joined().map(
      (database) => clock.machineMs() - (memory.leaseMs(database) - nodeLeaseMs),
    )
    return beats.length === 0 ? undefined : Math.max(0, Math.round(Math.max(...beats)))
  }

  /** Returns how far the wall clock of this node is ahead of that of the database from which it differs most. */
  clockSkewMs(): number | undefined {
    const skews = this.#joined().map((database) => this.#options.memory.clockSkewMs(database))
    return skews.toSorted((a, b) => Math.abs(b) - Math.abs(a))[0]
  }

  /** A database that this node has not joined yet has no heartbeat. */
  #joined(): readonly number[] {
    return this.#numbers.filter((database) => this.#options.memory.leaseMs(database) > 0)
  }

  #isOn(database: number): boolean {
    const { clock, memory } = this.#options
    return clock.machineMs() < memory.leaseMs(database)
  }

  #of(shard: number): number {
    return databaseOfShard(shard, this.#numbers.length)
  }
}

class ShardClock implements Clock {
  readonly #clock: Clock
  readonly #offsetMs: () => number
  /** `monotonicMs` is faster than `machineMs`, and differs from it by this constant. */
  readonly #machineAheadMs: number

  /** @param offsetMs - 0 if it is not known */
  constructor(clock: Clock, offsetMs: () => number) {
    this.#clock = clock
    this.#offsetMs = offsetMs
    this.#machineAheadMs = clock.machineMs() - clock.monotonicMs()
  }

  nowMs(): number {
    const offsetMs = this.#offsetMs()
    if (offsetMs === 0) return this.#clock.nowMs()
    return Math.floor(this.#clock.monotonicMs() + this.#machineAheadMs + offsetMs)
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs()
  }

  machineMs(): number {
    return this.#clock.machineMs()
  }

  after(delayMs: number, fire: () => void): Timer {
    return this.#clock.after(delayMs, fire)
  }

  soon(fire: () => void): void {
    this.#clock.soon(fire)
  }
}
