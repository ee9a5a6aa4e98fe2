/**
 * Tells the nodes that rows of nodes or shards have changed, so that they read them at once instead of with their next
 * heartbeat. A notification that is lost does no harm.
 *
 * It is a statement of its own after the change. Within the transaction of the change, it would hold a lock of the whole
 * server until the standby has the commit: the claims of all shards of a lost node would wait for each other, and
 * those that wait for `pgLockMs` would fail.
 */
import type { PgConnection } from './pg-connection.ts'
import { isRefusal } from './sql-state.ts'

const channel = 'postbote'
const notify = { text: `NOTIFY ${channel}` }
const listen = { text: `LISTEN ${channel}` }

/** Notifies all connections that listen. Rejects only if the connection has ended. */
export async function notifyChange(connection: PgConnection): Promise<void> {
  try {
    await connection.run(notify)
  } catch (error) {
    if (!isRefusal(error)) throw error
  }
}

/** From now on `onChange` is called for the notifications of other connections. */
export async function listenToChanges(
  connection: PgConnection,
  onChange: () => void,
): Promise<void> {
  connection.onNotified = onChange
  await connection.run(listen)
}
