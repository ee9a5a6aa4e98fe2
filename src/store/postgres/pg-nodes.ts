/** The rows of the nodes of a cluster, in one database of it. */
import { PgConnection } from './pg-connection.ts'
import type { HeartbeatRead, NodeIdentity, NodeRow, NodeTable } from '../node-table.ts'
import { connectionName } from './claim-shard.ts'
import { KeptConnection } from './kept-connection.ts'
import { pgNodeStatementMs } from '../limits.ts'
import type { PgUrl } from './pg-url.ts'
import { lockNotAvailable, sqlState, uniqueViolation } from './sql-state.ts'

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

export class PgNodes implements NodeTable {
  readonly #connection: KeptConnection

  /** @param boot - of the node that uses this */
  constructor(database: PgUrl, boot: string) {
    const name = `${connectionName(boot)}/node`
    const statementMs = pgNodeStatementMs
    this.#connection = new KeptConnection(() => PgConnection.open({ database, name, statementMs }))
  }

  async beat({ name, boot }: NodeIdentity): Promise<HeartbeatRead> {
    const [row] = await (await this.#connection.get()).run<{
      readonly members: number
      readonly nodes: readonly NodeRow[]
    }>(heartbeat, [name, boot])
    return { isMember: row?.members === 1, nodes: row?.nodes ?? [] }
  }

  async nodes(): Promise<readonly NodeRow[]> {
    return (await this.#connection.get()).run<NodeRow & { readonly [column: string]: unknown }>(
      read,
    )
  }

  async joinAlone({
    name,
    boot,
    address,
    workers,
  }: Omit<NodeRow, 'beat' | 'state'>): Promise<boolean> {
    const connection = await this.#connection.get()
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

  async evict({ name, boot, beat }: Pick<NodeRow, 'name' | 'boot' | 'beat'>): Promise<void> {
    await (await this.#connection.get()).run(evict, [name, boot, beat])
  }

  async leave({ name, boot }: NodeIdentity): Promise<void> {
    await (await this.#connection.get()).run(leave, [name, boot])
  }

  close(): void {
    this.#connection.close()
  }
}
