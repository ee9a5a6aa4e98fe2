/**
 * Simulates the nodes of a cluster, each with a clock of its own, and the table in which they beat. Everything is drawn
 * from a seed.
 *
 * A node beats, waits for the answer or for its time limit, evicts whom its `Membership` names, and beats again after the
 * pause of heartbeats. Whatever it sends may be late, lost or applied twice. A node may be paused at any moment, even
 * between a look at its clock and what it sends then. An evicted node joins again with a new boot.
 */
import { nodeHeartbeatMs } from '../../../src/nodes/membership/limits.ts'
import { Membership } from '../../../src/nodes/membership/membership.ts'
import type { NodeRow } from '../../../src/store/node-table.ts'
import { MemoryNodeTable } from '../server/memory-node-table.ts'
import { DriftingClock } from './drifting-clock.ts'
import { EventQueue } from './event-queue.ts'
import { Luck } from './luck.ts'

export interface MembershipWorldOptions {
  readonly seed: number
  readonly nodes: number
  readonly endMs: number
  /** The rates of clocks differ from that of true time by up to this share. */
  readonly drift: number
  /** Most messages take a fraction of this. */
  readonly delayMsMax: number
  /** After this long, a node takes a heartbeat for failed. */
  readonly timeoutMs: number
  /** How likely a message is lost. */
  readonly lost?: number
  /** How likely a heartbeat is applied again later. */
  readonly doubled?: number
  /** How likely a node is paused before each of its steps, and for how long at most. */
  readonly paused?: number
  readonly pauseMsMax?: number
  /** When the table responds to nobody. */
  readonly outages?: readonly { readonly fromMs: number; readonly toMs: number }[]
  /** When the first node stops for ever. */
  readonly stopMs?: number
}

export interface Eviction {
  readonly name: string
  readonly boot: string
  readonly atMs: number
}

/** One life of a node. */
class SimulatedNode {
  readonly name: string
  readonly boot: string
  readonly membership: Membership
  readonly clock: DriftingClock
  /** The heartbeat whose answer counts. */
  attempt = 0
  pausedUntilMs = 0
  evictedAtMs: number | undefined

  constructor(name: string, boot: string, clock: DriftingClock) {
    this.name = name
    this.boot = boot
    this.clock = clock
    this.membership = new Membership(boot)
  }

  /** The end of the lease in true time. */
  get leaseEndMs(): number {
    return this.clock.trueMs(this.membership.validUntilMs)
  }
}

export class MembershipWorld {
  readonly #options: MembershipWorldOptions
  readonly #luck: Luck
  readonly #table = new MemoryNodeTable()
  readonly #nodes = new Map<string, SimulatedNode>()
  readonly #events = new EventQueue()
  readonly evictions: Eviction[] = []
  readonly violations: string[] = []
  /** How many heartbeats were acknowledged. */
  acknowledged = 0

  constructor(options: MembershipWorldOptions) {
    this.#options = options
    this.#luck = new Luck(options.seed)
    for (let nth = 0; nth < options.nodes; nth++) this.#join(`node${nth}`, 0)
  }

  run(): this {
    this.#events.runUntil(this.#options.endMs)
    return this
  }

  get #nowMs(): number {
    return this.#events.nowMs
  }

  #join(name: string, life: number): void {
    const clock = new DriftingClock(this.#luck, this.#options.drift)
    const node = new SimulatedNode(name, `${name}/${life}`, clock)
    this.#nodes.set(node.boot, node)
    this.#table.add({ name, boot: node.boot, address: '', workers: 1 })
    this.#step(node, this.#nowMs + this.#luck.int(0, nodeHeartbeatMs), () => this.#beat(node))
  }

  /** Runs a step of a node when it is due and the node is not paused. */
  #step(node: SimulatedNode, dueMs: number, run: () => void): void {
    this.#events.at(dueMs, () => {
      this.#maybePause(node)
      if (node.pausedUntilMs > this.#nowMs) this.#step(node, node.pausedUntilMs, run)
      else if (!this.#isStopped(node)) run()
    })
  }

  #maybePause(node: SimulatedNode): void {
    const { paused = 0, pauseMsMax = 0 } = this.#options
    if (node.pausedUntilMs > this.#nowMs || !this.#luck.chance(paused)) return
    node.pausedUntilMs = this.#nowMs + this.#luck.int(1, pauseMsMax)
  }

  #isStopped({ name }: SimulatedNode): boolean {
    const { stopMs } = this.#options
    return name === 'node0' && stopMs !== undefined && this.#nowMs >= stopMs
  }

  #isAway(): boolean {
    const { outages = [] } = this.#options
    return outages.some(({ fromMs, toMs }) => this.#nowMs >= fromMs && this.#nowMs < toMs)
  }

  #delay(): number {
    const { delayMsMax } = this.#options
    return this.#luck.skewed(delayMsMax) + this.#luck.next()
  }

  /** Brings something to the table, unless it is lost on the way or the table is away. */
  #send(node: SimulatedNode, apply: () => void): void {
    // The node may be paused after it has looked at its clock.
    this.#maybePause(node)
    const sentMs = Math.max(this.#nowMs, node.pausedUntilMs)
    if (this.#luck.chance(this.#options.lost ?? 0)) return
    this.#events.at(sentMs + this.#delay(), () => {
      if (!this.#isAway()) apply()
    })
  }

  #beat(node: SimulatedNode): void {
    const { timeoutMs, lost = 0, doubled = 0 } = this.#options
    const attempt = ++node.attempt
    const sentAtMs = node.clock.localMs(this.#nowMs)
    this.#send(node, () => {
      const read = this.#table.beatNow(node)
      if (this.#luck.chance(doubled)) {
        this.#events.at(this.#nowMs + this.#delay(), () => void this.#table.beatNow(node))
      }
      if (read.isMember && node.evictedAtMs !== undefined) {
        this.violations.push(`${node.boot} became a member again at ${this.#nowMs}`)
      }
      if (this.#luck.chance(lost)) return
      this.#step(node, this.#nowMs + this.#delay(), () => {
        if (node.attempt === attempt) this.#read(node, { ...read, sentAtMs })
      })
    })
    this.#step(node, node.clock.afterMs(this.#nowMs, timeoutMs), () => {
      if (node.attempt === attempt) this.#again(node)
    })
  }

  #read(
    node: SimulatedNode,
    read: {
      readonly isMember: boolean
      readonly nodes: readonly NodeRow[]
      readonly sentAtMs: number
    },
  ): void {
    if (!read.isMember) {
      const life = Number(node.boot.split('/')[1]) + 1
      node.attempt = Number.NaN
      this.#events.at(this.#nowMs + this.#delay(), () => this.#join(node.name, life))
      return
    }
    this.acknowledged++
    const overdue = node.membership.read({ ...read, receivedAtMs: node.clock.localMs(this.#nowMs) })
    this.#checkLease(node)
    for (const row of overdue) this.#send(node, () => this.#evict(row))
    this.#again(node)
  }

  #again(node: SimulatedNode): void {
    node.attempt++
    this.#step(node, node.clock.afterMs(this.#nowMs, nodeHeartbeatMs), () => this.#beat(node))
  }

  #evict(row: NodeRow): void {
    if (!this.#table.evictNow(row)) return
    const node = this.#nodes.get(row.boot)
    if (node === undefined) return
    node.evictedAtMs = this.#nowMs
    this.evictions.push({ name: row.name, boot: row.boot, atMs: this.#nowMs })
    this.#checkLease(node)
  }

  #checkLease(node: SimulatedNode): void {
    const { evictedAtMs, leaseEndMs, boot } = node
    if (evictedAtMs === undefined || leaseEndMs <= evictedAtMs) return
    this.violations.push(
      `${boot} was evicted at ${evictedAtMs}, and its lease ends at ${leaseEndMs}`,
    )
  }
}
