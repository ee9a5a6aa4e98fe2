/**
 * Removes expired updates in the background (protocol.md §4). Every 60 s it processes the expiry buckets that are due, queue by
 * queue, and yields to other work after 10 ms.
 */
import type { QueueId } from '../shard/records/record-keys.ts'
import type { Shard } from '../shard/shard.ts'
import type { ExpiryBucket } from '../shard/records/stored-records.ts'
import type { BotCache } from './bot-cache.ts'
import { SweepSlice } from './sweep-slice.ts'
import { ShardSweeper, type SweeperSurroundings } from './shard-sweeper.ts'

export interface ExpirySweeperOptions extends SweeperSurroundings {
  readonly bots: BotCache
}

/**
 * The sweep reads at most this many expiry records together. Chosen: fewer would need more reads, more would only take
 * more memory; all reads together see every record.
 */
const expiryBucketsPerReadMax = 500
/**
 * A sweep remembers this many queues that it has handled. Past that it may read one twice, which costs time and nothing
 * else.
 */
const expirySweptQueuesMax = 10_000

export class ExpirySweeper extends ShardSweeper {
  readonly #options: ExpirySweeperOptions

  constructor(options: ExpirySweeperOptions) {
    super({
      ...options,
      failure: 'expired updates could not be removed; the next try is in a minute',
      sweepShard: (shard, signal) => this.#sweepShard(shard, signal),
    })
    this.#options = options
  }

  async #sweepShard(shard: Shard, signal: AbortSignal): Promise<void> {
    const slice = new SweepSlice(this.#options.clock)
    const minute = Math.floor(shard.clock.nowMs() / 60_000)
    let after: ExpiryBucket | undefined
    // Per queue, whether everything that is due by now was removed. After a long stop, hundreds of minutes of one queue
    // are due at the same time.
    const seenTo = new Map<QueueId, boolean>()
    for (;;) {
      const buckets = await shard.dueQueues({ minute, limit: expiryBucketsPerReadMax, after })
      for (const bucket of buckets) {
        if (signal.aborted || shard.status !== 'serving') return
        // A queue that cannot be read now must not delay the others.
        try {
          const isComplete =
            seenTo.get(bucket.queue) ?? (await this.#sweepQueue(shard, bucket.queue))
          if (seenTo.size >= expirySweptQueuesMax) seenTo.clear()
          seenTo.set(bucket.queue, isComplete)
          // Updates that a webhook holds may return to the queue; the sweeper finds them by this bucket.
          if (isComplete) await shard.removeBucket(bucket)
        } catch (error) {
          this.report(shard, error)
        }
        await slice.rest()
      }
      if (buckets.length < expiryBucketsPerReadMax) return
      after = buckets.at(-1)
    }
  }

  /** Returns whether the queue has no expired updates left. */
  async #sweepQueue(shard: Shard, id: QueueId): Promise<boolean> {
    const queue = await this.#options.bots.findQueue(id)
    const isComplete = (await queue?.updates.removeExpired()) ?? true
    await queue?.updates.deadLetters.removeOld()
    await shard.reclaimLeftovers(id)
    return isComplete
  }
}
