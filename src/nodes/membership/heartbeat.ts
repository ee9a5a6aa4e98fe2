/**
 * Keeps this node a member: it beats in the row of the node, extends the lease of the processes, evicts nodes that stand
 * still, and passes on the rows that it reads. If the node was evicted itself, it owns nothing any more (member.ts).
 *
 * Beats follow each other in a fixed rhythm, and one is under way at a time. If other nodes change the rows, if this one has
 * evicted a node, or if it is time to evict one, an extra beat reads them, and the rhythm stays as it was.
 */
import assert from 'node:assert/strict'
import type { Clock, Timer } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import type { Log } from '../../kit/surroundings.ts'
import { nodeHeartbeatMs } from './limits.ts'
import { type ClockReading, DatabaseClock } from './database-clock.ts'
import { Membership } from './membership.ts'
import type { HeartbeatRead, NodeIdentity, NodeTable } from '../../store/node-table.ts'

export interface HeartbeatOptions {
  readonly clock: Clock
  readonly log: Log
  /** Its `onChange` belongs to the heartbeat. */
  readonly table: NodeTable
  readonly self: NodeIdentity
  /** That of the nodes that are there already; see `lagOf`. */
  readonly lagMs?: number | undefined
  /** Called with the end of the lease, on the clock of the machine, whenever it moves. */
  readonly onLease: (validUntilMs: number) => void
  /** Called with the clock of the shards after each heartbeat, before `onLease`. */
  readonly onClock?: ((reading: ClockReading) => void) | undefined
  /** Called with the rows after each heartbeat that found the row of this node. */
  readonly onRead?: ((read: HeartbeatRead) => void) | undefined
  /** Another node has removed this one. */
  readonly onEvicted: () => void
}

/**
 * If the rows of nodes or shards change, a node reads them with an extra heartbeat, this long after the last one at the
 * earliest. Chosen: a lost node changes the rows of all of its shards, and 50 heartbeats a second cost little.
 */
export const nodeExtraBeatMs = 20

export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #membership: Membership
  readonly #databaseClock: DatabaseClock
  #reading: ClockReading | undefined
  #timer: Timer | undefined
  /** When the last beat was sent, and when the last one of the rhythm was. */
  #sentAtMs = 0
  #rhythmMs = 0
  /** The rows have changed since the last beat was sent. */
  #isExtraDue = false
  #isUnderWay = false
  #isClosed = false
  #isFailing = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#membership = new Membership(options.self.boot)
    this.#databaseClock = new DatabaseClock(options.log, options.lagMs ?? 0)
  }

  /** Beats once, and goes on until `close`. Rejects if the first heartbeat fails. */
  async start(): Promise<void> {
    const { clock, table, onRead } = this.#options
    this.#rhythmMs = clock.machineMs()
    const read = await this.#beat()
    if (read === undefined) return
    table.onChange = () => this.#readSoon()
    this.#continue()
    onRead?.(read)
  }

  close(): void {
    this.#isClosed = true
    this.#options.table.onChange = undefined
    this.#timer?.cancel()
  }

  #readSoon(): void {
    this.#isExtraDue = true
    if (this.#isUnderWay) return
    this.#timer?.cancel()
    this.#continue()
  }

  #continue(): void {
    if (this.#isClosed) return
    const { clock } = this.#options
    // Counted from the last one: a slow database must not make the pauses longer than the lease.
    const nextMs = this.#rhythmMs + nodeHeartbeatMs
    const earliestMs = this.#sentAtMs + nodeExtraBeatMs
    const overdueMs = this.#membership.nextOverdueMs
    // If it was overdue at the last beat already, that one has failed, and the next one of the rhythm is soon enough.
    const evictMs = overdueMs > this.#sentAtMs ? overdueMs : Number.POSITIVE_INFINITY
    const extraMs = this.#isExtraDue ? earliestMs : Math.max(evictMs, earliestMs)
    const isExtra = extraMs < nextMs
    const inMs = (isExtra ? extraMs : nextMs) - clock.machineMs()
    this.#timer = clock.after(Math.max(inMs, 0), () => void this.#again(isExtra))
  }

  async #again(isExtra: boolean): Promise<void> {
    const { clock, log, onRead } = this.#options
    if (!isExtra) this.#rhythmMs = clock.machineMs()
    let read: HeartbeatRead | undefined
    try {
      read = await this.#beat()
      if (this.#isFailing) log.info({}, 'the database responds again')
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed) {
        log.error(
          { error: messageOf(error) },
          'the database does not respond: none of its shards is served until it does',
        )
      }
      this.#isFailing = true
    }
    this.#continue()
    if (read !== undefined) onRead?.(read)
  }

  /** Returns the rows, or undefined if this node is not a member any more or the heartbeat was closed. */
  async #beat(): Promise<HeartbeatRead | undefined> {
    assert(!this.#isUnderWay, 'one beat is under way at a time')
    this.#isUnderWay = true
    this.#isExtraDue = false
    try {
      return await this.#beatOnce()
    } finally {
      this.#isUnderWay = false
    }
  }

  async #beatOnce(): Promise<HeartbeatRead | undefined> {
    const { clock, log, table, self, onLease, onEvicted } = this.#options
    const sentAtMs = clock.machineMs()
    this.#sentAtMs = sentAtMs
    const read = await table.beat(self, this.#reading)
    if (this.#isClosed) return undefined
    if (!read.isMember) {
      this.close()
      log.error(
        {},
        'another server has removed this one from the database: its shards belong to others now',
      )
      onEvicted()
      return undefined
    }
    const receivedAtMs = clock.machineMs()
    this.#readClock(read, sentAtMs, receivedAtMs)
    const lapsedMs = Math.round(receivedAtMs - this.#membership.validUntilMs)
    const overdue = this.#membership.read({ ...read, sentAtMs, receivedAtMs })
    if (lapsedMs > 0 && lapsedMs < Infinity) {
      log.warn({ lapsedMs, tookMs: Math.round(receivedAtMs - sentAtMs) }, hasLapsed)
    }
    onLease(this.#membership.validUntilMs)
    for (const row of overdue) {
      // Another node may be faster.
      if (await table.evict(row)) {
        log.info({ node: row.name }, 'a node that stood still was removed from the database')
      }
      this.#isExtraDue = true
    }
    return this.#isClosed ? undefined : read
  }

  #readClock({ databaseMs }: HeartbeatRead, sentAtMs: number, receivedAtMs: number): void {
    const { clock, onClock } = this.#options
    if (databaseMs === undefined) return
    const nodeMs = clock.nowMs()
    const read = { databaseMs, nodeMs, sentAtMs, receivedAtMs }
    this.#reading = this.#databaseClock.read(read)
    onClock?.(this.#reading)
  }
}

const hasLapsed = 'the lease of this server was over: polls were held back and no delivery began'
