/** Watches the sizes of the databases, so that pushes are refused before the disk of one is full. */
import assert from 'node:assert/strict'
import { type Clock, every, type Timer } from '../../kit/clock.ts'
import { databaseOfShard } from '../../store/database-of-shard.ts'
import type { StoreSpace } from '../../store/store-engine.ts'
import { PgConnection } from './pg-connection.ts'
import type { PgUrl } from '../../api/pg-url.ts'

/** Period of the look at the size of a database. Chosen: it reads the sizes of all files, and 10 s of pushes are small. */
export const pgSizePeriodMs = 10_000
/** A database is nearly full from this share of the bound on. Chosen: vacuum makes room some time after a deletion. */
const nearlyFullShare = 0.9

export class PgSpace implements StoreSpace {
  readonly #clock: Clock
  readonly #databases: readonly PgUrl[]
  readonly #name: string
  readonly #bytesMax: number
  /** By database. */
  readonly #sizes: number[]
  #timer: Timer | undefined

  /**
   * @param name - the `application_name`
   * @param bytesMax - of one database
   */
  constructor(clock: Clock, databases: readonly PgUrl[], name: string, bytesMax: number) {
    assert(bytesMax > 0, 'the bound of a database is positive')
    this.#clock = clock
    this.#databases = databases
    this.#name = name
    this.#bytesMax = bytesMax
    this.#sizes = databases.map(() => 0)
  }

  /** Never rejects: a worker must start even if a database is away. */
  async start(): Promise<void> {
    await this.#lookAtAll()
    this.#timer = every(this.#clock, pgSizePeriodMs, () => this.#lookAtAll())
  }

  isLow(shard: number): boolean {
    return this.#isOver(shard, this.#bytesMax)
  }

  isNearlyLow(shard: number): boolean {
    return this.#isOver(shard, this.#bytesMax * nearlyFullShare)
  }

  close(): void {
    this.#timer?.cancel()
  }

  #isOver(shard: number, bytesMax: number): boolean {
    const size = this.#sizes[databaseOfShard(shard, this.#sizes.length)]
    return size !== undefined && size > bytesMax
  }

  async #lookAtAll(): Promise<void> {
    const looks = this.#databases.map(async (database, number) => {
      this.#sizes[number] = await this.#bytesOf(database)
    })
    // A look that fails changes nothing: the last result remains the best estimate.
    await Promise.allSettled(looks)
  }

  async #bytesOf(database: PgUrl): Promise<number> {
    const connection = await PgConnection.open({ database, name: this.#name })
    try {
      const [row] = await connection.run<{ readonly bytes: string }>({
        text: 'SELECT pg_database_size(current_database()) AS bytes',
      })
      return Number(row?.bytes ?? 0)
    } finally {
      connection.close()
    }
  }
}
