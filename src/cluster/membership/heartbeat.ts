/**
 * Keeps this node a member: it beats in the row of the node, extends the lease of the processes, and evicts nodes that
 * stand still. If the node was evicted itself, it owns nothing any more and must end.
 */
import type { Clock, Timer } from '../../clock.ts'
import { messageOf } from '../../message-of.ts'
import type { Log } from '../log.ts'
import { nodeHeartbeatMs } from './limits.ts'
import { Membership } from './membership.ts'
import type { NodeIdentity, NodeTable } from '../../store/node-table.ts'

export interface HeartbeatOptions {
  readonly clock: Clock
  readonly log: Log
  readonly table: NodeTable
  readonly self: NodeIdentity
  /** Called with the end of the lease, on the clock of the machine, whenever it moves. */
  readonly onLease: (validUntilMs: number) => void
  /** Another node has removed this one. */
  readonly onEvicted: () => void
}

export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #membership: Membership
  #timer: Timer | undefined
  #sentAtMs = 0
  #isClosed = false
  #isFailing = false

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#membership = new Membership(options.self.boot)
  }

  /** Beats once, and goes on until `close`. Rejects if the first heartbeat fails. */
  async start(): Promise<void> {
    await this.#beat()
    this.#continue()
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  #continue(): void {
    if (this.#isClosed) return
    const { clock } = this.#options
    // Counted from the last one: a slow database must not make the pauses longer than the lease.
    const inMs = this.#sentAtMs + nodeHeartbeatMs - clock.machineMs()
    this.#timer = clock.after(Math.max(inMs, 0), () => void this.#again())
  }

  async #again(): Promise<void> {
    const { log } = this.#options
    try {
      await this.#beat()
      if (this.#isFailing) log.info({}, 'the database responds again')
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing && !this.#isClosed) {
        log.error(
          { error: messageOf(error) },
          'the database does not respond: nothing is served until it does',
        )
      }
      this.#isFailing = true
    }
    this.#continue()
  }

  async #beat(): Promise<void> {
    const { clock, log, table, self, onLease, onEvicted } = this.#options
    const sentAtMs = clock.machineMs()
    this.#sentAtMs = sentAtMs
    const { isMember, nodes } = await table.beat(self)
    if (this.#isClosed) return
    if (!isMember) {
      this.close()
      log.error({}, 'another server has removed this one from the database: this one ends')
      onEvicted()
      return
    }
    const receivedAtMs = clock.machineMs()
    const lapsedMs = Math.round(receivedAtMs - this.#membership.validUntilMs)
    const overdue = this.#membership.read({ isMember, nodes, sentAtMs, receivedAtMs })
    if (lapsedMs > 0 && lapsedMs < Infinity) {
      log.warn({ lapsedMs, tookMs: Math.round(receivedAtMs - sentAtMs) }, hasLapsed)
    }
    onLease(this.#membership.validUntilMs)
    for (const row of overdue) {
      log.info({ node: row.name }, 'a node that stands still is removed from the database')
      await table.evict(row)
    }
  }
}

const hasLapsed = 'the lease of this server was over: polls were held back and no delivery began'
