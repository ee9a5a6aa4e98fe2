/**
 * The databases of a cluster while a command reads or fills their shards. The command is a member of each of them, as a
 * server is, and so no server can use them meanwhile.
 */
import { waitingClock } from '../../kit/clock.ts'
import { Member } from '../membership/member.ts'
import { databaseOfShard } from '../../store/database-of-shard.ts'
import {
  type ClusterRow,
  holdRecords,
  setFinished,
  setUnfinished,
} from '../postgres/cluster-row.ts'
import { PgEngine } from '../postgres/pg-engine.ts'
import { PgNodes } from '../postgres/pg-nodes.ts'
import { type PgUrl, shownUrls } from '../../api/pg-url.ts'
import type { OpenedStore } from '../../store/store-engine.ts'
import { createLog } from '../../cli/output/log.ts'
import { readClusterRows, withDatabases } from './with-databases.ts'
import { ConfigError } from '../../config/config.ts'
import type { DatabaseImport } from '../../features/backup/import-command.ts'

export interface ClusterDatabases {
  readonly urls: readonly PgUrl[]
  /** The rows of the databases. */
  readonly rows: readonly ClusterRow[]
  readonly shards: number
  /** Opens a shard in its database. */
  readonly open: (shard: number) => Promise<OpenedStore>
}

const nodeName = 'postbote database'

/** Keeps servers away from the databases while `work` uses them. */
export async function useDatabases<Result>(
  urls: readonly PgUrl[],
  work: (databases: ClusterDatabases) => Promise<Result>,
): Promise<Result> {
  const rows = await readClusterRows(urls)
  const engine = new PgEngine({ databases: urls, node: nodeName, bytesMax: undefined })
  /** The life of this process in each database. */
  const boots = new Map<number, string>()
  const members = urls.map((url, number) => memberOf(url, (boot) => boots.set(number, boot)))
  const open = async (shard: number): Promise<OpenedStore> => {
    const boot = boots.get(databaseOfShard(shard, urls.length))
    // A database has no directories of shards.
    const where = { shard, boot, directory: '', clock: waitingClock, log: createLog('warn') }
    const opened = await engine.open(where)
    await opened.store.open()
    return opened
  }
  try {
    for (const member of members) await member.start()
    return await work({ urls, rows, shards: rows[0]?.shards ?? 0, open })
  } finally {
    await Promise.all(members.map((member) => member.leave()))
  }
}

function memberOf(url: PgUrl, onBoot: (boot: string) => void): Member {
  return new Member({
    clock: waitingClock,
    log: createLog('warn'),
    table: new PgNodes(url, nodeName),
    node: { name: nodeName, address: '', workers: 0 },
    onJoined: (self) => onBoot(self.boot),
    // Whoever evicted it uses the database now.
    onEvicted: () => process.exit(1),
    onRefused: () => process.exit(1),
  })
}

/** @throws Error if one of the databases has a record */
export async function assertEmpty({ urls, rows }: ClusterDatabases): Promise<void> {
  const full = new Set<PgUrl>()
  await withDatabases(urls, (forEach) =>
    forEach(async (connection, number) => {
      const [url, row] = [urls[number], rows[number]]
      if (url !== undefined && row !== undefined && (await holdRecords(connection, row)))
        full.add(url)
    }),
  )
  if (full.size > 0) {
    throw new Error(`${shownUrls([...full])} is not empty: import into a new database`)
  }
}

/**
 * Runs `work`, which fills the databases. A server refuses them until it has succeeded.
 *
 * @param types - the added types that they have then, as they are stored
 */
export async function fillDatabases<Result>(
  { urls }: ClusterDatabases,
  types: readonly string[],
  work: () => Promise<Result>,
): Promise<Result> {
  await withDatabases(urls, (forEach) => forEach(setUnfinished))
  const result = await work()
  await withDatabases(urls, (forEach) => forEach((connection) => setFinished(connection, types)))
  return result
}

/** Runs `work`, which brings a backup into the empty databases of a new cluster, while no server may use them. */
export function importBackup<Result>({
  config: { databases, shards },
  types: given,
  work,
}: DatabaseImport<Result>): Promise<Result> {
  return useDatabases(databases, async (cluster) => {
    const shown = shownUrls(databases)
    if (shards !== undefined && shards !== cluster.shards) {
      throw new ConfigError([`--shards ${shards}: expected ${cluster.shards}, which ${shown} has`])
    }
    const { open, rows } = cluster
    const types = [...new Set([...(rows[0]?.types ?? []), ...given])]
    await assertEmpty(cluster)
    const target = { shown, shards: cluster.shards, hasMarks: false, open, bound: nothing }
    return fillDatabases(cluster, types, () => work(target, types))
  })
}

async function nothing(): Promise<void> {
  // A database loses no ids, and needs no bound of them.
}
