/** Watches the sizes of the databases, so that pushes are refused before the disk of one is full. */
import { type Clock, every, type Timer } from '../../clock.ts'
import { databaseOfShard } from '../database-of-shard.ts'
import type { StoreSpace } from '../store-engine.ts'
import { PgConnection } from './pg-connection.ts'
import type { PgUrl } from './pg-url.ts'

export interface PgSpaceOptions {
  readonly databases: readonly PgUrl[]
  /** The `application_name`. */
  readonly name: string
  /** Of one database. */
  readonly bytesMax: number
  readonly clock: Clock
}

/** Period of the look at the size of a database. Chosen: it reads the sizes of all files, and 10 s of pushes are small. */
export const pgSizePeriodMs = 10_000

export class PgSpace implements StoreSpace {
  readonly #options: PgSpaceOptions
  /** By database. */
  readonly #areLow: boolean[]
  #timer: Timer | undefined

  constructor(options: PgSpaceOptions) {
    this.#options = options
    this.#areLow = options.databases.map(() => false)
  }

  /** Never rejects: a worker must start even if a database is away. */
  async start(): Promise<void> {
    await this.#lookAtAll()
    this.#timer = every(this.#options.clock, pgSizePeriodMs, () => this.#lookAtAll())
  }

  isLow(shard: number): boolean {
    return this.#areLow[databaseOfShard(shard, this.#areLow.length)] === true
  }

  close(): void {
    this.#timer?.cancel()
  }

  async #lookAtAll(): Promise<void> {
    const looks = this.#options.databases.map(async (database, number) => {
      this.#areLow[number] = (await this.#bytesOf(database)) > this.#options.bytesMax
    })
    // A look that fails changes nothing: the last result remains the best estimate.
    await Promise.allSettled(looks)
  }

  async #bytesOf(database: PgUrl): Promise<number> {
    const connection = await PgConnection.open({ database, name: this.#options.name })
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
