/**
 * Shards of this worker in whose tables a check has found damaged blocks. LevelDB may take such a block for an empty one, so
 * that records are missing without a word. A bot that is not found there is therefore refused and not called unknown, and no
 * queue begins anew in it: its ids would come again.
 */
import { PostboteError } from '../errors.ts'
import { brokenShardRetryAfterS } from '../limits.ts'

export class DoubtfulShards {
  readonly #shardOf: (botId: number) => number
  readonly #indices = new Set<number>()

  constructor(shardOf: (botId: number) => number) {
    this.#shardOf = shardOf
  }

  add(index: number): void {
    this.#indices.add(index)
  }

  /** Whether records of this bot may be missing. */
  has(botId: number): boolean {
    return this.#indices.size > 0 && this.#indices.has(this.#shardOf(botId))
  }

  /** To be called with bots without a record. Throws SHARD_BROKEN where one may have been lost. */
  assertAbsent(botIds: readonly number[]): void {
    if (!botIds.some((botId) => this.has(botId))) return
    throw new PostboteError('SHARD_BROKEN', { retryAfterS: brokenShardRetryAfterS })
  }
}
