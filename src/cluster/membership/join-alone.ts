/**
 * Makes this server the only node of its database.
 *
 * The row of a server that has ended without deleting it is evicted: at once if it was the last life of this data
 * directory, whose lock proves that it has ended, and otherwise when it has stood still for `nodeEvictedMs`. If another
 * server is alive, this one does not start.
 */
import { type Clock, sleep } from '../../clock.ts'
import type { Log } from '../log.ts'
import { nodeHeartbeatMs } from './limits.ts'
import { Membership } from './membership.ts'
import type { NodeRow, NodeTable } from '../../store/node-table.ts'

export interface JoinOptions {
  readonly clock: Clock
  readonly log: Log
  readonly table: NodeTable
  readonly self: Omit<NodeRow, 'beat' | 'state'>
  /** The last boot of this data directory, which has ended. */
  readonly lastBoot: string | undefined
}

/** Resolves when the row of this server is the only one. Rejects if another server uses the database. */
export async function joinAlone({ clock, log, table, self, lastBoot }: JoinOptions): Promise<void> {
  const membership = new Membership(self.boot)
  const first = new Map<string, NodeRow>()
  for (;;) {
    const sentAtMs = clock.machineMs()
    const nodes = await table.nodes()
    if (nodes.length === 0 && (await table.joinAlone(self))) return
    const read = { isMember: false, nodes, sentAtMs, receivedAtMs: clock.machineMs() }
    const overdue = membership.read(read)
    for (const row of nodes) {
      const seen = first.get(row.boot) ?? row
      first.set(row.boot, seen)
      if (row.boot === lastBoot || overdue.includes(row)) {
        log.info({ node: row.name }, 'a server that has ended is removed from the database')
        await table.evict(row)
      } else if (seen.beat !== row.beat) {
        throw new Error(
          `the database is used by another server, the node ${JSON.stringify(row.name)}${row.address === '' ? '' : ` at ${row.address}`}: stop it first`,
        )
      }
    }
    await sleep(clock, nodeHeartbeatMs)
  }
}
