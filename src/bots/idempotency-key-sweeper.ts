/**
 * Removes idempotency keys of past half-days, also in shards where keys are no longer used.
 *
 * It works in slices with a pause after each, because twice a day all keys of half a day are due at the same time. It
 * is separate from the sweep of expired updates, which it would delay by minutes.
 */
import { sleep } from '../kit/clock.ts'
import { ShardSweeper, type SweeperSurroundings } from './shard-sweeper.ts'

/**
 * The deletion of old keys pauses this long after each slice, so that ten million keys take two minutes and a quarter of
 * a worker.
 */
const idempotencySweepPauseMs = 10

export class IdempotencyKeySweeper extends ShardSweeper {
  constructor(surroundings: SweeperSurroundings) {
    super({
      ...surroundings,
      failure: 'old idempotency keys could not be removed; the next try is in a minute',
      async sweepShard(shard, signal) {
        let after: Buffer | undefined
        while (!signal.aborted && shard.status === 'serving') {
          after = await shard.idempotency.removeOld(shard.clock.nowMs(), after)
          if (after === undefined) return
          await sleep(surroundings.clock, idempotencySweepPauseMs, signal)
        }
      },
    })
  }
}
