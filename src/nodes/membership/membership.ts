/**
 * What one node knows of the nodes of its cluster, from the rows that its heartbeats read. Pure: times are given, and the
 * caller acts.
 *
 * A node may serve until `nodeLeaseMs` after it sent its last heartbeat that was acknowledged. It is evicted by another one
 * that has read its row unchanged for longer, by its own clock: the heartbeat behind that row was sent before the first of
 * these reads, so the lease has ended. Whoever has not read for a while begins all of its observations anew, so that
 * nobody is evicted for an outage of the database.
 */
import assert from 'node:assert/strict'
import type { NodeRow } from '../../store/node-table.ts'
import { nodeEvictedMs, nodeObservationGapMs } from './limits.ts'
import { nodeLeaseMs } from '../../process/limits.ts'

/** The rows that a heartbeat has read, with times of a monotonic clock in ms. */
export interface NodesRead {
  /** Whether this node had a row to beat in. */
  readonly isMember: boolean
  readonly nodes: readonly NodeRow[]
  readonly sentAtMs: number
  readonly receivedAtMs: number
}

interface Observation {
  readonly beat: string
  /** When this beat was first read. */
  readonly sinceMs: number
}

export class Membership {
  readonly #boot: string
  /** By boot. */
  #observations = new Map<string, Observation>()
  #lastReadMs = Number.NEGATIVE_INFINITY
  #validUntilMs = Number.NEGATIVE_INFINITY

  /** @param boot - of this node; its own row is never evicted */
  constructor(boot: string) {
    this.#boot = boot
  }

  /** Until when this node may serve. */
  get validUntilMs(): number {
    return this.#validUntilMs
  }

  /** When the next of the other nodes has to be evicted, if its row stands still until then. */
  get nextOverdueMs(): number {
    const times = Array.from(this.#observations, ([boot, { sinceMs }]) =>
      boot === this.#boot ? Number.POSITIVE_INFINITY : sinceMs + nodeEvictedMs + 1,
    )
    return Math.min(...times)
  }

  /** Takes what a heartbeat has read. Returns the rows to evict: each stood unchanged for too long. */
  read({ isMember, nodes, sentAtMs, receivedAtMs }: NodesRead): readonly NodeRow[] {
    // A lease is counted from what was sent, and an eviction from what was received.
    assert(sentAtMs <= receivedAtMs, 'rows are received after they were asked for')
    if (receivedAtMs - this.#lastReadMs > nodeObservationGapMs) this.#observations.clear()
    this.#lastReadMs = receivedAtMs
    const before = this.#observations
    this.#observations = new Map(
      nodes.map(({ boot, beat }) => {
        const seen = before.get(boot)
        return [boot, seen?.beat === beat ? seen : { beat, sinceMs: receivedAtMs }]
      }),
    )
    if (isMember) {
      this.#validUntilMs = Math.max(this.#validUntilMs, sentAtMs + nodeLeaseMs)
    }
    return nodes.filter(({ boot }) => boot !== this.#boot && this.#isOverdue(boot, receivedAtMs))
  }

  #isOverdue(boot: string, nowMs: number): boolean {
    const seen = this.#observations.get(boot)
    return seen !== undefined && nowMs - seen.sinceMs > nodeEvictedMs
  }
}
