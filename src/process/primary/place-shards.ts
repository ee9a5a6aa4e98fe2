/** The shards of one worker's place: those of its range that this node has. It keeps the shard table, which all processes read. */
import type { RouteTable } from '../routes.ts'
import type { ShardAssignment, ShardOpening, ShardWorker } from '../shard-assignment.ts'
import { Mutex } from '../../kit/mutex.ts'
import { leaveMs, settleMs } from '../limits.ts'
import type { ShardMap } from '../shard-map.ts'
import type { ShardTable } from '../shard-table.ts'
import type { WorkerChild } from './worker-child.ts'

export interface PlaceShardsOptions {
  readonly worker: number
  readonly map: ShardMap
  readonly shardTable: ShardTable
  readonly assignment: ShardAssignment
  /** Returns the process that has the shards open. */
  serving(): WorkerChild | undefined
  /** Returns all processes of the place that serve connections or will. */
  processes(): readonly WorkerChild[]
}

/**
 * Opening one shard of a database may take this long: a connection, a claim that ends the connection of the last owner, and
 * the statements, each within its own limit.
 */
const openShardMs = 10_000
/** A shard that another node owns is dropped within this time, or its worker is gone: one that hangs has been killed by then. */
const dropMs = 45_000

export class PlaceShards implements ShardWorker {
  /** The shards that the place has if this node has them. */
  readonly range: readonly number[]
  readonly #options: PlaceShardsOptions
  /** No shard is opened while all of them pass from one process to the next. */
  readonly #turns = new Mutex()
  /** Shards that are being opened, at the same time: the bots of a lost node wait for all of its shards. */
  readonly #opening = new Set<Promise<void>>()

  constructor(options: PlaceShardsOptions) {
    this.#options = options
    this.range = options.map.shardsOf(options.worker)
  }

  get routes(): RouteTable | undefined {
    return this.#options.assignment.routes()
  }

  /** Returns the shards that a process of this place has to open. */
  openings(): readonly ShardOpening[] {
    return this.#options.assignment.openings().filter(({ shard }) => this.range.includes(shard))
  }

  /** A process of this generation is about to open its shards. */
  assign(generation: number): void {
    const { shardTable, worker } = this.#options
    for (const { shard } of this.openings()) shardTable.assign(shard, { worker, generation })
  }

  /** A process serves, with these shards open. Routes that changed while it started did not reach it. */
  serves(child: WorkerChild, shards: readonly number[]): void {
    for (const shard of shards) this.#served(shard, child)
    if (this.routes !== undefined) sendRoutes(child, this.routes)
  }

  /** The process of this generation is gone. */
  release(generation: number): void {
    const { shardTable, worker } = this.#options
    shardTable.release({ worker, generation })
  }

  isServed(shard: number): boolean {
    return this.#options.shardTable.isServed(shard)
  }

  get canOpen(): boolean {
    return this.#options.serving() !== undefined
  }

  /** Runs work during which no shard may be opened. */
  exclusively(work: () => Promise<void>): Promise<void> {
    return this.#turns.run(async () => {
      await Promise.all(this.#opening)
      await work()
    })
  }

  async open(opening: ShardOpening): Promise<void> {
    let opened: Promise<void> | undefined
    await this.#turns.run(async () => {
      opened = this.#open(opening)
      const over = opened.catch(ignore).then(() => void this.#opening.delete(over))
      this.#opening.add(over)
    })
    await opened
  }

  async leave(shard: number): Promise<void> {
    await this.#serving.control.call('leaveShard', [shard], settleMs + leaveMs)
    this.#options.shardTable.assign(shard, undefined)
  }

  async drop(shard: number): Promise<void> {
    this.#options.shardTable.assign(shard, undefined)
    await this.#options.serving()?.control.call('dropShard', [shard], dropMs).catch(ignore)
  }

  /** Tells all processes of this place where the shards are now. */
  setRoutes(routes: RouteTable): void {
    for (const child of this.#options.processes()) sendRoutes(child, routes)
  }

  async #open(opening: ShardOpening): Promise<void> {
    const child = this.#serving
    await child.control.call('openShard', [opening], openShardMs)
    this.#served(opening.shard, child)
  }

  #served(shard: number, { generation }: WorkerChild): void {
    const { shardTable, worker } = this.#options
    shardTable.assign(shard, { worker, generation })
    shardTable.markServing(shard, generation)
  }

  get #serving(): WorkerChild {
    const child = this.#options.serving()
    if (child === undefined) throw new Error('no worker serves')
    return child
  }
}

function sendRoutes(child: WorkerChild, routes: RouteTable): void {
  child.control.call('setRoutes', [routes]).catch(ignore)
}

function ignore(): void {
  // The caller of `open` reports it, and the end of a process voids the other calls.
}
