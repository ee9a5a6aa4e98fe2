/**
 * Deletes what queues keep of updates that have left them, the oldest first: what is too old, all of bots that are gone, what
 * exceeds the bound of the server, and, before pushes would be refused, what takes room on a disk that is nearly full.
 *
 * Bounds of several queues are held by a cutoff that moves from the oldest of all updates towards now: in each step, every queue
 * loses what left before it. A queue that was looked at is not read again before something of it is due.
 */
import { type Clock, every, sleep, type Timer } from '../../kit/clock.ts'
import { type KeptBounds, trimKept } from '../../queue/kept/kept-trimmer.ts'
import {
  longestRetention,
  noRetention,
  type Retention,
  retentionOf,
} from '../../queue/kept/left-update.ts'
import { botIdOf, type QueueId } from '../../shard/records/record-keys.ts'
import type { Shard } from '../../shard/shard.ts'
import type { Log } from '../../kit/surroundings.ts'
import type { BotCache } from '../../bots/bot-cache.ts'
import { SweepSlice } from '../../bots/sweep-slice.ts'

export interface KeptSweeperOptions {
  readonly clock: Clock
  readonly bots: Pick<BotCache, 'isDoubtful' | 'shards'>
  readonly log: Pick<Log, 'error'>
  /** What a queue keeps that has no retention of its own. */
  readonly retention: Retention
  /** What all queues of the server keep. The shards of this worker have their share. */
  readonly bytesMax: number
  /** The number of shards of the server. */
  readonly shardCount: number
  /** Whether the room for the records of this shard is nearly spent. */
  isNearlyLow(shard: number): boolean
}

/**
 * The bound of the server is looked at this often. Measured: with 9,000 updates of 270 bytes a second and a bound of 8 MiB, a
 * second was too long.
 */
const keptSweepPeriodMs = 250
/** The room is looked at this often: as often as the free space is read. */
const keptRoomPeriodMs = 1_000
/** Longer than records that were deleted wait for a group (`reclaimIdleMs`). */
const keptRoomFreeAfterMs = 250
/** What is too old is deleted this often, as expired updates are. */
const keptAgePeriodMs = 60_000
/** A step of the cutoff deletes what left in the oldest part of the time from the oldest update until now. */
const cutoffStepsPerSpan = 16
/** The cutoff does not come closer to now in steps, but jumps there. */
const cutoffSpanMsMin = 1_000

export class KeptSweeper {
  readonly #options: KeptSweeperOptions
  readonly #timer: Timer
  #isClosed = false
  #agedMs = Number.NEGATIVE_INFINITY
  #roomMs = Number.NEGATIVE_INFINITY
  #slice: SweepSlice

  constructor(options: KeptSweeperOptions) {
    this.#options = options
    this.#slice = new SweepSlice(options.clock)
    this.#timer = every(options.clock, keptSweepPeriodMs, () => this.sweep())
  }

  close(): void {
    this.#isClosed = true
    this.#timer.cancel()
  }

  async sweep(): Promise<void> {
    const { bots, clock } = this.#options
    const nowMs = clock.monotonicMs()
    this.#slice = new SweepSlice(clock)
    const isAgeDue = nowMs >= this.#agedMs + keptAgePeriodMs
    if (isAgeDue) this.#agedMs = nowMs
    const isRoomDue = nowMs >= this.#roomMs + keptRoomPeriodMs
    if (isRoomDue) this.#roomMs = nowMs
    const shards = [...bots.shards].filter(({ status }) => status === 'serving')
    for (const shard of shards)
      await this.#try(shard, () => this.#sweepShard(shard, { isAgeDue, isRoomDue }))
    await this.#holdBound(shards)
  }

  async #try(shard: Shard, work: () => Promise<void>): Promise<void> {
    try {
      if (!this.#isClosed && shard.status === 'serving') await work()
    } catch (error) {
      if (this.#isClosed) return
      const fields = { shard: shard.index, error: String(error) }
      this.#options.log.error(fields, 'kept updates could not be deleted; the next try is soon')
    }
  }

  async #sweepShard(
    shard: Shard,
    { isAgeDue, isRoomDue }: { readonly isAgeDue: boolean; readonly isRoomDue: boolean },
  ): Promise<void> {
    await shard.readKept()
    if (isAgeDue) {
      const nowMs = shard.clock.nowMs()
      await this.#trimAll(shard, {
        isDue: (queue) => (shard.kept.findingOf(queue)?.dueMs ?? 0) <= nowMs,
        cutoffMs: 0,
      })
    }
    if (isRoomDue && this.#options.isNearlyLow(shard.index)) await this.#makeRoom(shard)
  }

  /** A sweep takes one step, and then has the room freed, which would take as long as it likes otherwise. */
  async #makeRoom(shard: Shard): Promise<void> {
    const before = shard.kept.bytes
    await this.#step([shard])
    if (shard.kept.bytes >= before) return
    // The records of runs are deleted in the groups that follow.
    await sleep(this.#options.clock, keptRoomFreeAfterMs)
    await shard.freeRoom()
  }

  async #holdBound(shards: readonly Shard[]): Promise<void> {
    const { bytesMax, shardCount } = this.#options
    const shareMax = (bytesMax * shards.length) / shardCount
    const bytes = (): number => shards.reduce((sum, { kept }) => sum + kept.bytes, 0)
    let isMore = true
    while (isMore && !this.#isClosed && bytes() > shareMax) isMore = await this.#step(shards)
  }

  /**
   * Moves the cutoff by one step.
   *
   * @returns whether there may be something left to delete
   */
  async #step(shards: readonly Shard[]): Promise<boolean> {
    // A queue that was not looked at is looked at now, so that the cutoff begins at the oldest update of all.
    for (const shard of shards) {
      const isNew = (queue: QueueId): boolean => shard.kept.findingOf(queue) === undefined
      await this.#try(shard, () => this.#trimAll(shard, { isDue: isNew, cutoffMs: 0 }))
    }
    const oldestMs = Math.min(...shards.map((shard) => oldestOf(shard)))
    const [first] = shards
    if (first === undefined || oldestMs === Number.POSITIVE_INFINITY) return false
    const spanMs = first.clock.nowMs() - oldestMs
    const isLast = spanMs < cutoffSpanMsMin
    const cutoffMs = isLast ? Number.POSITIVE_INFINITY : oldestMs + spanMs / cutoffStepsPerSpan
    for (const shard of shards) {
      await this.#try(shard, () =>
        this.#trimAll(shard, {
          isDue: (queue) => (shard.kept.findingOf(queue)?.oldestMs ?? 0) < cutoffMs,
          cutoffMs,
        }),
      )
    }
    return !isLast
  }

  async #trimAll(
    shard: Shard,
    which: { isDue(queue: QueueId): boolean; readonly cutoffMs: number },
  ): Promise<void> {
    for (const queue of shard.kept.queues) {
      if (which.isDue(queue)) await this.#trim(shard, queue, which.cutoffMs)
      await this.#slice.rest()
      if (this.#isClosed) return
    }
  }

  async #trim(shard: Shard, queue: QueueId, cutoffMs: number): Promise<void> {
    const retention = await this.#retentionOf(shard, queue)
    const bounds: KeptBounds = {
      leftFromMs: Math.max(shard.clock.nowMs() - retention.ms, cutoffMs),
      bytes: retention.ms === 0 ? -1 : retention.bytes,
    }
    const oldestMs = await trimKept({ id: queue, shard }, bounds)
    if (oldestMs === undefined) return
    shard.kept.note(queue, { oldestMs, dueMs: oldestMs + retention.ms })
  }

  /**
   * Reads the settings, so that no queue must be in memory for this. A bot that is gone keeps nothing, unless its record may be
   * lost.
   */
  async #retentionOf(shard: Shard, queue: QueueId): Promise<Retention> {
    const [stored, main] = await shard.load([queue, botIdOf(queue)])
    const isGone = main?.bot === undefined && main?.isDamaged !== true
    if (stored === undefined) return noRetention
    if (isGone) {
      return this.#options.bots.isDoubtful(botIdOf(queue)) ? longestRetention : noRetention
    }
    if (stored.areSettingsLost) return longestRetention
    return retentionOf(stored.settings, this.#options.retention)
  }
}

/** Returns when the oldest update of a shard has left, of the queues that were looked at; Infinity without one. */
function oldestOf({ kept }: Shard): number {
  let oldestMs = Number.POSITIVE_INFINITY
  for (const queue of kept.queues) {
    oldestMs = Math.min(oldestMs, kept.findingOf(queue)?.oldestMs ?? oldestMs)
  }
  return oldestMs
}
