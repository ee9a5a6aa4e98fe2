/**
 * Makes this server a node of its database.
 *
 * The row of the last life of this data directory is replaced at once if the lock of the directory proves that it has
 * ended. Any other row that is in the way is evicted when it has stood still for `nodeEvictedMs`. If one
 * is alive, this server does not start.
 */
import { sleep } from '../../kit/clock.ts'
import { unreachable } from '../../kit/errors.ts'
import type { JoiningNode, JoinObstacle, NodeRow, NodeTable } from '../../store/node-table.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { nodeHeartbeatMs } from './limits.ts'
import { Membership } from './membership.ts'

/**
 * What a data directory says of the life of its last server in a database, so that the next one need not wait for the end of
 * that life: its boot, and the lock that it held. Whoever holds the same lock has outlived it. In a copy of the directory,
 * and on another machine, the lock is another one.
 */
export interface LastNodeLife {
  readonly boot: string
  /** Whether that life is certainly over. If the directory is a copy, the server of the original may be alive. */
  readonly hasEnded: boolean
}

/** Another server is alive and in the way of this one; the message says what to do. */
export class JoinRefusedError extends Error {
  constructor(obstacle: JoinObstacle, lastLife: LastNodeLife | undefined) {
    const isCopy = obstacle.row.boot === lastLife?.boot
    super(`${isCopy ? thisIsACopy : ''}${refusalText(obstacle)}`)
    this.name = 'JoinRefusedError'
  }
}

/**
 * Resolves when this server has a row, with the rows from before (its own last one included). Rejects with a JoinRefusedError,
 * or with the error of the database.
 *
 * @param lastLife - undefined for a data directory without one
 */
export async function joinCluster(
  { clock, log }: Pick<Surroundings, 'clock' | 'log'>,
  table: NodeTable,
  self: JoiningNode,
  lastLife: LastNodeLife | undefined,
): Promise<readonly NodeRow[]> {
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

/**
 * Returns the rows that keep a node from joining. A node without an address must be alone, because no other one could
 * forward requests to it. Its name is the reason that is named last: two servers on one host have the same name unless
 * somebody gives them others, and the missing address is what their operator has to know.
 */
export function joinObstacles(
  { name, address }: Pick<JoiningNode, 'name' | 'address'>,
  rows: readonly NodeRow[],
): readonly JoinObstacle[] {
  return rows.flatMap((row): readonly JoinObstacle[] => {
    if (row.address === '') return [{ reason: 'other without address', row }]
    if (address === '') return [{ reason: 'self without address', row }]
    return row.name === name ? [{ reason: 'name taken', row }] : []
  })
}

/**
 * Returns the record of a life.
 *
 * @param lock - the identity of the lock that its server holds; undefined if there is none to compare
 */
export function lifeRecord(boot: string, lock: string | undefined): string {
  return `${lock === undefined ? boot : `${boot} ${lock}`}\n`
}

/**
 * Reads the record of a life. One without a lock, as earlier versions wrote it, proves nothing.
 *
 * @param lock - the identity of the lock that this server holds
 */
export function lastLifeOf(record: string, lock: string | undefined): LastNodeLife | undefined {
  const [boot = '', heldLock] = record.trim().split(' ')
  return boot === '' ? undefined : { boot, hasEnded: heldLock !== undefined && heldLock === lock }
}
