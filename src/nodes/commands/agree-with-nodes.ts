/** What a server checks before it joins the others of its database: that it belongs to them. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { type Clock, sleep } from '../../kit/clock.ts'
import { probeLink } from '../../links/link/connect-link.ts'
import type { NodeLinks } from '../../process/node-links.ts'
import { ConfigError } from '../../config/config.ts'
import type { NodeRow, NodeTable } from '../../store/node-table.ts'
import { readKeyFingerprint, writeKeyFingerprint } from '../postgres/cluster-row.ts'
import type { PgConnection } from '../postgres/pg-connection.ts'
import type { PgUrl } from '../../api/pg-url.ts'
import { readIfThere } from '../../store/read-if-there.ts'
import { writeFileAtomically } from '../../store/write-file.ts'
import { nodeWatchMs } from '../../cli/limits.ts'
import { hasMoved } from './node-report.ts'

/** Refuses the database of another cluster than that of the data directory, as a typing error in a URL names it. */
export async function agreeOnCluster(directory: string, id: string, shown: string): Promise<void> {
  const file = join(directory, 'cluster-id')
  const known = (await readIfThere(file))?.toString().trim()
  if (known === undefined) {
    await writeFileAtomically(file, `${id}\n`, 0o600)
  } else if (known !== id) {
    throw new ConfigError([
      `--database: ${directory} belongs to the cluster ${known}, and ${shown} to the cluster ${id}; name another --dir if that is intended`,
    ])
  }
}

export interface AgreementOptions {
  readonly clock: Clock
  readonly table: Pick<NodeTable, 'read'>
  /** Where the key of the private API is remembered. */
  readonly database: PgUrl
  /** The name of this node. */
  readonly name: string
  readonly adminKey: string
  /** Undefined for a node that is alone. */
  readonly links: NodeLinks | undefined
}

/** Refuses to join nodes that do not recognize this one, or whose admin key is another one. */
export async function agreeWithNodes(options: AgreementOptions): Promise<void> {
  // A node that is alone is refused if there are others, whatever their keys are.
  if (options.links === undefined) return
  const others = await aliveOthers(options)
  const [other] = others
  if (other === undefined) return
  const known = await withDatabase(options.database, readKeyFingerprint)
  if (known !== undefined && known !== fingerprintOf(options.adminKey)) {
    throw new ConfigError([
      `--admin-key-file: expected the admin key of the node ${JSON.stringify(other.name)}, got another one: all nodes share one`,
    ])
  }
  for (const row of others) await assertKnown(row, options)
}

/** Lets nodes with other keys notice. Call this when the node has joined. */
export async function rememberKey(database: PgUrl, adminKey: string): Promise<void> {
  await withDatabase(database, (connection) =>
    writeKeyFingerprint(connection, fingerprintOf(adminKey)),
  )
}

/** A server without a database does not load the client of databases. */
async function withDatabase<Result>(
  database: PgUrl,
  work: (connection: PgConnection) => Promise<Result>,
): Promise<Result> {
  return (await import('./with-databases.ts')).withDatabase(database, work)
}

/** The database may know this hash: an admin key is random, so nobody finds it by its hash. */
function fingerprintOf(adminKey: string): string {
  return createHash('sha256').update(`postbote admin key ${adminKey}`).digest('hex')
}

/** Returns the rows of other nodes whose beats move. */
export async function aliveOthers({
  clock,
  table,
  name,
}: Pick<AgreementOptions, 'clock' | 'table' | 'name'>): Promise<readonly NodeRow[]> {
  const before = (await table.read()).nodes.filter((row) => row.name !== name)
  if (before.length === 0) return []
  await sleep(clock, nodeWatchMs)
  const { nodes } = await table.read()
  return nodes.filter((row) => hasMoved(row, before) === true)
}

async function assertKnown(
  { name, address }: NodeRow,
  { clock, links }: AgreementOptions,
): Promise<void> {
  if (links === undefined || address === '') return
  if ((await probeLink(clock, address, links.security)) !== 'refused') return
  throw new ConfigError([
    `the node ${JSON.stringify(name)} at ${address} does not recognize this one: expected the same cluster key`,
  ])
}
