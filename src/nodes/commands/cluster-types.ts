/**
 * The added types of a cluster, which each of its databases stores in its row (nodes/postgres/cluster-row.ts).
 *
 *   open     the options must name every type of the rows; those that they name besides get the next numbers
 *   settle   once this server has its row among the nodes: the list is the one that was read, or is written now
 *
 * A list gets longer only while no other server runs, because a server knows the list that it started with. Two servers
 * that start at once with other lists see each other, or the second one waits for the lock and sees what the first one wrote.
 * They do so at the first database, because a server that adds types joins one database after the other: at once, each of
 * them could be the first in another database, and lists that differ would keep the cluster from starting ever again.
 */
import { type AddedType, AddedTypesError, numberedTypes, storedType } from '../../kit/added-type.ts'
import { type Clock, sleep } from '../../kit/clock.ts'
import { nodeEvictedMs, nodeHeartbeatMs } from '../membership/limits.ts'
import type { PgConnection } from '../postgres/pg-connection.ts'
import {
  addTypesColumn,
  type ClusterRow,
  readTypes,
  refuseEarlierVersions,
  writeTypes,
} from '../postgres/cluster-row.ts'
import type { PgUrl } from '../../api/pg-url.ts'

/** The database ends a server that stands still for this long while it adds types. Chosen: as while it joins. */
const idleMs = 1_000

/** The row of a server that has crashed is evicted within this time, with one heartbeat to notice it and one to do it. */
const evictedMsMax = nodeEvictedMs + 2 * nodeHeartbeatMs + idleMs

/** The rows of the databases; undefined for one that has not responded. */
type Rows = readonly (Pick<ClusterRow, 'types'> | undefined)[]

export class ClusterTypes {
  /** In the order of their numbers. */
  readonly types: readonly AddedType[]
  readonly #list: readonly string[]
  /** How many of them a database had before. */
  readonly #before: number

  /**
   * @param given - the types that the options name
   * @param shown - names the cluster in errors
   * @throws AddedTypesError if the options do not fit the rows
   */
  constructor(rows: Rows, given: readonly AddedType[], shown: string) {
    const { types, before } = typesOfCluster(rows, given, shown)
    this.types = types
    this.#list = types.map(storedType)
    this.#before = before
  }

  /** Whether the options name types that are new to the cluster. */
  get areAdded(): boolean {
    return this.#before < this.#list.length
  }

  /**
   * Makes sure that a database has the list. Call this when the server has a row there. The row of a server that has crashed
   * is evicted meanwhile.
   *
   * @param node - the name of this server
   * @throws AddedTypesError if other servers run with another list
   */
  async settle(database: PgUrl, { node, clock }: { node: string; clock: Clock }): Promise<void> {
    const { withDatabase } = await import('./with-databases.ts')
    await withDatabase(database, async (connection) => {
      const untilMs = clock.monotonicMs() + evictedMsMax
      for (;;) {
        const others = await this.#settleIn(connection, node)
        if (others.length === 0) return
        if (clock.monotonicMs() >= untilMs) this.assertAlone(others)
        await sleep(clock, nodeHeartbeatMs)
      }
    })
  }

  /** Returns the names of servers that keep this one from writing the list. */
  async #settleIn(connection: PgConnection, node: string): Promise<readonly string[]> {
    if (this.#isComplete(await readTypes(connection))) return []
    await addTypesColumn(connection)
    await connection.run({ text: 'BEGIN' })
    await connection.run({ text: `SET LOCAL idle_in_transaction_session_timeout = ${idleMs}` })
    const isComplete = this.#isComplete(await readTypes(connection, 'UPDATE'))
    if (!isComplete) await refuseEarlierVersions(connection)
    const rows = await connection.run<{ readonly name: string }>(
      { text: 'SELECT name FROM node WHERE name <> $1 ORDER BY name' },
      [node],
    )
    // A database that is behind the others of the cluster gets what all nodes know.
    const isAlone = rows.length === 0 || !this.areAdded
    if (!isComplete && isAlone) await writeTypes(connection, this.#list)
    await connection.run({ text: isAlone ? 'COMMIT' : 'ROLLBACK' })
    return isComplete || isAlone ? [] : rows.map(({ name }) => name)
  }

  #isComplete(stored: readonly string[]): boolean {
    assertPart(stored, this.#list)
    return stored.length === this.#list.length
  }

  /**
   * @param others - the names of other servers that run
   * @throws AddedTypesError if there are any
   */
  assertAlone(others: readonly string[]): void {
    if (others.length === 0) return
    throw new AddedTypesError(
      `the types ${this.#added} are new to the cluster, and the nodes ${others.join(', ')} run without them: stop all nodes, then start each with the same --update-type and --update-types-of`,
    )
  }

  get #added(): string {
    return this.#list.slice(this.#before).join(', ')
  }
}

/**
 * Returns the types in the order of their numbers, and how many of them a database has already.
 *
 * @throws AddedTypesError if the options do not fit the rows
 */
export function typesOfCluster(
  rows: Rows,
  given: readonly AddedType[],
  shown: string,
): { readonly types: readonly AddedType[]; readonly before: number } {
  const lists = rows.flatMap((row) => (row === undefined ? [] : [row.types]))
  const longest = lists.reduce((most, list) => (list.length > most.length ? list : most), [])
  for (const list of lists) assertPart(list, longest)
  const types = numberedTypes(longest, given, `the cluster of ${shown}`)
  const before = longest.length
  if (types.length === before || lists.length === rows.length) return { types, before }
  const added = types.slice(before).map(storedType).join(', ')
  throw new AddedTypesError(
    `the types ${added} can be added only while all databases of the cluster respond`,
  )
}

/** @throws AddedTypesError */
function assertPart(list: readonly string[], all: readonly string[]): void {
  const odd = list.find((type, nth) => all[nth] !== type)
  if (odd === undefined) return
  throw new AddedTypesError(
    `a database of the cluster has the added type ${odd} at another place than this server: another server has added types meanwhile, so start this one again with all types of the cluster`,
  )
}
