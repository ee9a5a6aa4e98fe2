/**
 * The membership of this node in one database, from its joining to its end: it joins, beats, and joins again in a new life
 * if it was evicted, because it was frozen or cut off for too long.
 */
import { randomBytes } from 'node:crypto'
import { type Clock, sleep } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import type { HeartbeatRead, JoiningNode, NodeIdentity, NodeTable } from '../../store/node-table.ts'
import type { Log } from '../../kit/surroundings.ts'
import { type ClockReading, lagOf } from './database-clock.ts'
import { Heartbeat } from './heartbeat.ts'
import { joinCluster, JoinRefusedError, type LastNodeLife } from './join.ts'
import { nodeHeartbeatMs } from './limits.ts'

export interface MemberOptions {
  readonly clock: Clock
  readonly log: Log
  readonly table: NodeTable
  readonly node: Omit<JoiningNode, 'boot'>
  readonly lastLife?: LastNodeLife | undefined
  /** The node is a member, in a new life. What it had before belongs to others. */
  readonly onJoined?: (self: NodeIdentity) => void | Promise<void>
  readonly onRead?: (read: HeartbeatRead) => void
  readonly onClock?: (reading: ClockReading) => void
  /** Called with the end of the lease of this life, on the clock of the machine, whenever it moves. */
  readonly onLease?: (boot: string, validUntilMs: number) => void
  /** Another node has evicted this one. It joins again, and gets a lease again, when what this returns has resolved. */
  readonly onEvicted?: () => void | Promise<void>
  /** This node was evicted and cannot join again. */
  readonly onRefused: () => void
}

export class Member {
  readonly #options: MemberOptions
  #self: NodeIdentity | undefined
  #heartbeat: Heartbeat | undefined
  readonly #stopping = new AbortController()

  constructor(options: MemberOptions) {
    this.#options = options
  }

  /** Resolves after the first heartbeat. Rejects if another node is in the way. */
  async start(): Promise<void> {
    await this.#join(this.#options.lastLife)
  }

  /** Ends the lease and deletes the row of this node, so that others take its shards at once. Never rejects. */
  async leave(): Promise<void> {
    this.#stopping.abort()
    this.#heartbeat?.close()
    // Others serve the shards as soon as the row is gone, and workers may still live.
    this.#endLease()
    // If the database is away, the row stands still, and another node removes it.
    if (this.#self !== undefined) await this.#options.table.leave(this.#self).catch(() => undefined)
    this.#options.table.close()
  }

  async #join(lastLife: LastNodeLife | undefined): Promise<void> {
    const { clock, log, table, node, onClock, onJoined, onLease, onRead } = this.#options
    const self = { name: node.name, boot: newBoot() }
    const joining = { ...node, boot: self.boot }
    const lagMs = lagOf(await joinCluster({ clock, log }, table, joining, lastLife))
    if (this.#stopping.signal.aborted) {
      await table.leave(self)
      return
    }
    this.#self = self
    await onJoined?.(self)
    this.#heartbeat = new Heartbeat({
      clock,
      log,
      table,
      self,
      lagMs,
      onClock,
      onRead: (read) => onRead?.(read),
      onLease: (validUntilMs) => onLease?.(self.boot, validUntilMs),
      onEvicted: () => void this.#joinAgain(),
    })
    await this.#heartbeat.start()
  }

  #endLease(): void {
    if (this.#self !== undefined) this.#options.onLease?.(this.#self.boot, 0)
  }

  async #joinAgain(): Promise<void> {
    const { clock, log, onEvicted, onRefused } = this.#options
    this.#endLease()
    this.#self = undefined
    await onEvicted?.()
    const { signal } = this.#stopping
    while (!signal.aborted) {
      try {
        await this.#join(undefined)
        return
      } catch (error) {
        if (error instanceof JoinRefusedError) {
          log.error({ error: messageOf(error) }, 'this server cannot join the database again')
          onRefused()
          return
        }
        log.warn({ error: messageOf(error) }, 'this server could not join the database again yet')
        this.#heartbeat?.close()
        await sleep(clock, nodeHeartbeatMs, signal)
      }
    }
  }
}

function newBoot(): string {
  return randomBytes(8).toString('hex')
}
