/** A PostgreSQL that syncs its disk, alone or with a synchronous standby, all on this machine. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Postgres } from '../test/support/server/postgres.ts'
import type { CaseContext, CpuUsByProcess } from './contestant.ts'
import type { Metered } from './cpu-meter.ts'
import { cpuUsOf, processTree } from './process-cpu.ts'

const mainFile = fileURLToPath(new URL('../src/main.js', import.meta.url))

export interface PairOptions {
  readonly hasStandby: boolean
  /** Further lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
}

export class PostgresPair implements Metered {
  readonly #primary: Postgres
  readonly #standby: Postgres | undefined

  private constructor(primary: Postgres, standby: Postgres | undefined) {
    this.#primary = primary
    this.#standby = standby
  }

  /** Starts the servers. They end with the case. */
  static async start(
    context: CaseContext,
    { hasStandby, settings: more = {} }: PairOptions,
  ): Promise<PostgresPair> {
    const settings = { fsync: 'on', shared_buffers: '128MB', max_wal_size: '2GB', ...more }
    const primary = await Postgres.start({ settings })
    context.atEnd(() => primary.remove())
    const standby = hasStandby ? await primary.standby({ isSynchronous: true }) : undefined
    if (standby !== undefined) context.atEnd(() => standby.remove())
    return new PostgresPair(primary, standby)
  }

  /** Makes the tables of a cluster, and returns the flags of a server that uses them. */
  flags(shards: number): readonly string[] {
    const flags = ['--database', this.#primary.url()]
    const command = [mainFile, 'database', 'init', ...flags, '--shards', `${shards}`]
    execFileSync(process.execPath, command, { stdio: ['ignore', 'ignore', 'inherit'] })
    return flags
  }

  query(sql: string): ReturnType<Postgres['query']> {
    return this.#primary.query(sql)
  }

  /** Returns the life of the node that owns each shard, by shard. */
  async owners(): Promise<readonly string[]> {
    const rows = await this.#primary.query('SELECT boot FROM shard ORDER BY shard')
    return rows.map(({ boot }) => String(boot))
  }

  cpuUsByProcess(): CpuUsByProcess {
    const primary = { primary: cpuUsOf(processTree(this.#primary.pid)) }
    if (this.#standby === undefined) return { database: primary.primary }
    return { database: primary.primary, standby: cpuUsOf(processTree(this.#standby.pid)) }
  }
}
