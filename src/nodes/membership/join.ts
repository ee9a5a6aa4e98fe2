/**
 * Makes this server a node of its database.
 *
 * The row of the last life of this data directory is replaced at once if the lock of the directory proves that it has
 * ended. Any other row that is in the way (join-obstacles.ts) is evicted when it has stood still for `nodeEvictedMs`. If one
 * is alive, this server does not start.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import { joinObstacles } from './join-obstacles.ts'
import { unreachable } from '../../kit/errors.ts'
import type { JoiningNode, JoinObstacle, NodeRow, NodeTable } from '../../store/node-table.ts'
import type { Log } from '../../kit/surroundings.ts'
import type { LastNodeLife } from './last-node-life.ts'
import { nodeHeartbeatMs } from './limits.ts'
import { Membership } from './membership.ts'

export interface JoinOptions {
  readonly clock: Clock
  readonly log: Log
  readonly table: NodeTable
  readonly self: JoiningNode
  /** Undefined for a data directory without one. */
  readonly lastLife: LastNodeLife | undefined
}

/** Another server is alive and in the way of this one; the message says what to do. */
export class JoinRefusedError extends Error {
  constructor(obstacle: JoinObstacle, lastLife: LastNodeLife | undefined) {
    const isCopy = obstacle.row.boot === lastLife?.boot
    super(`${isCopy ? thisIsACopy : ''}${refusalText(obstacle)}`)
    this.name = 'JoinRefusedError'
  }
}

/** Resolves when this server has a row, with the rows from before (its own last one included). Rejects with a JoinRefusedError, or with the error of the database. */
export async function joinCluster(options: JoinOptions): Promise<readonly NodeRow[]> {
  const { clock, log, table, self, lastLife } = options
  const membership = new Membership(self.boot)
  const firstBeats = new Map<string, string>()
  for (;;) {
    const sentAtMs = clock.machineMs()
    const { nodes } = await table.read()
    const read = { isMember: false, nodes, sentAtMs, receivedAtMs: clock.machineMs() }
    const overdue = membership.read(read)
    const last = nodes.find(({ boot }) => lastLife?.hasEnded === true && boot === lastLife.boot)
    const obstacles = joinObstacles(self, nodes).filter(({ row }) => row !== last)
    if (last !== undefined) log.info({ node: last.name }, hasEnded)
    if (obstacles.length === 0 && (await table.join(self, last)) === undefined) return nodes
    // Its shards need not wait for what becomes of this server.
    if (obstacles.length > 0 && last !== undefined) await table.evict(last)
    for (const obstacle of obstacles) {
      const { row } = obstacle
      const firstBeat = firstBeats.get(row.boot) ?? row.beat
      firstBeats.set(row.boot, firstBeat)
      if (overdue.includes(row)) {
        log.info({ node: row.name }, hasEnded)
        await table.evict(row)
      } else if (firstBeat !== row.beat) {
        throw new JoinRefusedError(obstacle, lastLife)
      }
    }
    await sleep(clock, nodeHeartbeatMs)
  }
}

const thisIsACopy =
  'the data directory is a copy of that of a server that is alive, so use an empty --dir: '
const hasEnded = 'a server that has ended is removed from the database'

function refusalText({ reason, row }: JoinObstacle): string {
  const node = `the node ${JSON.stringify(row.name)}`
  switch (reason) {
    case 'other without address':
      return `the database is used by another server, ${node}, which has no --cluster-listen: stop it first, or start it with one`
    case 'self without address':
      return `this server has no --cluster-listen, but the database is used by another server, ${node} at ${row.address}: start this one with --cluster-listen`
    case 'name taken':
      return `another server, at ${row.address}, is ${node} of this database, too: start this one with another --node-name`
    default:
      return unreachable(reason)
  }
}
