/** Makes a server that keeps its shards in a database a member of it, and ends that. */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../clock.ts'
import type { Log } from '../cluster/log.ts'
import { Heartbeat } from '../cluster/membership/heartbeat.ts'
import { joinCluster } from '../cluster/membership/join.ts'
import { type Config, ConfigError } from '../config/config.ts'
import type { PgEngineOptions } from '../store/postgres/pg-engine-options.ts'
import type { PgUrl } from '../store/postgres/pg-url.ts'
import type { HeartbeatRead } from '../store/node-table.ts'
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

export interface JoinedDatabase {
  /** The number of shards, which the database fixes. */
  readonly shards: number
  /** For the workers. */
  readonly engine: PgEngineOptions
  /**
   * Adds the row of this server and keeps it. The lease is on the clock of the machine.
   *
   * @throws Error if another server uses the database
   */
  start(options: {
    readonly workers: number
    readonly onLease: (validUntilMs: number) => void
    /** Called with the rows of nodes and shards after every heartbeat. */
    readonly onRead?: ((read: HeartbeatRead) => void) | undefined
    readonly onEvicted: () => void
  }): Promise<void>
  /** Deletes the row, so that another server can begin at once. Never rejects. */
  leave(): Promise<void>
}

/** Reads what the database fixes. Nothing is changed before `start`. */
export async function joinDatabase(options: JoinDatabaseOptions): Promise<JoinedDatabase> {
  const { config, directory, clock, log, database } = options
  // Imported only here, because loading it takes a while, and most servers have no database.
  const { PgNodes } = await import('../store/postgres/pg-nodes.ts')
  await refuseEmbedded(directory)
  const { shards, gap } = await examined(database)
  if (gap !== undefined) {
    if (config.requireReplication) throw new ConfigError([`--require-replication: ${gap}`])
    log.warn({}, gap)
  }
  if (config.shards !== undefined && config.shards !== shards) {
    throw new ConfigError([
      `--shards ${config.shards}: expected ${shards}, the number of shards of ${database.shown}`,
    ])
  }
  const self = { name: config.nodeName ?? hostname(), boot: randomBytes(8).toString('hex') }
  const table = new PgNodes(database, self.boot)
  let heartbeat: Heartbeat | undefined
  return {
    shards,
    engine: {
      database,
      node: self.name,
      boot: self.boot,
      bytesMax: config.databaseMaxBytes,
    },
    async start({ workers, onLease, onRead, onEvicted }) {
      const bootFile = join(directory, 'node-boot')
      const lastBoot = (await readIfThere(bootFile))?.toString().trim()
      try {
        await joinCluster({ clock, log, table, lastBoot, self: { ...self, workers, address: '' } })
        await writeFileAtomically(bootFile, `${self.boot}\n`, 0o600)
        heartbeat = new Heartbeat({ clock, log, table, self, onLease, onRead, onEvicted })
        await heartbeat.start()
      } catch (error) {
        // An open connection would keep the process alive.
        table.close()
        throw error
      }
    },
    async leave() {
      heartbeat?.close()
      await table.leave(self).catch(() => undefined)
      table.close()
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
  readonly shards: number
  /** Why the loss of its machine would lose updates, if it would. */
  readonly gap: string | undefined
}

async function examined(database: PgUrl): Promise<ExaminedDatabase> {
  const { withDatabase } = await import('./with-database.ts')
  const { readCluster } = await import('../store/postgres/cluster-row.ts')
  const { replicationGap } = await import('../store/postgres/examine-database.ts')
  return withDatabase(database, async (connection) => {
    const { shards } = await readCluster(connection)
    return { shards, gap: await replicationGap(connection) }
  })
}
