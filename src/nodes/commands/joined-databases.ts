/**
 * A server that keeps its shards in databases, as a member of each of them.
 *
 * One database that responds is enough for a start. The others are joined in the background as soon as they respond, so
 * that a database which is away costs only its own shards.
 */
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { type AddedType, givenTypes } from '../../kit/added-type.ts'
import { sleep } from '../../kit/clock.ts'
import { linkSecurityFrom } from '../../links/link/link-security.ts'
import { describeAddress } from '../../http/listener.ts'
import type { NodeLinks } from '../../process/node-links.ts'
import type { PrimaryOptions } from '../../process/primary/primary.ts'
import type { RouteTable } from '../../process/routes.ts'
import type { ShardAssignment, ShardControl, ShardOpening } from '../../process/shard-assignment.ts'
import { databaseOfShard } from '../../store/database-of-shard.ts'
import { type Config, ConfigError } from '../../config/config.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { messageOf } from '../../kit/errors.ts'
import { exists } from '../../store/read-if-there.ts'
import type { NodeTable } from '../../store/node-table.ts'
import type { PgEngineOptions } from '../postgres/pg-engine.ts'
import { shownUrls } from '../../api/pg-url.ts'
import { agreeOnCluster } from './agree-with-nodes.ts'
import { ClusterTypes } from './cluster-types.ts'
import { DatabaseCheck, isMisfit } from './database-check.ts'
import { DatabaseMember, type DatabaseMemberOptions, type MemberStart } from './database-member.ts'
import { whileSlow } from './while-slow.ts'

/** A database that was away when the server started is asked again after this pause. Chosen: 16 of them cost little. */
const databaseAskAgainMs = 1_000

interface JoinedDatabasesParts
  extends Pick<DatabaseMemberOptions, 'directory' | 'lock' | 'clock' | 'log' | 'name' | 'links'> {
  readonly config: Config
  readonly types: ClusterTypes
  readonly check: DatabaseCheck
  /** The number of shards of the cluster. */
  readonly shards: number
  /** The rows of nodes and shards, by database. */
  readonly tables: readonly NodeTable[]
}

export class JoinedDatabases {
  /** The number of shards, which the databases fix. */
  readonly shards: number
  /** The added types, in the order of their numbers. */
  readonly types: readonly AddedType[]
  /** For the workers. */
  readonly engine: PgEngineOptions
  readonly forPrimary: Pick<PrimaryOptions, 'assignment' | 'links' | 'beforeEnd'>
  readonly #options: JoinedDatabasesParts
  readonly #members: readonly DatabaseMember[]
  /** Those that responded at the start, and then those of them that this server has joined. */
  #present: readonly DatabaseMember[]
  readonly #assignment: JointAssignment
  readonly #stopping = new AbortController()
  #control: ShardControl | undefined
  #onEnd: ((code: number) => void) | undefined

  /** Reads what the databases fix. Nothing is changed before `start`. Returns undefined if the options name no database. */
  static async open(
    config: Config,
    directory: string,
    lock: DatabaseMemberOptions['lock'],
    surroundings: Pick<Surroundings, 'clock' | 'log'>,
  ): Promise<JoinedDatabases | undefined> {
    if (config.databases.length === 0) return undefined
    const { log } = surroundings
    // Imported only here, because loading it takes a while, and most servers have no database.
    const { PgNodes } = await import('../postgres/pg-nodes.ts')
    await refuseEmbedded(directory)
    const check = new DatabaseCheck(config, log)
    const { id, shards } = await whileSlow(surroundings, () => check.all())
    const shown = shownUrls(config.databases)
    await agreeOnCluster(directory, id, shown)
    const types = new ClusterTypes(check.rows, givenTypes(config), shown)
    const links = readNodeLinks(config)
    const name = config.nodeName ?? hostname()
    const tables = config.databases.map((database) => new PgNodes(database, name))
    return new JoinedDatabases({
      ...surroundings,
      config,
      directory,
      lock,
      check,
      types,
      shards,
      name,
      links,
      tables,
    })
  }

  /** For `open`, which has checked the databases. */
  constructor(options: JoinedDatabasesParts) {
    const { check, config, links, name, shards } = options
    const { databases, databaseMaxBytes: bytesMax } = config
    this.#options = options
    this.shards = shards
    this.types = options.types.types
    this.#members = databases.map((_, number) => this.#memberOf(number))
    this.#present = this.#members.filter((_, number) => check.hasResponded(number))
    const coordinators = this.#members.map(({ coordinator }) => coordinator)
    this.#assignment = new JointAssignment(coordinators)
    this.engine = { databases, node: name, bytesMax }
    this.forPrimary = {
      assignment: this.#assignment,
      links,
      beforeEnd: async () => {
        this.#stopping.abort()
        await Promise.all(coordinators.map((coordinator) => coordinator.handOverAll()))
        return coordinators.every(({ isFree }) => isFree)
      },
    }
  }

  /**
   * Adds the rows of this server and keeps them.
   *
   * @throws Error if another server is in the way
   */
  async start(start: MemberStart): Promise<void> {
    this.#onEnd = start.onEnd
    if (this.#options.types.areAdded) await this.#addTypes(start)
    else await this.#joinPresent(start)
  }

  /** Types are added only if all databases have responded. One that fails now keeps this server from starting. */
  async #addTypes(start: MemberStart): Promise<void> {
    try {
      await Promise.all(this.#present.map((member) => member.assertMayAddTypes()))
      for (const member of this.#present) await member.start(start)
    } catch (error) {
      await this.leave()
      throw error
    }
  }

  async #joinPresent(start: MemberStart): Promise<void> {
    const joining = whileSlow(this.#options, () => this.#startPresent(start))
    const starts = await joining.catch(async (error: unknown) => {
      await this.leave()
      throw error
    })
    this.#present = this.#present.filter((_, nth) => starts[nth]?.status === 'fulfilled')
    for (const [number, member] of this.#members.entries()) {
      if (!this.#present.includes(member)) void this.#startLater(number, member, start)
    }
  }

  /** @throws Error if this server can join no database, or does not belong to one */
  async #startPresent(start: MemberStart): Promise<readonly PromiseSettledResult<void>[]> {
    const starts = await Promise.allSettled(this.#present.map((member) => member.start(start)))
    const failures: unknown[] = starts.flatMap((each) =>
      each.status === 'rejected' ? [each.reason] : [],
    )
    const haveAllFailed = failures.length === starts.length
    const fatal = failures.find((error) => haveAllFailed || isMisfit(error))
    if (fatal !== undefined) throw fatal
    return starts
  }

  /**
   * Lets the workers open shards. Resolves when every shard of the databases that responded at the start has an owner, and
   * those of this node are served, or after the time that a coordinator waits for it.
   */
  async begin(control: ShardControl): Promise<void> {
    this.#control = control
    for (const { coordinator } of this.#members) coordinator.begin(control)
    await Promise.all(this.#present.map(({ coordinator }) => coordinator.settled()))
  }

  /** Deletes the rows, so that another server can begin at once. Never rejects. */
  async leave(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#members.map((member) => member.leave()))
  }

  #memberOf(number: number): DatabaseMember {
    const { check, config, shards, tables } = this.#options
    const [database, table] = [config.databases[number], tables[number]]
    if (database === undefined || table === undefined) throw new Error('expected a database')
    return new DatabaseMember({
      ...this.#options,
      log: check.logOf(number),
      database,
      table,
      part: { shards, databases: tables.length, number },
      onRoutes: () => this.#control?.setRoutes(this.#assignment.routes()),
      onLeft: () => this.#endIfFree(),
      isLeaving: () => this.#members.some(({ coordinator }) => coordinator.isLeaving),
    })
  }

  /** A drained node ends when other nodes have its shards of all databases. Returns whether it ends. */
  #endIfFree(): boolean {
    const isFree = this.#members.every(({ coordinator }) => coordinator.isFree)
    if (isFree) this.#onEnd?.(0)
    return isFree
  }

  async #startLater(number: number, member: DatabaseMember, start: MemberStart): Promise<void> {
    const { check, clock } = this.#options
    const { signal } = this.#stopping
    const log = check.logOf(number)
    let failure = ''
    for (;;) {
      await sleep(clock, databaseAskAgainMs, signal)
      if (signal.aborted) return
      try {
        await check.one(number)
        if (signal.aborted) return
        await member.start(start)
        if (signal.aborted) await member.leave()
        else log.info({}, 'the database responds, and this server has joined it')
        return
      } catch (error) {
        if (isMisfit(error)) {
          log.error({ error: messageOf(error) }, 'this server does not belong to the database')
          start.onEnd(1)
          return
        }
        if (messageOf(error) === failure) continue
        failure = messageOf(error)
        log.warn({ error: failure }, 'this server could not join the database yet')
      }
    }
  }
}

/** What a node has in all databases of its cluster, each of which has an assignment of its own. */
export class JointAssignment implements ShardAssignment {
  readonly #parts: readonly ShardAssignment[]

  /** @param parts - by database; each knows the shards of its own database only */
  constructor(parts: readonly ShardAssignment[]) {
    this.#parts = parts
  }

  openings(): readonly ShardOpening[] {
    return this.#parts.flatMap((part) => part.openings())
  }

  has(shard: number): boolean {
    return this.#parts[databaseOfShard(shard, this.#parts.length)]?.has(shard) === true
  }

  routes(): RouteTable {
    const tables = this.#parts.flatMap((part) => part.routes() ?? [])
    return {
      boots: tables.flatMap(({ boots }) => boots),
      nodes: tables.flatMap(({ nodes }) => nodes),
      owners: tables.flatMap(({ owners }) => owners),
      servers: tables.flatMap(({ servers }) => servers),
    }
  }
}

/** A server that ignores what its directory holds would look as if it had lost everything. */
async function refuseEmbedded(directory: string): Promise<void> {
  if (!(await exists(join(directory, 'shards')))) return
  throw new ConfigError([
    `--database: ${directory} holds the shards of a server without a database; name another --dir, or copy them with postbote database import`,
  ])
}

/** Returns what a node needs for its links to others, from the file that its option names; undefined for one that is alone. */
function readNodeLinks(config: Config): NodeLinks | undefined {
  const { clusterListen: listen, clusterAdvertise: advertise = listen, clusterKeyFile } = config
  if (listen === undefined || advertise === undefined || clusterKeyFile === undefined) {
    return undefined
  }
  try {
    return {
      ...listen,
      address: describeAddress(advertise),
      security: linkSecurityFrom(clusterKeyFile, (path) => readFileSync(path)),
    }
  } catch (error) {
    throw new ConfigError([messageOf(error)])
  }
}
