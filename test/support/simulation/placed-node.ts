/** One life of a node in a simulation: what it knows of the other nodes, and which shards it has open. */
import { nodeEvictedMs } from '../../../src/nodes/membership/limits.ts'
import { Membership } from '../../../src/nodes/membership/membership.ts'
import { Placement } from '../../../src/nodes/membership/placement.ts'
import type { NodeIdentity, NodeRow } from '../../../src/store/node-table.ts'
import type { DriftingClock } from './drifting-clock.ts'

/** A shard that a node has open, or is opening while there is no epoch. */
interface OpenShard {
  epoch: string | undefined
}

export class PlacedNode implements NodeIdentity {
  readonly name: string
  readonly boot: string
  readonly clock: DriftingClock
  readonly membership: Membership
  readonly placement = new Placement()
  readonly shards = new Map<number, OpenShard>()
  readonly moving = new Set<number>()
  /** Rises with every heartbeat: only the last one is followed by another one. */
  attempt = 0
  /** No heartbeat is under way. */
  isWaiting = false
  isNotified = false
  pausedUntilMs = 0
  /** Before this time it fails to open shards. */
  opensFromMs = 0
  /** Before this time its workers are being started. */
  servesFromMs = 0
  hasEnded = false
  /** A row of the same name, and when it was first seen by the own clock. */
  #watched: { readonly row: NodeRow; readonly sinceMs: number } | undefined

  constructor(name: string, boot: string, clock: DriftingClock) {
    this.name = name
    this.boot = boot
    this.clock = clock
    this.membership = new Membership(boot)
  }

  get identity(): NodeIdentity {
    return { name: this.name, boot: this.boot }
  }

  get open(): ReadonlySet<number> {
    return new Set(this.shards.keys())
  }

  /** The end of the lease in true time. */
  get leaseEndMs(): number {
    return this.clock.trueMs(this.membership.validUntilMs)
  }

  /** The epoch with which the shard is open here. */
  epochOf(shard: number): string | undefined {
    return this.shards.get(shard)?.epoch
  }

  begin(shard: number): OpenShard {
    const opening: OpenShard = { epoch: undefined }
    this.shards.set(shard, opening)
    return opening
  }

  /** Returns whether the shard is open now: it was not dropped meanwhile. */
  finish(shard: number, opening: OpenShard, epoch: string): boolean {
    if (this.shards.get(shard) !== opening) return false
    opening.epoch = epoch
    return true
  }

  giveUp(shard: number, opening: OpenShard): void {
    if (this.shards.get(shard) === opening) this.shards.delete(shard)
  }

  /** Returns the row if it has stood still for so long that it may be evicted. */
  watch(row: NodeRow | undefined, nowMs: number): NodeRow | undefined {
    const atMs = this.clock.localMs(nowMs)
    const seen = this.#watched
    if (row === undefined || seen?.row.boot !== row.boot || seen.row.beat !== row.beat) {
      this.#watched = row === undefined ? undefined : { row, sinceMs: atMs }
      return undefined
    }
    return atMs - seen.sinceMs > nodeEvictedMs ? row : undefined
  }
}
