/** Makes a server that keeps its shards in a database a member of it, and ends that. */
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import type { Log } from '../cluster/log.ts'
import { Member } from '../cluster/membership/member.ts'
import { ShardCoordinator } from '../cluster/membership/shard-coordinator.ts'
import { type Config, ConfigError } from '../config/config.ts'
import type { PgEngineOptions } from '../store/postgres/pg-engine-options.ts'
import type { PgUrl } from '../store/postgres/pg-url.ts'
import type { PrimaryOptions } from '../cluster/primary/primary.ts'
import type { ShardControl } from '../cluster/shard-assignment.ts'
import { readNodeLinks } from './read-node-links.ts'
import { agreeOnCluster, agreeWithNodes, type KeyMemory, rememberKey } from './agree-with-nodes.ts'
import { exists } from '../store/exists.ts'
import { readIfThere } from '../store/read-if-there.ts'
import { writeFileAtomically } from '../store/write-file.ts'

export interface JoinDatabaseOptions {
  readonly config: Config
  readonly database: PgUrl
  /** The data directory, whose lock this process holds. */
  readonly directory: string
  readonly clock: Clock
  readonly log: Log
}

export interface MemberStart {
  readonly adminKey: string
  readonly workers: number
  /** Called with the end of the lease, on the clock of the machine. */
  readonly onLease: (validUntilMs: number) => void
  /** The node ends: with code 0 after it was drained, with 1 if another node is in its place. */
  readonly onEnd: (code: number) => void
}

export interface JoinedDatabase {
  /** The number of shards, which the database fixes. */
  readonly shards: number
  /** For the workers. */
  readonly engine: PgEngineOptions
  readonly forPrimary: Pick<PrimaryOptions, 'assignment' | 'links' | 'beforeEnd'>
  /**
   * Adds the row of this server and keeps it.
   *
   * @throws Error if another server is in the way
   */
  start(start: MemberStart): Promise<void>
  /** Lets the workers open shards. Resolves when every shard has an owner, and those of this node are served. */
  begin(workers: ShardControl): Promise<void>
  /** Deletes the row, so that another server can begin at once. Never rejects. */
  leave(): Promise<void>
}

/** Reads what the database fixes. Nothing is changed before `start`. */
export async function joinDatabase(options: JoinDatabaseOptions): Promise<JoinedDatabase> {
  const { config, directory, clock, log, database } = options
  // Imported only here, because loading it takes a while, and most servers have no database.
  const { PgNodes } = await import('../store/postgres/pg-nodes.ts')
  await refuseEmbedded(directory)
  const { id, shards, gap } = await examined(database)
  await agreeOnCluster(directory, id, database.shown)
  if (gap !== undefined) {
    if (config.requireReplication) throw new ConfigError([`--require-replication: ${gap}`])
    log.warn({}, gap)
  }
  if (config.shards !== undefined && config.shards !== shards) {
    throw new ConfigError([
      `--shards ${config.shards}: expected ${shards}, the number of shards of ${database.shown}`,
    ])
  }
  const links = readNodeLinks(config)
  const name = config.nodeName ?? hostname()
  const table = new PgNodes(database, name)
  let end: ((code: number) => void) | undefined
  const coordinator = new ShardCoordinator({ clock, log, table, shards, onLeft: () => end?.(0) })
  let member: Member | undefined
  return {
    shards,
    engine: { database, node: name, bytesMax: config.databaseMaxBytes },
    forPrimary: {
      assignment: coordinator,
      links,
      beforeEnd: () => coordinator.handOverAll(),
    },
    async start({ adminKey, workers, onLease, onEnd }) {
      end = onEnd
      const bootFile = join(directory, 'node-boot')
      member = new Member({
        clock,
        log,
        table,
        node: { name, workers, address: links?.address ?? '' },
        lastBoot: (await readIfThere(bootFile))?.toString().trim(),
        async onJoined(self) {
          await writeFileAtomically(bootFile, `${self.boot}\n`, 0o600)
          coordinator.joined(self)
        },
        onRead: (read) => coordinator.onRead(read),
        onLease,
        onEvicted() {
          onLease(0)
          return coordinator.evicted()
        },
        onRefused: () => onEnd(1),
      })
      const keys = await keyMemory(database)
      try {
        await agreeWithNodes({ clock, table, keys, name, adminKey, links })
        await member.start()
        await rememberKey(keys, adminKey)
      } catch (error) {
        // An open connection would keep the process alive.
        await member.leave()
        throw error
      }
    },
    begin(shardControl) {
      coordinator.begin(shardControl)
      return coordinator.settled()
    },
    async leave() {
      await member?.leave()
    },
  }
}

/** A server that ignores what its directory holds would look as if it had lost everything. */
async function refuseEmbedded(directory: string): Promise<void> {
  if (!(await exists(join(directory, 'shards')))) return
  throw new ConfigError([
    `--database: ${directory} holds the shards of a server without a database; name another --dir, or copy them with postbote database import`,
  ])
}

interface ExaminedDatabase {
  /** Of the cluster. */
  readonly id: string
  readonly shards: number
  /** Why the loss of its machine would lose updates, if it would. */
  readonly gap: string | undefined
}

async function examined(database: PgUrl): Promise<ExaminedDatabase> {
  const { withDatabase } = await import('./with-database.ts')
  const { readCluster } = await import('../store/postgres/cluster-row.ts')
  const { replicationGap } = await import('../store/postgres/examine-database.ts')
  return withDatabase(database, async (connection) => {
    const { id, shards } = await readCluster(connection)
    return { id, shards, gap: await replicationGap(connection) }
  })
}

async function keyMemory(database: PgUrl): Promise<KeyMemory> {
  const { withDatabase } = await import('./with-database.ts')
  const { readKeyFingerprint, writeKeyFingerprint } = await import(
    '../store/postgres/cluster-row.ts'
  )
  return {
    read: () => withDatabase(database, readKeyFingerprint),
    write: (fingerprint) =>
      withDatabase(database, (connection) => writeKeyFingerprint(connection, fingerprint)),
  }
}
