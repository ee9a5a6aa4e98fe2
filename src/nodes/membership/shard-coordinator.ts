/**
 * Carries out, in the primary process, what placement.ts decides after each heartbeat in one database: its shards are
 * opened in the workers, handed over to other nodes, or dropped, and all workers learn where they are.
 *
 * It remembers nothing that the rows do not say. What failed is decided again after the next heartbeat.
 */
import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { type Clock, sleep } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import {
  type HeartbeatRead,
  mayTake,
  type NodeIdentity,
  type NodeRow,
  type NodeTable,
  type ShardRow,
} from '../../store/node-table.ts'
import { ownerWaitMsMax } from '../../api/limits.ts'
import type { Log } from '../../kit/surroundings.ts'
import { RareWarning } from '../../process/rare-warning.ts'
import type { ShardAssignment, ShardControl, ShardOpening } from '../../process/shard-assignment.ts'
import type { RouteTable } from '../../process/routes.ts'
import { nodeLeaseMs } from '../../process/limits.ts'
import { type PlacementDecision, Placement } from './placement.ts'

export interface ShardCoordinatorOptions {
  readonly clock: Clock
  readonly log: Log
  readonly table: Pick<NodeTable, 'handOver' | 'notStarted' | 'setState' | 'started'>
  /** The shards of the database. */
  readonly shards: readonly number[]
  /** Called when the routes to these shards change. */
  readonly onRoutes: () => void
  /**
   * This node was drained, and other nodes have all shards of the database. Returns whether the server ends now; otherwise
   * this is called again after the next heartbeat.
   */
  readonly onLeft: () => boolean
  /** Whether requests for a shard reach this node from here: if they do not, they would fail after a move. */
  readonly reaches: (node: NodeRow, shard: number) => Promise<boolean>
}

/** A shard that this node has handed over. */
interface GivenShard {
  readonly row: ShardRow
  readonly atMs: number
}

/** The workers of this node, as the coordinator of one database uses them. */
type DatabaseShardControl = Pick<ShardControl, 'workerOf'>

/**
 * A node that was told to leave ends no earlier than this. It says on /readyz that it is leaving, and each response ends its
 * connection, so that clients and load balancers use the other nodes by then. Chosen: the documented haproxy notices in 1.5 s.
 */
export const leavePauseMs = 2_000
/**
 * The next shards are handed over when the last ones were claimed, or after this time: a taker that is slow must not keep this
 * node longer than `handOverAllMsMax`. Chosen: a claim takes some 100 ms, and the read that shows it at most 250.
 */
export const claimPaceMs = 1_000
/** A node that could not be reached gets no shard of a drained node in this time if another one does. Chosen: some probes. */
const unreachedMs = 5_000
/** A server that ends waits this long for the nodes that take its shards. Chosen: as long as for open requests. */
export const handOverAllMsMax = 10_000
/**
 * A server that starts waits this long until all shards of a database have an owner. Chosen: longer than a take-over and the
 * opening of many shards, and a third of the time that systemd gives a start by default.
 */
export const settleMsMax = 30_000

export class ShardCoordinator implements ShardAssignment {
  readonly #options: ShardCoordinatorOptions
  #placement = new Placement()
  #self: NodeIdentity | undefined
  #control: DatabaseShardControl | undefined
  #read: HeartbeatRead | undefined
  #readAtMs = 0
  #routes: RouteTable
  /** The shards that this node has, as the routes say. */
  #owned: ReadonlySet<number> = new Set()
  readonly #opening = new Set<number>()
  /** Shards whose last opening failed. */
  readonly #failing = new Set<number>()
  readonly #moving = new Set<number>()
  /** The rows after hand-overs of this node whose takers have not claimed the shards yet, as far as a read shows. */
  readonly #given = new Map<number, GivenShard>()
  readonly #unreachable: RareWarning
  /** By boot, when a node could not be reached. */
  readonly #unreached = new Map<string, number>()
  #onSettled: (() => void)[] = []
  #isLeaving = false
  /** Since when others may know that this node is leaving. */
  #leavingSinceMs: number | undefined
  #mayLeave = false
  #hasLeft = false
  /** Set while the server waits to end. */
  #onHandedOver: (() => void) | undefined

  constructor(options: ShardCoordinatorOptions) {
    this.#options = options
    this.#unreachable = new RareWarning(
      options,
      'a shard is not handed over yet: this server cannot reach the links of the other one',
    )
    this.#routes = routesOf('', undefined, options.shards)
  }

  /** Whether this node has nothing in the database that other nodes wait for. */
  get isFree(): boolean {
    return this.#self === undefined || this.#mayLeave
  }

  /** Whether this node was told to leave the database, when it was last a member. */
  get isLeaving(): boolean {
    return this.#isLeaving
  }

  /** This node is a member from now on, in a new life. */
  joined(self: NodeIdentity): void {
    this.#self = self
    this.#placement = new Placement()
    this.#read = undefined
    this.#mayLeave = false
  }

  /**
   * Another node has evicted this one: it has no shards any more. Resolves when no worker has any of them open. A worker
   * that was frozen with its node may still be, and this node should not claim shards for it before.
   */
  async evicted(): Promise<void> {
    this.#self = undefined
    this.#read = undefined
    this.#given.clear()
    this.#moving.clear()
    const dropped = this.#control === undefined ? [] : this.#dropAll(this.#control)
    this.#setRoutes(routesOf('', undefined, this.#options.shards))
    this.#onHandedOver?.()
    await Promise.all(dropped)
  }

  /** The workers serve from now on. */
  begin(control: DatabaseShardControl): void {
    assert(this.#control === undefined, 'the workers of a node begin to serve once')
    this.#control = control
    this.#noteStarted()
    this.#act()
  }

  /** Takes what a heartbeat has read. */
  onRead(read: HeartbeatRead): void {
    this.#read = this.#withGiven(read)
    this.#readAtMs = this.#options.clock.machineMs()
    const own = read.nodes.find(({ boot }) => boot === this.#self?.boot)
    this.#isLeaving = own?.state === 'leaving'
    const isTaken = this.#isLeaving && this.#canHandOver()
    this.#leavingSinceMs = isTaken ? (this.#leavingSinceMs ?? this.#readAtMs) : undefined
    this.#noteStarted()
    this.#act()
  }

  /**
   * The row says `serving` as soon as the workers serve, and not earlier: a node that is told to leave and to stay while it
   * starts would get shards that nobody can open. The rows may be older than the last change, which is then made twice.
   */
  #noteStarted(): void {
    const { log, table } = this.#options
    const self = this.#self
    const state = this.#read?.nodes.find(({ boot }) => boot === self?.boot)?.state
    const isEarly = this.#control === undefined
    if (self === undefined || state !== (isEarly ? 'serving' : 'starting')) return
    const told = isEarly ? table.notStarted(self) : table.started(self)
    void told.catch((error: unknown) => {
      log.warn({ error: messageOf(error) }, 'the row of this server could not be changed yet')
    })
  }

  /**
   * Resolves when every shard has an owner, and those of this node are served; after `settleMsMax` at the latest, because the
   * database may have been lost after the join.
   */
  async settled(): Promise<void> {
    const { clock, log } = this.#options
    const settled = new Promise<void>((resolve) => this.#onSettled.push(resolve))
    this.#act()
    const waiting = new AbortController()
    const isLate = await Promise.race([
      settled.then(() => false),
      sleep(clock, settleMsMax, waiting.signal).then(() => true),
    ])
    waiting.abort()
    if (isLate) log.warn({}, 'not all shards are served yet; the server goes on')
  }

  /**
   * Hands all shards over before the server ends, so that nobody waits for what it still has to do. If no other node can
   * take them, they stay. Resolves after `handOverAllMsMax` at the latest.
   */
  async handOverAll(): Promise<void> {
    const { clock, log, table } = this.#options
    const [self, control, read] = [this.#self, this.#control, this.#read]
    if (self === undefined || control === undefined || read === undefined || this.#hasLeft) return
    const handedOver = new Promise<void>((resolve) => (this.#onHandedOver = resolve))
    this.#act()
    const waiting = new AbortController()
    try {
      if (this.#canHandOver()) await table.setState(self.name, 'leaving')
      await Promise.race([handedOver, sleep(clock, handOverAllMsMax, waiting.signal)])
    } catch (error) {
      log.warn({ error: messageOf(error) }, 'the shards could not be handed over')
    } finally {
      waiting.abort()
    }
  }

  /** Returns none while the database does not respond: a worker that starts would wait for it. */
  openings(): readonly ShardOpening[] {
    const boot = this.#self?.boot
    const { clock } = this.#options
    if (boot === undefined || this.#read === undefined) return []
    if (clock.machineMs() - this.#readAtMs > nodeLeaseMs) return []
    return this.#read.shards
      .filter((row) => row.boot === boot && !this.#moving.has(row.shard))
      .map(({ shard }) => ({ shard, boot }))
  }

  routes(): RouteTable {
    return this.#routes
  }

  has(shard: number): boolean {
    return this.#owned.has(shard)
  }

  /** A shard that is being opened is dropped after that. */
  #dropAll(control: DatabaseShardControl): readonly Promise<void>[] {
    return this.#options.shards
      .filter((shard) => this.#opening.has(shard) || control.workerOf(shard).isServed(shard))
      .map((shard) => control.workerOf(shard).drop(shard))
  }

  #act(): void {
    const [self, control, read] = [this.#self, this.#control, this.#read]
    if (self === undefined || read === undefined) return
    this.#setRoutes(routesOf(self.boot, read, this.#options.shards))
    if (control === undefined || this.#hasLeft) return
    const open = new Set(this.#opening)
    for (const { shard } of read.shards)
      if (control.workerOf(shard).isServed(shard)) open.add(shard)
    const { nodes, shards } = read
    const nowMs = this.#options.clock.machineMs()
    // Many that open at a time would all open slowly, and their bots wait meanwhile.
    const moving = new Set([...this.#moving, ...this.#unclaimed(claimPaceMs)])
    const view = { nowMs, nodes, shards, self, open, moving, unreached: this.#unreachedAt(nowMs) }
    this.#carryOut(this.#placement.decide(view), self, control)
    this.#noteSettled(self, control, read)
  }

  #carryOut(decision: PlacementDecision, self: NodeIdentity, control: DatabaseShardControl): void {
    // Until then, this node is the way of its clients to these shards.
    const isTaken = this.#unclaimed(ownerWaitMsMax).length === 0
    this.#mayLeave = decision.mayLeave && this.#hasPaused && isTaken
    for (const shard of decision.drop) void control.workerOf(shard).drop(shard)
    for (const shard of decision.open) {
      if (control.workerOf(shard).canOpen) void this.#open(shard, self, control)
    }
    for (const { shard, to } of decision.handOver) void this.#handOver(shard, { self, to, control })
    if (this.#onHandedOver !== undefined) {
      if (this.#mayLeave || !this.#canHandOver()) this.#onHandedOver()
      return
    }
    if (this.#mayLeave) this.#hasLeft = this.#options.onLeft()
  }

  get #hasPaused(): boolean {
    const sinceMs = this.#leavingSinceMs ?? Number.POSITIVE_INFINITY
    return this.#options.clock.machineMs() - sinceMs >= leavePauseMs
  }

  #canHandOver(): boolean {
    const boot = this.#self?.boot
    return this.#read?.nodes.some((node) => node.boot !== boot && mayTake(node)) === true
  }

  async #open(shard: number, { boot }: NodeIdentity, control: DatabaseShardControl): Promise<void> {
    const { clock, log } = this.#options
    this.#opening.add(shard)
    const startMs = clock.monotonicMs()
    try {
      await control.workerOf(shard).open({ shard, boot })
      log.info({ shard, tookMs: Math.round(clock.monotonicMs() - startMs) }, 'a shard was opened')
      this.#failing.delete(shard)
    } catch (error) {
      // It is tried again after every heartbeat, and reported once.
      if (!this.#failing.has(shard)) {
        log.warn({ shard, error: messageOf(error) }, 'a shard could not be opened')
      }
      this.#failing.add(shard)
    } finally {
      this.#opening.delete(shard)
    }
    if (this.#onSettled.length > 0) this.#act()
  }

  async #handOver(
    shard: number,
    { self, to, control }: { self: NodeIdentity; to: NodeIdentity; control: DatabaseShardControl },
  ): Promise<void> {
    const { clock, log, table } = this.#options
    assert(to.boot !== self.boot && !this.#moving.has(shard), 'a shard goes to another node, once')
    this.#moving.add(shard)
    try {
      const node = this.#read?.nodes.find(({ boot }) => boot === to.boot)
      if (node === undefined || !(await this.#options.reaches(node, shard))) {
        this.#unreachable.note({ shard, node: to.name })
        this.#unreached.set(to.boot, clock.machineMs())
        this.#moving.delete(shard)
        return
      }
      const startMs = clock.monotonicMs()
      await control.workerOf(shard).leave(shard)
      const closedMs = clock.monotonicMs()
      const closingMs = Math.round(closedMs - startMs)
      const isDone = await table.handOver(shard, self, to)
      const tookMs = Math.round(clock.monotonicMs() - closedMs)
      if (isDone) {
        log.info({ shard, node: to.name, closingMs, tookMs }, 'a shard was handed over')
        this.#gave(shard, to)
        return
      }
      log.warn({ shard, node: to.name }, 'a shard could not be handed over: it stays here')
    } catch (error) {
      log.warn({ shard, error: messageOf(error) }, 'a shard could not be handed over')
    }
    this.#moving.delete(shard)
  }

  /** Requests follow the shard without waiting for a heartbeat. */
  #gave(shard: number, { name: node, boot }: NodeIdentity): void {
    this.#moving.delete(shard)
    const read = this.#read
    const row = read?.shards.find((each) => each.shard === shard)
    if (read === undefined || row === undefined) return
    const given = { shard, node, boot, epoch: `${Number(row.epoch) + 1}` }
    this.#given.set(shard, { row: given, atMs: this.#options.clock.machineMs() })
    this.#read = this.#withGiven(read)
    this.#act()
  }

  /**
   * A read may be older than a hand-over, and would say that the shard has to be opened again. The claim of the taker raises
   * the epoch once more.
   */
  #withGiven(read: HeartbeatRead): HeartbeatRead {
    const shards = read.shards.map((row) => {
      const given = this.#given.get(row.shard)
      if (given !== undefined && Number(row.epoch) <= Number(given.row.epoch)) return given.row
      this.#given.delete(row.shard)
      return row
    })
    return { ...read, shards }
  }

  #unreachedAt(nowMs: number): ReadonlySet<string> {
    for (const [boot, atMs] of this.#unreached) {
      if (nowMs - atMs >= unreachedMs) this.#unreached.delete(boot)
    }
    return new Set(this.#unreached.keys())
  }

  /** The shards that were handed over in this time and that their takers have not claimed yet. */
  #unclaimed(sinceMs: number): readonly number[] {
    const nowMs = this.#options.clock.machineMs()
    return [...this.#given].filter(([, { atMs }]) => nowMs - atMs < sinceMs).map(([shard]) => shard)
  }

  #setRoutes(routes: RouteTable): void {
    if (isDeepStrictEqual(routes, this.#routes)) return
    this.#routes = routes
    const own = routes.owners.filter(({ boot }) => boot === this.#self?.boot)
    this.#owned = new Set(own.map(({ shard }) => shard))
    this.#options.onRoutes()
  }

  #noteSettled(
    self: NodeIdentity,
    control: DatabaseShardControl,
    { nodes, shards }: HeartbeatRead,
  ): void {
    const boots = new Set(nodes.map(({ boot }) => boot))
    const isSettled = shards.every(({ shard, boot }) =>
      boot === self.boot ? control.workerOf(shard).isServed(shard) : boots.has(boot),
    )
    if (isSettled) for (const resolve of this.#onSettled.splice(0)) resolve()
  }
}

/** Without a read, nobody has any shard. */
function routesOf(
  boot: string,
  read: HeartbeatRead | undefined,
  shards: readonly number[],
): RouteTable {
  const rows = read?.shards ?? shards.map((shard) => ({ shard, boot: '', epoch: 0 }))
  const owners = rows.map((row) => {
    return { shard: row.shard, boot: row.boot, epoch: Number(row.epoch) }
  })
  const nodes = (read?.nodes ?? []).map(({ boot: of, name, state, address, workers }) => ({
    boot: of,
    name,
    state,
    address,
    workers,
  }))
  return { boots: [boot], nodes, owners, servers: [read?.server] }
}
