/**
 * Simulates nodes that place the shards of a cluster, each with a clock of its own, and the database whose rows they read and
 * change. Everything is drawn from a seed.
 *
 * Until `chaosMs`, statements and answers are late or lost, nodes are paused, killed, started, drained and undrained, and the
 * database is away, refuses statements, or executes them and loses the answers. Then the weather is calm. Two rules hold at
 * every moment: no two nodes serve a shard, and no node hands over more shards at a time than it may. A node serves a shard
 * while it has it open and its lease stands.
 */
import { nodeHeartbeatMs } from '../../../src/nodes/membership/limits.ts'
import {
  type HandOver,
  handOversLeavingMax,
  handOversMax,
} from '../../../src/nodes/membership/placement.ts'
import { rendezvousRank } from '../../../src/nodes/membership/rendezvous.ts'
import type { HeartbeatRead, NodeRow, NodeState, ShardRow } from '../../../src/store/node-table.ts'
import { MemoryNodeTable } from '../server/memory-node-table.ts'
import { DriftingClock } from './drifting-clock.ts'
import { EventQueue } from './event-queue.ts'
import { Luck } from './luck.ts'
import { PlacedNode } from './placed-node.ts'
import type { Outage, PlacementWorldOptions, Trouble } from './placement-world-options.ts'

const calmDelayMsMax = 20
const settleMsMax = 100
const lateMsMax = 4_000
const restartMsMax = 2_000
/** Longer than nodes wait before they hand shards over. */
const lateStartMsMax = 16_000
/** Longer than all turns of orphans. */
const ineptMs = 25_000

export class PlacementWorld {
  readonly #options: PlacementWorldOptions
  readonly #luck: Luck
  readonly #events = new EventQueue()
  readonly #table: MemoryNodeTable
  /** The lives of nodes that have not ended. */
  readonly #lives = new Set<PlacedNode>()
  #names = 0
  readonly violations: string[] = []
  readonly counts = { claims: 0, handOvers: 0, evictions: 0, left: 0 }
  /** When a shard had another owner or epoch for the last time. */
  movedMs = 0

  constructor(options: PlacementWorldOptions) {
    this.#options = options
    this.#luck = new Luck(options.seed)
    this.#table = new MemoryNodeTable(options.shards)
    this.#table.connect().onChange = () => this.#notify()
    for (let nth = 0; nth < options.nodes; nth++) this.#start(`node${this.#names++}`)
    this.#trouble()
  }

  /** Runs the world up to a time. */
  run(toMs = this.#options.endMs): this {
    this.#events.runUntil(toMs)
    return this
  }

  get nodes(): readonly NodeRow[] {
    return this.#table.rows
  }

  get orphans(): readonly ShardRow[] {
    const boots = new Set(this.nodes.map(({ boot }) => boot))
    return this.#table.shards.filter(({ boot }) => !boots.has(boot))
  }

  /** Whether a node can open shards. */
  get isAble(): boolean {
    return [...this.#lives].some(({ opensFromMs }) => opensFromMs <= this.#nowMs)
  }

  /** The shards that are not open with their newest epoch at the node that they belong to. */
  get misplaced(): readonly number[] {
    const staying = this.nodes.filter(({ state }) => state !== 'leaving')
    const takers = staying.length > 0 ? staying : this.nodes
    const rows = this.#table.shards.filter(({ shard, boot, epoch }) => {
      // If all are leaving, the shards stay where they are.
      const isFirst = staying.length === 0 || rendezvousRank(shard, takers)[0]?.boot === boot
      const owner = [...this.#lives].find((node) => node.boot === boot)
      return !isFirst || owner?.epochOf(shard) !== epoch
    })
    return rows.map(({ shard }) => shard)
  }

  get #nowMs(): number {
    return this.#events.nowMs
  }

  get #isCalm(): boolean {
    return this.#nowMs >= this.#options.chaosMs
  }

  #chance(probability: number): boolean {
    return !this.#isCalm && this.#luck.chance(probability)
  }

  #delay(): number {
    const delayMsMax = this.#isCalm ? calmDelayMsMax : this.#options.delayMsMax
    const lateMs = this.#chance(this.#options.late) ? this.#luck.int(0, lateMsMax) : 0
    return this.#luck.skewed(delayMsMax) + this.#luck.next() + lateMs
  }

  // What happens to nodes

  #trouble(): void {
    const { troubleMs, troubles } = this.#options
    if (troubles.length === 0) return
    this.#events.at(this.#nowMs + this.#luck.int(1, troubleMs), () => {
      if (this.#isCalm) return
      const node = this.#lives.size > 0 ? this.#luck.pick([...this.#lives]) : undefined
      const trouble = this.#luck.pick(troubles)
      if (trouble === 'start') this.#start(`node${this.#names++}`)
      else if (node !== undefined) this.#disturb(node, trouble)
      this.#trouble()
    })
  }

  #disturb(node: PlacedNode, trouble: Exclude<Trouble, 'start'>): void {
    if (trouble === 'drain') this.#table.setStateNow(node.name, 'leaving')
    else if (trouble === 'undrain') this.#table.setStateNow(node.name, 'serving')
    else {
      this.#end(node)
      const isReplaced = this.#luck.chance(0.3)
      this.#events.at(this.#nowMs + this.#luck.int(1, restartMsMax), () => {
        if (isReplaced) this.#start(`node${this.#names++}`)
        else this.#start(node.name, node.boot)
      })
    }
  }

  #end(node: PlacedNode): void {
    node.hasEnded = true
    this.#lives.delete(node)
  }

  /** @param lastBoot - the last life of the same data directory, which has ended */
  #start(name: string, lastBoot?: string): void {
    const clock = new DriftingClock(this.#luck, this.#options.drift)
    const node = new PlacedNode(name, `${name}/${this.#luck.int(0, 2 ** 40)}`, clock)
    const { inept, chaosMs } = this.#options
    if (this.#luck.chance(inept)) node.opensFromMs = chaosMs + ineptMs
    const startMsMax = this.#luck.chance(0.05) ? lateStartMsMax : 50
    node.servesFromMs = Math.min(this.#nowMs + this.#luck.int(0, startMsMax), chaosMs)
    this.#lives.add(node)
    this.#step(node, this.#nowMs, () => this.#join(node, lastBoot))
  }

  #join(node: PlacedNode, lastBoot: string | undefined): void {
    const { name, boot } = node
    const workers = 1 + (name.length % 3)
    this.#call(
      node,
      () => {
        const rows = this.#table.rows
        const last = rows.find((row) => row.boot === lastBoot)
        const overdue = node.watch(
          rows.find((row) => row.name === name),
          this.#nowMs,
        )
        if (overdue !== undefined) this.#evictNow(overdue)
        return this.#table.joinNow({ name, boot, address: name, workers }, last)
      },
      (refusal, isKnown) => {
        if (isKnown && refusal === undefined) this.#beat(node)
        else if (isKnown)
          this.#step(node, node.clock.afterMs(this.#nowMs, nodeHeartbeatMs), () =>
            this.#join(node, lastBoot),
          )
        // Whether it has a row is unknown: the process ends, and another one starts.
        else this.#restart(node)
      },
    )
  }

  #restart(node: PlacedNode): void {
    this.#end(node)
    this.#events.at(this.#nowMs + this.#luck.int(1, 500), () => this.#start(node.name, node.boot))
  }

  // Steps of nodes, and statements

  /** Runs a step of a node when it is due and the node is not paused. */
  #step(node: PlacedNode, dueMs: number, run: () => void): void {
    this.#events.at(dueMs, () => {
      if (node.hasEnded) return
      this.#maybePause(node)
      if (node.pausedUntilMs > this.#nowMs) this.#step(node, node.pausedUntilMs, run)
      else run()
    })
  }

  #maybePause(node: PlacedNode): void {
    if (node.pausedUntilMs > this.#nowMs || !this.#chance(this.#options.paused)) return
    node.pausedUntilMs = this.#nowMs + this.#luck.int(1, this.#options.pauseMsMax)
  }

  get #outage(): Outage | undefined {
    const at = this.#nowMs
    return this.#options.outages.find(({ fromMs, toMs }) => at >= fromMs && at < toMs)?.kind
  }

  /** Sends a statement. `done` is called once: with its result, or without knowledge of it. */
  #call<T>(
    node: PlacedNode,
    execute: () => T,
    done: (result: T | undefined, isKnown: boolean) => void,
  ): void {
    let isDone = false
    const finish = (result: T | undefined, isKnown: boolean): void => {
      if (!isDone) done(result, isKnown)
      isDone = true
    }
    // The node may be paused after it has looked at its clock.
    this.#maybePause(node)
    const sentMs = Math.max(this.#nowMs, node.pausedUntilMs)
    if (!this.#chance(this.#options.lost)) {
      this.#events.at(sentMs + this.#delay(), () => {
        const outage = this.#outage
        if (outage === 'away') return
        const result = outage === 'refusing' ? undefined : execute()
        if (outage === 'cut' || this.#chance(this.#options.lost)) return
        const answerMs = this.#nowMs + this.#delay()
        this.#step(node, answerMs, () => finish(result, outage !== 'refusing'))
      })
    }
    const timeoutMs = node.clock.afterMs(this.#nowMs, this.#options.timeoutMs)
    this.#step(node, timeoutMs, () => finish(undefined, false))
  }

  // Heartbeats

  #notify(): void {
    for (const node of this.#lives) {
      if (node.isNotified || this.#chance(this.#options.lost)) continue
      node.isNotified = true
      this.#step(node, this.#nowMs + this.#delay(), () => {
        node.isNotified = false
        if (node.isWaiting) this.#beat(node)
      })
    }
  }

  #beat(node: PlacedNode): void {
    const attempt = ++node.attempt
    node.isWaiting = false
    const sentAtMs = node.clock.localMs(this.#nowMs)
    this.#call(
      node,
      () => {
        const read = this.#table.beatNow(node)
        if (this.#chance(this.#options.doubled)) {
          this.#events.at(this.#nowMs + this.#delay(), () => void this.#table.beatNow(node))
        }
        return read
      },
      (read) => {
        if (read?.isMember === false) this.#restart(node)
        else if (read !== undefined) this.#read(node, read, sentAtMs)
        if (node.hasEnded) return
        node.isWaiting = true
        this.#step(node, node.clock.afterMs(this.#nowMs, nodeHeartbeatMs), () => {
          if (node.attempt === attempt) this.#beat(node)
        })
      },
    )
  }

  #read(node: PlacedNode, read: HeartbeatRead, sentAtMs: number): void {
    const receivedAtMs = node.clock.localMs(this.#nowMs)
    const overdue = node.membership.read({ ...read, sentAtMs, receivedAtMs })
    for (const shard of node.shards.keys()) this.#checkServed(shard)
    for (const row of overdue) this.#call(node, () => this.#evictNow(row), ignore)
    const { nodes, shards } = read
    const own = nodes.find(({ boot }) => boot === node.boot)
    const isStarted = this.#nowMs >= node.servesFromMs
    this.#noteStarted(node, own?.state, isStarted)
    if (!isStarted) return
    const view = { nowMs: receivedAtMs, nodes, shards, self: node.identity }
    const { open, moving } = node
    const decision = node.placement.decide({ ...view, open, moving })
    for (const shard of decision.drop) node.shards.delete(shard)
    for (const shard of decision.open) this.#open(node, shard)
    const isLeaving = own?.state === 'leaving'
    for (const handOver of decision.handOver) this.#handOver(node, handOver, isLeaving)
    if (decision.mayLeave) this.#leave(node)
  }

  #noteStarted(node: PlacedNode, state: NodeState | undefined, isStarted: boolean): void {
    const [from, to] = isStarted
      ? (['starting', 'serving'] as const)
      : (['serving', 'starting'] as const)
    if (state !== from) return
    this.#call(node, () => this.#table.turnStateNow(node, from, to), ignore)
  }

  #evictNow(row: NodeRow): void {
    if (!this.#table.evictNow(row)) return
    this.counts.evictions++
    const life = [...this.#lives].find(({ boot }) => boot === row.boot)
    if (life !== undefined && life.leaseEndMs > this.#nowMs) {
      this.violations.push(`${row.boot} was evicted at ${this.#nowMs} before ${life.leaseEndMs}`)
    }
  }

  // Shards

  /** Opens a shard as a store does: it reads the epoch and claims the shard if that is still the same. */
  #open(node: PlacedNode, shard: number): void {
    const opening = node.begin(shard)
    const fail = (): void => node.giveUp(shard, opening)
    this.#call(
      node,
      () => this.#table.shards[shard],
      (row) => {
        if (row === undefined || this.#nowMs < node.opensFromMs) {
          fail()
          return
        }
        this.#call(
          node,
          () => this.#noting(() => this.#table.claimNow(row, node)),
          (isClaimed) => {
            if (isClaimed !== true) fail()
            else if (node.finish(shard, opening, `${Number(row.epoch) + 1}`)) {
              this.counts.claims++
              this.#checkServed(shard)
            }
          },
        )
      },
    )
  }

  #handOver(node: PlacedNode, { shard, to }: HandOver, isLeaving: boolean): void {
    node.moving.add(shard)
    if (node.moving.size > (isLeaving ? handOversLeavingMax : handOversMax)) {
      this.violations.push(`${node.boot} hands over ${node.moving.size} shards at ${this.#nowMs}`)
    }
    const end = (): void => void node.moving.delete(shard)
    this.#step(node, this.#nowMs + this.#luck.int(0, settleMsMax), () => {
      node.shards.delete(shard)
      this.#call(
        node,
        () => this.#table.shards[shard],
        (row) => {
          if (row?.boot !== node.boot) {
            end()
            return
          }
          const move = (): boolean => this.#table.handOverNow(row, node, to)
          this.#call(
            node,
            () => this.#noting(move),
            (isDone) => {
              if (isDone === true) this.counts.handOvers++
              end()
            },
          )
        },
      )
    })
  }

  #leave(node: PlacedNode): void {
    this.counts.left++
    this.#call(node, () => this.#table.leaveNow(node), ignore)
    this.#end(node)
  }

  #noting(change: () => boolean): boolean {
    const isDone = change()
    if (isDone) this.movedMs = this.#nowMs
    return isDone
  }

  #checkServed(shard: number): void {
    const serving = [...this.#lives].filter(
      (node) => node.epochOf(shard) !== undefined && node.leaseEndMs > this.#nowMs,
    )
    if (serving.length < 2) return
    const boots = serving.map(({ boot }) => boot).join(' and ')
    this.violations.push(`${boots} serve shard ${shard} at ${this.#nowMs}`)
  }
}

function ignore(): void {
  // The node reads what became of it.
}
