/**
 * A snapshot of a shard in PostgreSQL: a transaction of its own that sees one moment (REPEATABLE READ), on a connection of
 * its own, to the life of the server on which the shard was claimed.
 *
 * It needs no fence: whoever owns the shard by now, all that was committed before the moment is in it. The caller makes sure
 * that no later server of the database can have acknowledged anything by that moment (features/backup/shard-routes.ts).
 */
import { PostboteError } from '../../kit/errors.ts'
import { snapshotStepBytes, snapshotStepEntries } from '../../store/limits.ts'
import type { StoreEntry, StoreSnapshot } from '../../store/store.ts'
import { type NamedStatement, rangeStatement } from './named-statement.ts'
import type { PgConnection } from './pg-connection.ts'

export interface PgSnapshotOptions {
  /** Used for nothing else, and closed with the snapshot. */
  readonly connection: PgConnection
  readonly shard: number
  /** Called once, when the snapshot holds nothing any more. */
  readonly onEnded: () => void
}

const begin = { text: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' }
/** The first query fixes the moment, and not the beginning of the transaction. */
const look = { text: 'SELECT 1' }
/** All keys begin with a letter. */
const firstKey = Buffer.from([0])
const keysEnd = Buffer.from([0xff])

export class PgSnapshot implements StoreSnapshot {
  readonly #options: PgSnapshotOptions
  readonly #statement: NamedStatement
  #from: Buffer = firstKey
  #isEnded = false

  /** Use `begin`. */
  constructor(options: PgSnapshotOptions) {
    this.#options = options
    this.#statement = rangeStatement(options.shard, {
      table: undefined,
      isReverse: false,
      keysOnly: false,
      hasBytesMax: true,
    })
  }

  /** Fixes the moment. If that fails, the connection is closed and this rejects. */
  static async begin(options: PgSnapshotOptions): Promise<PgSnapshot> {
    try {
      await options.connection.run(begin)
      await options.connection.run(look)
      return new PgSnapshot(options)
    } catch (error) {
      options.connection.close()
      throw error
    }
  }

  async next(): Promise<readonly StoreEntry[]> {
    if (this.#isEnded) {
      const cause = new Error('the snapshot has ended')
      throw new PostboteError('STORE_UNAVAILABLE', { cause })
    }
    const values = [this.#from, keysEnd, snapshotStepEntries, snapshotStepBytes]
    const entries = await this.#options.connection.run<StoreEntry & Record<string, unknown>>(
      this.#statement,
      values,
    )
    const last = entries.at(-1)
    if (last !== undefined) this.#from = Buffer.concat([last.key, firstKey])
    return entries.map(({ key, value }) => ({ key, value }))
  }

  async close(): Promise<void> {
    if (this.#isEnded) return
    this.#isEnded = true
    // The server ends the transaction with the connection.
    this.#options.connection.close()
    this.#options.onEnded()
  }
}
