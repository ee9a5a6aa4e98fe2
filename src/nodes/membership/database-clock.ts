/**
 * The clock by which the shards of a database judge what ends at a stored time: the clock of the database, as every heartbeat
 * brings it along, so that nodes whose clocks differ judge alike. It is kept as an offset on the clock of the machine, which
 * nobody sets.
 *
 * When the clock of the database jumps, as after a failover to a machine with another clock, this one follows by a tenth of
 * the time that passes, so that nothing ends at once. What is left is its `lagMs`, which each node leaves in its row: a node
 * that joins meanwhile begins where the others are.
 */
import { clockDifferenceMsMax } from '../../kit/limits.ts'
import type { NodeClock, NodeRow } from '../../store/node-table.ts'
import type { Log } from '../../kit/surroundings.ts'

export interface ClockReading extends NodeClock {
  /** Added to the time of the machine, this is the time of the shards, in ms since 1970. */
  readonly offsetMs: number
}

/** What a heartbeat has read, in ms: the wall clocks of the database and of this node, and times of the machine's clock. */
export interface ClocksRead {
  readonly databaseMs: number
  readonly nodeMs: number
  readonly sentAtMs: number
  readonly receivedAtMs: number
}

/**
 * The clock of the shards follows a jump of the database's by this part of the time that passes. Chosen: a time to live is
 * at most a tenth shorter or longer than wanted, and 10 minutes are made up for in less than two hours.
 */
export const clockSlewRate = 0.1

export class DatabaseClock {
  readonly #log: Log
  readonly #firstLagMs: number
  #last: { readonly offsetMs: number; readonly readAtMs: number } | undefined
  #hasJumped = false
  #differs = false

  /** @param firstLagMs - that of the nodes that are there already */
  constructor(log: Log, firstLagMs: number) {
    this.#log = log
    this.#firstLagMs = firstLagMs
  }

  read({ databaseMs, nodeMs, sentAtMs, receivedAtMs }: ClocksRead): ClockReading {
    // The database has read its clock at some time of the round trip.
    const readAtMs = (sentAtMs + receivedAtMs) / 2
    const measuredMs = databaseMs - readAtMs
    const offsetMs = this.#followed(measuredMs, readAtMs)
    this.#last = { offsetMs, readAtMs }
    const skewMs = Math.round(nodeMs - receivedAtMs - measuredMs)
    const lagMs = Math.round(offsetMs - measuredMs)
    this.#warn(skewMs, lagMs)
    return { offsetMs, skewMs, lagMs }
  }

  #followed(measuredMs: number, readAtMs: number): number {
    if (this.#last === undefined) return measuredMs + this.#firstLagMs
    const { offsetMs, readAtMs: lastReadAtMs } = this.#last
    const stepMsMax = (readAtMs - lastReadAtMs) * clockSlewRate
    return offsetMs + Math.min(Math.max(measuredMs - offsetMs, -stepMsMax), stepMsMax)
  }

  #warn(skewMs: number, lagMs: number): void {
    const hasJumped = Math.abs(lagMs) > clockDifferenceMsMax
    if (hasJumped && !this.#hasJumped) this.#log.warn({ byMs: -lagMs }, jumped)
    this.#hasJumped = hasJumped
    const differs = Math.abs(skewMs) > clockDifferenceMsMax
    if (differs && !this.#differs) this.#log.warn({ aheadMs: skewMs }, isApart)
    if (!differs && this.#differs) this.#log.info({ aheadMs: skewMs }, agrees)
    this.#differs = differs
  }
}

/** Returns how far the shards' clock is ahead of the database's at the nodes of these rows: the largest difference. */
export function lagOf(rows: readonly NodeRow[]): number {
  const lags = rows.map(({ clock }) => clock?.lagMs ?? 0)
  return lags.reduce((largest, lag) => (Math.abs(lag) > Math.abs(largest) ? lag : largest), 0)
}

const jumped =
  'the clock of the database has jumped: what ends at a stored time follows it by a tenth of the time that passes, so that nothing ends at once'
const isApart =
  'the clock of this machine differs from that of the database: updates, keys and tokens end by that of the database, and receivers may refuse the time of signed deliveries; let a time service set both'
const agrees = 'the clock of this machine agrees with that of the database again'

/** Returns `12 s ahead` or `12 s behind` for a node whose clock differs too much from the database's, otherwise undefined. */
export function clockDifference({ clock }: NodeRow): string | undefined {
  const skewMs = clock?.skewMs ?? 0
  if (Math.abs(skewMs) <= clockDifferenceMsMax) return undefined
  return clockText(skewMs)
}

/** Returns `12 s ahead` or `12 s behind` for a clock. */
export function clockText(skewMs: number): string {
  return `${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? 'ahead' : 'behind'}`
}
