/** The membership of this server in one of its databases, with what it does with the shards there. */
import { join } from 'node:path'
import type { Log } from '../../kit/surroundings.ts'
import type { ClockReading } from '../membership/database-clock.ts'
import { lastLifeOf, lifeRecord } from '../membership/join.ts'
import { hostAndPort, probeLink } from '../../links/link/connect-link.ts'
import { Member } from '../membership/member.ts'
import { ShardCoordinator } from '../membership/shard-coordinator.ts'
import { ShardMap } from '../../process/shard-map.ts'
import type { DirectoryLock } from '../../process/primary/directory-lock.ts'
import { type ClusterPart, shardsOfDatabase } from '../../store/database-of-shard.ts'
import type { NodeRow, NodeTable } from '../../store/node-table.ts'
import type { PgUrl } from '../../api/pg-url.ts'
import { readIfThere } from '../../store/read-if-there.ts'
import { writeFileAtomically } from '../../store/write-file.ts'
import type { ClusterTypes } from './cluster-types.ts'
import {
  type AgreementOptions,
  agreeWithNodes,
  aliveOthers,
  rememberKey,
} from './agree-with-nodes.ts'

export interface DatabaseMemberOptions extends Omit<AgreementOptions, 'adminKey'> {
  readonly log: Log
  readonly table: NodeTable
  /** Which database it is. */
  readonly part: ClusterPart
  /** The data directory, and its lock, which this process holds. */
  readonly directory: string
  readonly lock: Pick<DirectoryLock, 'identity'>
  /** See `ShardCoordinatorOptions`. */
  readonly onRoutes: () => void
  readonly onLeft: () => boolean
  /** Whether this node was told to leave another database. */
  readonly isLeaving: () => boolean
  readonly types: Pick<ClusterTypes, 'assertAlone' | 'settle'>
}

export interface MemberStart {
  readonly adminKey: string
  readonly workers: number
  /** Called with the end of the lease of a database for this life of the node, on the clock of the machine. */
  readonly onLease: (database: number, boot: string, validUntilMs: number) => void
  /** Called with the clock of a database after each of its heartbeats. */
  readonly onClock: (database: number, reading: ClockReading) => void
  /** The node ends: with code 0 after it was drained, with 1 if it cannot belong to a database. */
  readonly onEnd: (code: number) => void
}

export class DatabaseMember {
  readonly database: PgUrl
  readonly coordinator: ShardCoordinator
  readonly #options: DatabaseMemberOptions
  #member: Member | undefined

  constructor(options: DatabaseMemberOptions) {
    this.#options = options
    this.database = options.database
    this.coordinator = new ShardCoordinator({
      ...options,
      shards: shardsOfDatabase(options.part),
      reaches: (node, shard) => this.#reaches(node, shard),
    })
  }

  /**
   * Call this for each database before one is joined, if types are added.
   *
   * @throws AddedTypesError if other servers run; then call `leave`
   */
  async assertMayAddTypes(): Promise<void> {
    const { clock, table, name, types } = this.#options
    const others = await aliveOthers({ clock, table, name })
    types.assertAlone(others.map((other) => other.name))
  }

  /**
   * Adds the row of this server and keeps it. If this rejects, it can be called again.
   *
   * @throws ConfigError, JoinRefusedError or AddedTypesError if this server does not belong there; otherwise the error of the database
   */
  async start(start: MemberStart): Promise<void> {
    const { clock, database, table, name, links, types } = this.#options
    const { adminKey } = start
    const member = await this.#newMember(start)
    this.#member = member
    try {
      await agreeWithNodes({ clock, table, database, name, adminKey, links })
      await member.start()
      await types.settle(database, { node: name, clock })
      await rememberKey(database, adminKey)
    } catch (error) {
      // An open connection would keep the process alive.
      await member.leave()
      // Workers may have opened shards already.
      await this.coordinator.evicted()
      throw error
    }
  }

  /** Deletes the row, so that another server can begin at once. Never rejects. */
  async leave(): Promise<void> {
    // Without a row, only the connection may be open.
    if (this.#member === undefined) this.#options.table.close()
    else await this.#member.leave()
  }

  /** Whether the worker of another node that would have a shard recognizes this node. */
  async #reaches({ address, workers }: NodeRow, shard: number): Promise<boolean> {
    const { clock, links, part } = this.#options
    if (links === undefined || address === '') return false
    const { host, port } = hostAndPort(address)
    const worker = new ShardMap({ shards: part.shards, workers }).workerOf(shard)
    return (await probeLink(clock, `${host}:${port + worker}`, links.security)) === 'ready'
  }

  async #newMember({ workers, onClock, onLease, onEnd }: MemberStart): Promise<Member> {
    const { clock, log, table, part, directory, lock, name, links, isLeaving } = this.#options
    const { coordinator } = this
    const bootFile = join(directory, `node-boot-${part.number}`)
    const lastRecord = await readIfThere(bootFile)
    return new Member({
      clock,
      log,
      table,
      node: { name, workers, address: links?.address ?? '' },
      lastLife: lastLifeOf(lastRecord?.toString() ?? '', lock.identity),
      async onJoined(self) {
        await writeFileAtomically(bootFile, lifeRecord(self.boot, lock.identity), 0o600)
        coordinator.joined(self)
        // The node was evicted while it was leaving: nobody else tells it again.
        if (isLeaving()) await table.setState(name, 'leaving')
      },
      onRead: (read) => coordinator.onRead(read),
      onClock: (reading) => onClock(part.number, reading),
      onLease: (boot, validUntilMs) => onLease(part.number, boot, validUntilMs),
      onEvicted: () => coordinator.evicted(),
      onRefused: () => onEnd(1),
    })
  }
}
