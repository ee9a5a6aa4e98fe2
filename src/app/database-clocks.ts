/**
 * The clocks of the shards of this worker. What a shard stores with an end (times to live, tokens, keys, dead letters) is
 * judged by the clock of its database, so that all nodes judge alike. A shard in files has the clock of the machine.
 */
import type { Clock, Timer } from '../clock.ts'
import type { SharedMemory } from '../cluster/shared-memory/shared-memory.ts'
import { databaseOfShard } from '../store/database-of-shard.ts'

export interface DatabaseClocksOptions {
  /** The number of databases. */
  readonly databases: number
  readonly clock: Clock
  readonly memory: Pick<SharedMemory, 'clockOffsetMs'>
}

export class DatabaseClocks {
  readonly #clock: Clock
  readonly #ofDatabase: readonly Clock[]

  constructor({ databases, clock, memory }: DatabaseClocksOptions) {
    this.#clock = clock
    this.#ofDatabase = Array.from(
      { length: databases },
      (_, database) => new ShardClock(clock, () => memory.clockOffsetMs(database)),
    )
  }

  ofShard(shard: number): Clock {
    return this.#ofDatabase[databaseOfShard(shard, this.#ofDatabase.length)] ?? this.#clock
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
