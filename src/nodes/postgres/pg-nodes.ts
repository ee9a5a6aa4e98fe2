/**
 * The rows of nodes and shards, in one database of the cluster. A kept connection beats and reads, and listens to what
 * other connections change (notify-change.ts).
 */
import { PgConnection, ReopeningConnection } from './pg-connection.ts'
import { joinObstacles } from '../membership/join.ts'
import type {
  ClusterRows,
  HeartbeatRead,
  JoiningNode,
  JoinRefusal,
  NodeClock,
  NodeIdentity,
  NodeRow,
  NodeState,
  NodeTable,
  SeenNode,
  ShardRow,
} from '../../store/node-table.ts'
import { knowsTypesSetting } from './cluster-row.ts'
import { listenToChanges, notifyChange } from './notify-change.ts'
import type { PgUrl } from '../../api/pg-url.ts'
import { lockNotAvailable, sqlState, uniqueViolation } from './sql-state.ts'

const nodeColumns = 'name, boot, beat::text, address, workers, state'
/** Earlier versions made the table without the column `clock`, which a heartbeat fills. */
const clockedRows = `SELECT ${nodeColumns}, to_jsonb(node) -> 'clock' AS clock FROM node ORDER BY name`
const shardRows = 'SELECT shard, epoch::text, node, boot FROM shard ORDER BY shard'
const allRows = `(SELECT coalesce(json_agg(json_strip_nulls(to_json(n))), '[]') FROM (${clockedRows}) n) AS nodes,
(SELECT coalesce(json_agg(s), '[]') FROM (${shardRows}) s) AS shards`
/** The rows are those from before the heartbeat: all parts of a statement see the same moment. */
const heartbeat = {
  name: 'heartbeat',
  text: `WITH own AS (UPDATE node SET beat = beat + 1, clock = $3 WHERE name = $1 AND boot = $2 RETURNING 1)
SELECT (SELECT count(*)::int FROM own) AS members, extract(epoch FROM clock_timestamp())::float8 * 1000 AS database_ms, ${allRows}`,
}
const hasClock = {
  text: "SELECT 1 FROM pg_attribute WHERE attrelid = 'node'::regclass AND attname = 'clock'",
}
const addClock = { text: 'ALTER TABLE node ADD COLUMN IF NOT EXISTS clock jsonb' }
const read = { text: `SELECT ${allRows}` }
const evict = { text: 'DELETE FROM node WHERE name = $1 AND boot = $2 AND beat = $3 RETURNING 1' }
const leave = { text: 'DELETE FROM node WHERE name = $1 AND boot = $2 RETURNING 1' }
const turnState = {
  text: 'UPDATE node SET state = $4 WHERE name = $1 AND boot = $2 AND state = $3 RETURNING 1',
}
const setState = { text: 'UPDATE node SET state = $2 WHERE name = $1 RETURNING 1' }
const epochOf = { text: 'SELECT epoch::text FROM shard WHERE shard = $1 AND boot = $2' }
const handOver = {
  text: `UPDATE shard SET node = $4, boot = $5, epoch = epoch + 1
WHERE shard = $1 AND boot = $2 AND epoch = $3
AND EXISTS (SELECT FROM node n WHERE n.name = $4 AND n.boot = $5 AND n.state = 'serving') RETURNING 1`,
}
/** The same for heartbeats: as long as a node may serve after one. */
const pgNodeStatementMs = 1_000
/**
 * The database ends a node that stands still for this long while it joins, so that others can join. Chosen: as long as the
 * node itself waits for the response to a statement.
 */
const pgJoinIdleMs = pgNodeStatementMs

/**
 * Only another join waits for this lock. A stronger one would also hold up the heartbeats of all nodes, and for as long as
 * a node stands still that was stopped while it joined.
 */
const beginJoin = [
  'BEGIN',
  `SET LOCAL idle_in_transaction_session_timeout = ${pgJoinIdleMs}`,
  `SET LOCAL ${knowsTypesSetting} = 'on'`,
  'LOCK TABLE node IN SHARE UPDATE EXCLUSIVE MODE',
].map((text) => ({ text }))
const insert = { text: "INSERT INTO node VALUES ($1, $2, 0, $3, $4, 'starting')" }
const commit = { text: 'COMMIT' }
const rollback = { text: 'ROLLBACK' }

type AnyRow = Readonly<Record<string, unknown>>

export class PgNodes implements NodeTable {
  readonly #connection: ReopeningConnection
  onChange: (() => void) | undefined

  /** @param node - the name of the node that uses this */
  constructor(database: PgUrl, node: string) {
    const name = `postbote/${node}/node`
    const statementMs = pgNodeStatementMs
    this.#connection = new ReopeningConnection(async () => {
      const connection = await PgConnection.open({ database, name, statementMs })
      try {
        await listenToChanges(connection, () => this.onChange?.())
        return connection
      } catch (error) {
        connection.close()
        throw error
      }
    })
  }

  async beat({ name, boot }: NodeIdentity, clock?: NodeClock): Promise<HeartbeatRead> {
    const connection = await this.#connection.get()
    const [row] = await connection.run<{
      readonly members: number
      readonly database_ms: number
      readonly nodes: readonly NodeRow[]
      readonly shards: readonly ShardRow[]
    }>(heartbeat, [name, boot, clock && { skewMs: clock.skewMs, lagMs: clock.lagMs }])
    if (row === undefined) throw new Error('the heartbeat has no response')
    const { members, nodes, shards, database_ms: databaseMs } = row
    const server = connection.server.identity
    return { isMember: members === 1, nodes, shards, server, databaseMs }
  }

  async read(): Promise<ClusterRows> {
    return readRows(await this.#connection.get())
  }

  async join(node: JoiningNode, replaced?: SeenNode): Promise<JoinRefusal | undefined> {
    const connection = await this.#connection.get()
    let refusal: JoinRefusal | undefined
    try {
      const [column] = await connection.run(hasClock)
      if (column === undefined) await connection.run(addClock)
      refusal = await joinWithin(connection, node, replaced)
      await connection.run(refusal === undefined ? commit : rollback)
    } catch (error) {
      await connection.run(rollback).catch(ignore)
      const state = sqlState(error)
      if (state === lockNotAvailable || state === uniqueViolation) return { reason: 'busy' }
      throw error
    }
    if (refusal === undefined) await notifyChange(connection).catch(ignore)
    return refusal
  }

  async evict({ name, boot, beat }: SeenNode): Promise<boolean> {
    return this.#change(evict, [name, boot, beat])
  }

  async leave({ name, boot }: NodeIdentity): Promise<void> {
    await this.#change(leave, [name, boot])
  }

  async started({ name, boot }: NodeIdentity): Promise<void> {
    await this.#change(turnState, [name, boot, ...(['starting', 'serving'] satisfies NodeState[])])
  }

  async notStarted({ name, boot }: NodeIdentity): Promise<void> {
    await this.#change(turnState, [name, boot, ...(['serving', 'starting'] satisfies NodeState[])])
  }

  setState(name: string, state: NodeState): Promise<boolean> {
    return this.#change(setState, [name, state])
  }

  /**
   * Compares the epoch, too. Otherwise a statement that is late, on a connection that is not used any more, would take the
   * shard from a node that has opened it again.
   */
  async handOver(shard: number, from: NodeIdentity, to: NodeIdentity): Promise<boolean> {
    const [row] = await (await this.#connection.get()).run<{ readonly epoch: string }>(epochOf, [
      shard,
      from.boot,
    ])
    if (row === undefined) return false
    try {
      return await this.#change(handOver, [shard, from.boot, row.epoch, to.name, to.boot])
    } catch (error) {
      if (sqlState(error) === lockNotAvailable) return false
      throw error
    }
  }

  close(): void {
    this.#connection.close()
  }

  /** Runs a statement that returns a row if it changed something. */
  async #change(
    statement: { readonly text: string },
    values: readonly unknown[],
  ): Promise<boolean> {
    const connection = await this.#connection.get()
    const rows = await connection.run(statement, values)
    if (rows.length === 0) return false
    // The change was made, whatever becomes of the notification.
    await notifyChange(connection).catch(ignore)
    return true
  }
}

/** Reads all rows of nodes and shards. */
export async function readRows(connection: PgConnection): Promise<ClusterRows> {
  const [row] = await connection.run<{
    readonly nodes: readonly NodeRow[]
    readonly shards: readonly ShardRow[]
  }>(read)
  return { nodes: row?.nodes ?? [], shards: row?.shards ?? [] }
}

/** Begins a transaction and inserts the row of the node, unless another row is in its way. */
async function joinWithin(
  connection: PgConnection,
  node: JoiningNode,
  replaced: SeenNode | undefined,
): Promise<JoinRefusal | undefined> {
  for (const statement of beginJoin) await connection.run(statement)
  if (replaced !== undefined) {
    await connection.run(evict, [replaced.name, replaced.boot, replaced.beat])
  }
  const rows = await connection.run<NodeRow & AnyRow>({
    text: `SELECT ${nodeColumns} FROM node ORDER BY name`,
  })
  const [obstacle] = joinObstacles(node, rows)
  if (obstacle !== undefined) return obstacle
  const { name, boot, address, workers } = node
  await connection.run(insert, [name, boot, address, workers])
  return undefined
}

function ignore(): void {
  // The connection has ended, and the next call opens another one.
}
