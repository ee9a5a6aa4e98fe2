/**
 * Where requests for a shard go. A place is a number: a worker of this node (0..workers-1), or a worker of another node
 * (from `workersMax` on, in the order in which they were first needed).
 *
 * One machine has all shards, and its routes never change. In a cluster, the primary sends a new table whenever nodes or
 * owners have changed.
 */
import { workersMax } from '../kit/limits.ts'
import type { ClusterMember } from './node-report.ts'
import { mayTake, type NodeState } from '../store/node-table.ts'
import { ShardMap } from './shard-map.ts'

/** The nodes and the owners of the shards, as heartbeats have read them in each database. */
export interface RouteTable {
  /** The life of this node in each database; empty where it is no member. */
  readonly boots: readonly string[]
  /** A node has one life in each database that it is a member of. */
  readonly nodes: readonly RouteNode[]
  readonly owners: readonly RouteOwner[]
  /** For each database, the life of its server that has the rows; undefined if none has been read. */
  readonly servers: readonly (string | undefined)[]
}

export interface RouteNode {
  readonly boot: string
  /** The same in each database. */
  readonly name: string
  readonly state: NodeState
  /** Where its first worker can be reached, as host:port; the others follow on the next ports. Empty if nowhere. */
  readonly address: string
  readonly workers: number
}

export interface RouteOwner {
  readonly shard: number
  readonly boot: string
  /** Rises with each owner. */
  readonly epoch: number
}

/** What the rows or another node say about who has a shard. */
export type ShardOwnerHint = Pick<RouteOwner, 'boot' | 'epoch'>

/** What is known here of who has one shard, as those that look for its owner use it and tell it. */
export interface OwnerView {
  /** Takes what another node says. */
  learn(owner: ShardOwnerHint): void
  /** Its owner has responded. */
  answered(): void
  /** Whether another node has it, or will as soon as it has opened it, and nothing was heard of it from there yet. */
  isOnItsWay(): boolean
}

/** One worker of another node. */
export interface RemoteWorker {
  readonly boot: string
  readonly address: string
  readonly worker: number
}

export class Routes {
  /** Of who has a shard. */
  readonly news = new ShardNews()
  readonly #map: ShardMap
  readonly #places: Int32Array
  readonly #owners: ShardOwnerHint[] = []
  /** The shards that other nodes have of which nothing was heard from there yet. */
  readonly #onTheirWay = new Set<number>()
  /** The lives of this node, and all members. */
  #own: ReadonlySet<string> = new Set()
  #members: ReadonlyMap<string, RouteNode> = new Map()
  readonly #remote = new Map<number, RemoteWorker>()
  readonly #placeOfWorker = new Map<string, number>()
  #nextPlace = workersMax
  readonly #lost = new Set<string>()

  /** @param map - the workers of this node; it has all shards until `set` is called */
  constructor(map: ShardMap) {
    this.#map = map
    this.#places = Int32Array.from({ length: map.shards }, (_, shard) => map.workerOf(shard))
  }

  get shards(): number {
    return this.#places.length
  }

  /** Returns the place that has the shard; undefined if none has it now. */
  placeOf(shard: number): number | undefined {
    const place = this.#places[shard]
    return place === -1 ? undefined : place
  }

  shardOf(botId: number): number {
    return this.#map.shardOf(botId)
  }

  /** Whether a place is a worker of another node. */
  isRemote(place: number): boolean {
    return place >= workersMax
  }

  /** Returns the worker at a place of another node, as long as that node is a member. */
  remote(place: number): RemoteWorker | undefined {
    return this.#remote.get(place)
  }

  /** Returns the epoch of a shard; 0 on one machine. */
  epochOf(shard: number): number {
    return this.#owners[shard]?.epoch ?? 0
  }

  /** Returns who has a shard, as far as is known here; undefined on one machine. */
  ownerOf(shard: number): ShardOwnerHint | undefined {
    return this.#owners[shard]
  }

  /** Without a shard, nothing is known and learned: a request is for one place. */
  ownerView(shard: number | undefined): OwnerView {
    if (shard === undefined) return nowhereElse
    return {
      learn: (owner) => this.learn(shard, owner),
      answered: () => void this.#onTheirWay.delete(shard),
      isOnItsWay: () => this.#onTheirWay.has(shard),
    }
  }

  /** Returns the shards of this node: a list for each of its workers that has any, in the order of the workers. */
  groups(): readonly (readonly number[])[] {
    const groups = Array.from({ length: this.#map.workers }, (): number[] => [])
    for (const [shard, place] of this.#places.entries()) groups[place]?.push(shard)
    return groups.filter((group) => group.length > 0)
  }

  /** Returns all nodes that are members; none on one machine. */
  members(): readonly ClusterMember[] {
    const members = new Map<string, ClusterMember>()
    for (const { boot, name, state } of this.#members.values()) {
      const { state: before = state, shards = [] } = members.get(name) ?? {}
      const own = Array.from(this.#owners.keys()).filter(
        (shard) => this.ownerOf(shard)?.boot === boot,
      )
      const isLeaving = [before, state].includes('leaving')
      members.set(name, {
        name,
        state: isLeaving ? 'leaving' : before,
        shards: [...shards, ...own],
      })
    }
    return [...members.values()]
  }

  /**
   * Whether this node was told to leave and another one takes its shards: it ends soon, so its clients should find the others.
   */
  get isLeaving(): boolean {
    const nodes = [...this.#members.values()]
    const isOwn = ({ boot }: RouteNode): boolean => this.#own.has(boot)
    const isTold = nodes.some((node) => isOwn(node) && node.state === 'leaving')
    return isTold && nodes.some((node) => !isOwn(node) && mayTake(node))
  }

  /** Takes what another node knows of a shard, if it is newer: a node that is cut off from the database has old routes. */
  learn(shard: number, owner: ShardOwnerHint): void {
    if (owner.epoch > this.epochOf(shard)) this.#setOwner(shard, owner, new Map())
  }

  /** How many nodes are members no more and were not told to leave, until they are back. Those are known that this process has seen. */
  get lostNodes(): number {
    return this.#lost.size
  }

  /** Returns a place of each worker, of this node and of all others. */
  places(): readonly number[] {
    const own = Array.from({ length: this.#map.workers }, (_, worker) => worker)
    // A worker of another node has a place for each database, so that an eviction in one ends the requests of its shards only.
    const remote = new Map<string, number>()
    for (const [place, { address, worker }] of this.#remote) {
      remote.set(nameOf(address, worker), place)
    }
    return [...own, ...remote.values()]
  }

  /** Takes a new table. Returns the places of nodes that are members no more. */
  set({ boots, nodes, owners }: RouteTable): readonly number[] {
    this.#own = new Set(boots.filter((boot) => boot !== ''))
    this.#noteLost(nodes)
    this.#members = new Map(nodes.map((node) => [node.boot, node]))
    const gone = [...this.#remote].filter(([, { boot: of }]) => !this.#members.has(of))
    for (const [place, { boot: of, worker }] of gone) {
      this.#remote.delete(place)
      this.#placeOfWorker.delete(nameOf(of, worker))
    }
    for (const node of nodes) {
      if (!this.#own.has(node.boot) && node.address !== '') this.#meet(node)
    }
    const maps = new Map<number, ShardMap>()
    for (const { shard, ...owner } of owners) this.#setOwner(shard, owner, maps)
    return gone.map(([place]) => place)
  }

  /** A node has a life in each database, and is there while one is. */
  #noteLost(nodes: readonly RouteNode[]): void {
    const before = [...this.#members.values()]
    const told = new Set(before.filter((node) => node.state === 'leaving').map(({ name }) => name))
    for (const { name } of before) if (!told.has(name)) this.#lost.add(name)
    for (const { name } of nodes) this.#lost.delete(name)
  }

  #setOwner(shard: number, owner: ShardOwnerHint, maps: Map<number, ShardMap>): void {
    const before = this.#owners[shard]
    this.#owners[shard] = owner
    const node = this.#members.get(owner.boot)
    this.#places[shard] = this.#own.has(owner.boot)
      ? this.#map.workerOf(shard)
      : node === undefined || node.address === ''
        ? -1
        : (this.#placeOfWorker.get(nameOf(node.boot, this.#workerOf(shard, node, maps))) ?? -1)
    if (before?.boot !== owner.boot) this.#noteMove(shard, owner)
    if (before?.epoch !== owner.epoch || before.boot !== owner.boot) this.news.tell(shard)
  }

  #noteMove(shard: number, { boot }: ShardOwnerHint): void {
    if (boot === '' || this.#own.has(boot)) this.#onTheirWay.delete(shard)
    else this.#onTheirWay.add(shard)
  }

  #meet({ boot, address, workers }: RouteNode): void {
    for (let worker = 0; worker < workers; worker++) {
      const name = nameOf(boot, worker)
      if (this.#placeOfWorker.has(name)) continue
      const place = this.#nextPlace++
      this.#placeOfWorker.set(name, place)
      this.#remote.set(place, { boot, address, worker })
    }
  }

  /** The workers of every node share its shards in the same way. */
  #workerOf(shard: number, { workers }: RouteNode, maps: Map<number, ShardMap>): number {
    let map = maps.get(workers)
    if (map === undefined) {
      map = new ShardMap({ shards: this.#places.length, workers })
      maps.set(workers, map)
    }
    return map.workerOf(shard)
  }
}

const nowhereElse: OwnerView = {
  learn: () => undefined,
  answered: () => undefined,
  isOnItsWay: () => false,
}

function nameOf(node: string, worker: number): string {
  return `${node}/${worker}`
}

/** Tells whoever waits for a shard that another node has it now, or that it is served here. */
export class ShardNews {
  /** By shard. */
  readonly #watchers = new Map<number, Set<() => void>>()

  /** Calls `onNews` whenever there is news of the shard, until the returned function is called. */
  watch(shard: number, onNews: () => void): () => void {
    const watchers = this.#watchers.get(shard) ?? new Set()
    this.#watchers.set(shard, watchers.add(onNews))
    return () => {
      watchers.delete(onNews)
      if (watchers.size === 0 && this.#watchers.get(shard) === watchers)
        this.#watchers.delete(shard)
    }
  }

  tell(shard: number): void {
    for (const onNews of this.#watchers.get(shard) ?? []) onNews()
  }
}
