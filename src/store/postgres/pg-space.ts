/** Watches the size of a database, so that pushes are refused before its disk is full. */
import { type Clock, every, type Timer } from '../../clock.ts'
import { pgSizePeriodMs } from '../limits.ts'
import type { StoreSpace } from '../store-engine.ts'
import { PgConnection } from './pg-connection.ts'
import type { PgUrl } from './pg-url.ts'

export interface PgSpaceOptions {
  readonly database: PgUrl
  /** The `application_name`. */
  readonly name: string
  readonly bytesMax: number
  readonly clock: Clock
}

export class PgSpace implements StoreSpace {
  readonly #options: PgSpaceOptions
  #isLow = false
  #timer: Timer | undefined

  constructor(options: PgSpaceOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    await this.#look()
    // A look that fails changes nothing: the last result remains the best estimate.
    this.#timer = every(this.#options.clock, pgSizePeriodMs, () =>
      this.#look().catch(() => undefined),
    )
  }

  isLow(): boolean {
    return this.#isLow
  }

  close(): void {
    this.#timer?.cancel()
  }

  async #look(): Promise<void> {
    const { database, name, bytesMax } = this.#options
    const connection = await PgConnection.open({ database, name })
    try {
      const [row] = await connection.run<{ readonly bytes: string }>({
        text: 'SELECT pg_database_size(current_database()) AS bytes',
      })
      this.#isLow = Number(row?.bytes ?? 0) > bytesMax
    } finally {
      connection.close()
    }
  }
}
