/**
 * Shards of this worker in whose tables a check has found damaged blocks.
 *
 * LevelDB may read such a block as an empty one, so records may be missing without an error. A bot that is not found in
 * such a shard is therefore refused instead of unknown, and no queue starts anew in it, because its ids would repeat.
 */
import { PostboteError } from '../errors.ts'

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

  /** Call this with bots that have no record. Throws SHARD_BROKEN if a record may have been lost. */
  assertAbsent(botIds: readonly number[]): void {
    if (!botIds.some((botId) => this.has(botId))) return
    throw new PostboteError('SHARD_BROKEN')
  }
}
