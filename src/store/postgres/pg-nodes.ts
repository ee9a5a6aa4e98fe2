/** The rows of the nodes of a cluster, in one database of it. */
import { PgConnection } from './pg-connection.ts'
import { connectionName } from './claim-shard.ts'
import { pgNodeStatementMs } from '../limits.ts'
import type { PgUrl } from './pg-url.ts'
import { lockNotAvailable, sqlState, uniqueViolation } from './sql-state.ts'

/** A row of the table `node`, as it is stored. */
export interface StoredNode {
  readonly name: string
  readonly boot: string
  readonly beat: string
  readonly address: string
  readonly workers: number
  readonly state: string
}

export interface HeartbeatRead {
  /** Whether this node still had a row. */
  readonly isMember: boolean
  readonly nodes: readonly StoredNode[]
}

const columns = 'name, boot, beat::text, address, workers, state'
/** One round trip. The rows are those from before the heartbeat. */
const heartbeat = {
  name: 'heartbeat',
  text: `WITH own AS (UPDATE node SET beat = beat + 1 WHERE name = $1 AND boot = $2 RETURNING 1)
SELECT (SELECT count(*)::int FROM own) AS members, (SELECT coalesce(json_agg(n), '[]') FROM (SELECT ${columns} FROM node) n) AS nodes`,
}
const evict = { text: 'DELETE FROM node WHERE name = $1 AND boot = $2 AND beat = $3' }
const leave = { text: 'DELETE FROM node WHERE name = $1 AND boot = $2' }
const read = { text: `SELECT ${columns} FROM node` }
const lock = { text: 'LOCK TABLE node IN SHARE ROW EXCLUSIVE MODE' }
const join = {
  text: `INSERT INTO node SELECT $1, $2, 0, $3, $4, 'serving' WHERE NOT EXISTS (SELECT FROM node) RETURNING 1 AS joined`,
}

export class PgNodes {
  readonly #database: PgUrl
  readonly #name: string
  #opening: Promise<PgConnection> | undefined

  /** @param boot - of the node that uses this */
  constructor(database: PgUrl, boot: string) {
    this.#database = database
    this.#name = `${connectionName(boot)}/node`
  }

  /** Adds one to the beat of a node, durably on the standbys too, and reads all rows. */
  async beat({ name, boot }: Pick<StoredNode, 'name' | 'boot'>): Promise<HeartbeatRead> {
    const [row] = await (await this.#connection()).run<{
      readonly members: number
      readonly nodes: readonly StoredNode[]
    }>(heartbeat, [name, boot])
    return { isMember: row?.members === 1, nodes: row?.nodes ?? [] }
  }

  async nodes(): Promise<readonly StoredNode[]> {
    return (await this.#connection()).run<StoredNode & { readonly [column: string]: unknown }>(read)
  }

  /** Adds the row of a node if there is no other. Returns whether it was added. */
  async joinAlone({
    name,
    boot,
    address,
    workers,
  }: Omit<StoredNode, 'beat' | 'state'>): Promise<boolean> {
    const connection = await this.#connection()
    await connection.run({ text: 'BEGIN' })
    try {
      await connection.run(lock)
      const rows = await connection.run(join, [name, boot, address, workers])
      await connection.run({ text: 'COMMIT' })
      return rows.length === 1
    } catch (error) {
      await connection.run({ text: 'ROLLBACK' }).catch(() => undefined)
      const state = sqlState(error)
      if (state === lockNotAvailable || state === uniqueViolation) return false
      throw error
    }
  }

  /** Deletes the row of a node if its beat has not changed. */
  async evict({ name, boot, beat }: Pick<StoredNode, 'name' | 'boot' | 'beat'>): Promise<void> {
    await (await this.#connection()).run(evict, [name, boot, beat])
  }

  /** Deletes the row of a node that has ended. */
  async leave({ name, boot }: Pick<StoredNode, 'name' | 'boot'>): Promise<void> {
    await (await this.#connection()).run(leave, [name, boot])
  }

  /** Returns the connection of this node, to whichever server is the primary now. */
  async #connection(): Promise<PgConnection> {
    const opening = (this.#opening ??= PgConnection.open({
      database: this.#database,
      name: this.#name,
      statementMs: pgNodeStatementMs,
    }))
    try {
      const connection = await opening
      if (connection.isOpen) return connection
    } catch (error) {
      if (this.#opening === opening) this.#opening = undefined
      throw error
    }
    if (this.#opening === opening) this.#opening = undefined
    return this.#connection()
  }

  close(): void {
    void this.#opening?.then((connection) => connection.close()).catch(() => undefined)
  }
}
