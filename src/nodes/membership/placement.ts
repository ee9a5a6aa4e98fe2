/**
 * What one node does with the shards of its cluster, decided from the rows that its heartbeats read. Pure: times are given,
 * and the caller acts.
 *
 *   owned, not open here          open it
 *   orphan: its owner has no row  open it, when it is this node's turn in the rank of the shard
 *   owned, another is first       hand it over, when the nodes have been the same for a while
 *   open, owned by another        drop it
 *
 * The rows may be older than what this node has just done. So every action is a compare and swap: an open is a claim, which
 * fails if another living node owns the shard, and a hand-over names the owner and the epoch.
 */
import { mayTake, type NodeIdentity, type NodeRow, type ShardRow } from '../../store/node-table.ts'
import { nodeObservationGapMs } from './limits.ts'
import { nodeLeaseMs } from '../../process/limits.ts'
import { rendezvousRank } from './rendezvous.ts'

/** What a heartbeat has read, with the time of a monotonic clock in ms, and what this node has open. */
export interface PlacementView {
  readonly nowMs: number
  readonly nodes: readonly NodeRow[]
  readonly shards: readonly ShardRow[]
  readonly self: NodeIdentity
  /** The shards that this node has open or is opening. */
  readonly open: ReadonlySet<number>
  /** The shards that this node is handing over. They are in no list of the decision. */
  readonly moving: ReadonlySet<number>
  /** The boots of nodes that could not be reached from here lately. */
  readonly unreached?: ReadonlySet<string>
}

export interface HandOver {
  readonly shard: number
  readonly to: NodeIdentity
}

export interface PlacementDecision {
  /** To open now, with a claim: shards of this node, and orphans. */
  readonly open: readonly number[]
  /** To hand over now. A node that leaves may not have opened such a shard. */
  readonly handOver: readonly HandOver[]
  /** To close now, because another node owns them. */
  readonly drop: readonly number[]
  /** This node is leaving and has nothing left. */
  readonly mayLeave: boolean
}

/** A beat, and when it was first read after another one; undefined for the first of a node. */
interface SeenBeat {
  readonly beat: string
  readonly movedMs: number | undefined
}

/** An orphan that this node has seen. */
interface Orphan {
  readonly epoch: string
  readonly sinceMs: number
}

/** What the parts of a decision have in common. */
interface Situation {
  readonly view: PlacementView
  readonly isLeaving: boolean
  /** The nodes that may get shards from this one: they can take some, and their beats have moved lately. */
  readonly targets: readonly NodeRow[]
  readonly owned: readonly ShardRow[]
  readonly orphans: readonly ShardRow[]
}

const nothing: PlacementDecision = { open: [], handOver: [], drop: [], mayLeave: false }

/**
 * A shard without an owner is claimed by the node that comes next in its rank if the one before has not claimed it in this
 * time. Chosen: several times what a claim takes that has to end the connection of the last owner.
 */
export const orphanTurnMs = 2_000
/**
 * A node hands shards over to other ones when the same nodes have been there, in the same states, for this long. A node that
 * joins gets none before it has served for as long. Chosen: longer than the restart of a node, so that its shards do not move
 * away and back.
 */
export const handOverPauseMs = 10_000
/** A node hands over this many shards at a time, because the bots of such a shard wait meanwhile. */
export const handOversMax = 1
/** The same for a node that leaves: its operator waits for its end. Chosen: 64 shards move in some seconds. */
export const handOversLeavingMax = 4

export class Placement {
  /** The nodes among which shards are placed, as a text to compare, and since when they have been the same. */
  #members = ''
  #sinceMs = 0
  #lastMs = Number.NEGATIVE_INFINITY
  #takers: readonly NodeRow[] = []
  /** The ranks of shards among these nodes. */
  readonly #ranks = new Map<number, readonly NodeRow[]>()
  #orphans: ReadonlyMap<number, Orphan> = new Map()
  /** By boot. */
  #beats: ReadonlyMap<string, SeenBeat> = new Map()

  /** Call this with the rows of every heartbeat, in their order. */
  decide(view: PlacementView): PlacementDecision {
    const { nodes, shards, self, open, moving } = view
    this.#observe(view)
    const own = nodes.find(({ boot }) => boot === self.boot)
    // It was evicted. The next heartbeat notices that, and this node joins again (member.ts).
    if (own === undefined) return nothing
    const boots = new Set(nodes.map(({ boot }) => boot))
    const isLeaving = own.state === 'leaving'
    const targets = nodes.filter(
      (node) => node !== own && mayTake(node) && this.#isAlive(node, view.nowMs),
    )
    const owned = shards.filter(({ boot }) => boot === self.boot)
    const orphans = shards.filter(({ boot }) => !boots.has(boot))
    const situation = { view, isLeaving, targets, owned, orphans }
    return {
      open: this.#toOpen(situation),
      handOver: this.#toHandOver(situation),
      drop: dropped(situation, boots),
      mayLeave:
        isLeaving &&
        targets.length > 0 &&
        owned.length === 0 &&
        open.size === 0 &&
        moving.size === 0,
    }
  }

  /** Notes who is there, and begins anew what depends on it. */
  #observe({ nowMs, nodes, shards }: PlacementView): void {
    const beats = this.#beats
    this.#beats = new Map(
      nodes.map(({ boot, beat }) => {
        const seen = beats.get(boot)
        const movedMs = seen === undefined ? undefined : nowMs
        return [boot, seen?.beat === beat ? seen : { beat, movedMs }]
      }),
    )
    // With those that are starting: nodes that start together take their own shards at once.
    const staying = nodes.filter(({ state }) => state !== 'leaving')
    // If all nodes are leaving, they go on until another one comes.
    const takers = staying.length > 0 ? staying : nodes
    const members = takers
      .map(({ name, boot, state }) => `${name} ${boot} ${state}`)
      .toSorted()
      .join('\n')
    const isOther = members !== this.#members
    if (isOther || nowMs - this.#lastMs > nodeObservationGapMs) this.#sinceMs = nowMs
    if (isOther) {
      this.#members = members
      this.#takers = takers
      this.#ranks.clear()
    }
    this.#lastMs = nowMs
    const before = this.#orphans
    const boots = new Set(nodes.map(({ boot }) => boot))
    this.#orphans = new Map(
      shards
        .filter(({ boot }) => !boots.has(boot))
        .map(({ shard, epoch }) => {
          const seen = before.get(shard)
          const isSame = !isOther && seen?.epoch === epoch
          return [shard, isSame ? seen : { epoch, sinceMs: nowMs }]
        }),
    )
  }

  /** Whether the lease of a node may stand. Without this, the last living node might leave its shards to a dead one. */
  #isAlive({ boot }: NodeRow, nowMs: number): boolean {
    const movedMs = this.#beats.get(boot)?.movedMs
    return movedMs !== undefined && nowMs - movedMs <= nodeLeaseMs
  }

  #toOpen({ view, isLeaving, targets, owned, orphans }: Situation): readonly number[] {
    const { open, moving } = view
    // What a leaving node has not opened yet, it hands over without opening it.
    const own = isLeaving && targets.length > 0 ? [] : owned
    return [...own, ...orphans.filter((row) => this.#isTurn(row, view))]
      .map(({ shard }) => shard)
      .filter((shard) => !open.has(shard) && !moving.has(shard))
  }

  /** Whether this node is the next one to claim an orphan. */
  #isTurn({ shard }: ShardRow, { self, nowMs }: PlacementView): boolean {
    const turn = this.#rankOf(shard).findIndex(({ boot }) => boot === self.boot)
    const sinceMs = this.#orphans.get(shard)?.sinceMs ?? nowMs
    return turn !== -1 && nowMs - sinceMs >= turn * orphanTurnMs
  }

  #toHandOver(situation: Situation): readonly HandOver[] {
    const { view, isLeaving, owned, orphans } = situation
    const { nowMs, moving, open } = view
    const isQuiet = orphans.length === 0 && nowMs - this.#sinceMs >= handOverPauseMs
    if (!isLeaving && !isQuiet) return []
    const places = (isLeaving ? handOversLeavingMax : handOversMax) - moving.size
    return owned
      .filter(({ shard }) => !moving.has(shard) && (isLeaving || open.has(shard)))
      .flatMap(({ shard }) => {
        const to = this.#targetOf(shard, situation)
        return to === undefined ? [] : [{ shard, to: { name: to.name, boot: to.boot } }]
      })
      .slice(0, Math.max(places, 0))
  }

  /**
   * Returns the node that a shard of this one belongs to, if that is another one that can take it. A node that leaves gives it
   * to the next one in the rank if it cannot reach that one: it gets there later, from a node that can.
   */
  #targetOf(shard: number, { view, isLeaving, targets }: Situation): NodeRow | undefined {
    const rank = this.#rankOf(shard)
    const able = rank.filter((node) => isAmong(node, targets))
    const reached = able.find(({ boot }) => view.unreached?.has(boot) !== true)
    const first = isLeaving ? (reached ?? able[0]) : rank[0]
    return first !== undefined && isAmong(first, targets) ? first : undefined
  }

  #rankOf(shard: number): readonly NodeRow[] {
    const known = this.#ranks.get(shard)
    if (known !== undefined) return known
    const rank = rendezvousRank(shard, this.#takers)
    this.#ranks.set(shard, rank)
    return rank
  }
}

function isAmong({ boot }: NodeRow, nodes: readonly NodeRow[]): boolean {
  return nodes.some((node) => node.boot === boot)
}

/**
 * Returns the shards that are open here and owned by another node. An orphan is left open, because its row may be older
 * than the claim of this node; only a node that leaves gives it up, as it can hand it over in any case.
 */
function dropped(
  { view, isLeaving, targets }: Situation,
  boots: ReadonlySet<string>,
): readonly number[] {
  const { shards, self, open, moving } = view
  const dropsOrphans = isLeaving && targets.length > 0
  return shards
    .filter(({ shard }) => open.has(shard) && !moving.has(shard))
    .filter(({ boot }) => boot !== self.boot && (dropsOrphans || boots.has(boot)))
    .map(({ shard }) => shard)
}
