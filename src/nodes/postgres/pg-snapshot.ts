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

const begin = { text: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' }
/** The first query fixes the moment, and not the beginning of the transaction. */
const look = { text: 'SELECT 1' }
/** All keys begin with a letter. */
const firstKey = Buffer.from([0])
const keysEnd = Buffer.from([0xff])

export class PgSnapshot implements StoreSnapshot {
  readonly #connection: PgConnection
  readonly #onEnded: () => void
  readonly #statement: NamedStatement
  #from: Buffer = firstKey
  #isEnded = false

  /** Use `begin`. */
  constructor(connection: PgConnection, shard: number, onEnded: () => void) {
    this.#connection = connection
    this.#onEnded = onEnded
    this.#statement = rangeStatement(shard, {
      table: undefined,
      isReverse: false,
      keysOnly: false,
      hasBytesMax: true,
    })
  }

  /**
   * Fixes the moment. If that fails, the connection is closed and this rejects.
   *
   * @param connection - used for nothing else, and closed with the snapshot
   * @param onEnded - called once, when the snapshot holds nothing any more
   */
  static async begin(
    connection: PgConnection,
    shard: number,
    onEnded: () => void,
  ): Promise<PgSnapshot> {
    try {
      await connection.run(begin)
      await connection.run(look)
      return new PgSnapshot(connection, shard, onEnded)
    } catch (error) {
      connection.close()
      throw error
    }
  }

  async next(): Promise<readonly StoreEntry[]> {
    if (this.#isEnded) {
      const cause = new Error('the snapshot has ended')
      throw new PostboteError('STORE_UNAVAILABLE', { cause })
    }
    const values = [this.#from, keysEnd, snapshotStepEntries, snapshotStepBytes]
    const entries = await this.#connection.run<StoreEntry & Record<string, unknown>>(
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
    this.#connection.close()
    this.#onEnded()
  }
}
