/**
 * Claims a shard for a process: its epoch rises by one, so that no statement of an earlier owner writes any more.
 *
 * A statement of the earlier owner that is still under way holds the row. The claim waits for its end; if that takes too
 * long, as when the machine of that owner is gone, it ends the connection that holds the row, once.
 */
import type { PgConnection } from './pg-connection.ts'
import { NotOwnerError } from '../../store/store-engine.ts'
import { lockNotAvailable, sqlState } from './sql-state.ts'
import { claimStatement, endOwnerStatement, ownerStatement } from './named-statement.ts'
import { notifyChange } from './notify-change.ts'

/** One process that owns shards. */
export interface PgOwner {
  /** The name of its node. */
  readonly node: string
  /** The life of its node, after which its connections are named. */
  readonly boot: string
}

interface OwnerRow {
  readonly epoch: string
  readonly node: string
  readonly boot: string
}

/** Returns the beginning of the names of all connections of a `boot`. */
export function connectionName(boot: string): string {
  return `postbote/${boot}`
}

/** Returns the name of the connection on which the owner with this `boot` writes to a shard. */
export function writerName(boot: string, shard: number): string {
  return `${connectionName(boot)}/${shard}`
}

/**
 * Claims the shard.
 *
 * @returns the new epoch
 * @throws NotOwnerError if another process owns the shard and is alive, or was faster
 */
export async function claimShard(
  connection: PgConnection,
  shard: number,
  owner: PgOwner,
): Promise<string> {
  const before = await ownerOf(connection, shard)
  const claim = (): Promise<readonly { readonly epoch: string }[]> =>
    connection.run({ text: claimStatement }, [shard, owner.node, owner.boot, before.epoch])
  let claimed: readonly { readonly epoch: string }[]
  try {
    claimed = await claim()
  } catch (error) {
    if (sqlState(error) !== lockNotAvailable) throw error
    await connection.run({ text: endOwnerStatement }, [writerName(before.boot, shard)])
    claimed = await claim()
  }
  const [row] = claimed
  if (row !== undefined) {
    // Also of a shard that was handed over: the node that gave it waits for this.
    await notifyChange(connection)
    return row.epoch
  }
  const now = await ownerOf(connection, shard)
  throw new NotOwnerError(shard, now.node)
}

async function ownerOf(connection: PgConnection, shard: number): Promise<OwnerRow> {
  const [row] = await connection.run<OwnerRow>({ text: ownerStatement }, [shard])
  if (row === undefined) throw new Error(`the database has no shard ${shard}`)
  return row
}
