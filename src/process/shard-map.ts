/**
 * Maps a bot to its shard, and a shard to the worker that owns it while all workers are up.
 *
 *   slot  = first 12 bits of SHA-256(decimal bot_id)      0..4095
 *   shard = slot mod S                                    S a power of two <= 256
 *   worker w owns the shards [floor(w*S/W), floor((w+1)*S/W))
 *
 * The first two lines decide where records lie on disk: do not change them (docs/inside/storage.md has test vectors). SHA-256
 * costs about 2 us, which is too much for every request, so a bounded Map caches slots. The Map is cleared when it is
 * full: that is cheaper than an LRU, and the active bots refill it quickly.
 */
import { createHash } from 'node:crypto'
import { shardsMax, workersMax } from '../kit/limits.ts'

/** The sizes that a `ShardMap` is made for. */
export interface ShardMapOptions {
  /** The number of shards: a power of two from 1 to `shardsMax`. */
  readonly shards: number
  /** The number of workers: from 1 to `shards`. */
  readonly workers: number
}

/** The shard map caches the slots of this many bots; 65,536 numbers in a Map take 3 MiB. */
export const shardSlotsRememberedMax = 65_536

/** Maps bot ids to shards, and shards to workers. */
export class ShardMap {
  readonly shards: number
  readonly workers: number
  readonly #workerOfShard: Int16Array
  readonly #slots = new Map<number, number>()

  /**
   * @param options - the numbers of shards and workers
   * @throws RangeError if either number is out of range
   */
  constructor(options: ShardMapOptions) {
    assertShards(options)
    this.shards = options.shards
    this.workers = options.workers
    this.#workerOfShard = new Int16Array(options.shards)
    for (let worker = 0; worker < options.workers; worker++) {
      for (const shard of this.shardsOf(worker)) this.#workerOfShard[shard] = worker
    }
  }

  /**
   * Returns the shard of a bot. The first call for a bot hashes its id (2 us); later calls read the cache.
   *
   * @param botId - decides the slot, and by it the shard
   * @returns the shard, 0..shards-1
   */
  shardOf(botId: number): number {
    let slot = this.#slots.get(botId)
    if (slot === undefined) {
      slot = slotOfBot(botId)
      if (this.#slots.size >= shardSlotsRememberedMax) this.#slots.clear()
      this.#slots.set(botId, slot)
    }
    return slot & (this.shards - 1)
  }

  /**
   * Returns the worker that owns a shard.
   *
   * @param shard - 0..shards-1
   * @returns the worker, 0..workers-1; -1 if there is no such shard
   */
  workerOf(shard: number): number {
    return this.#workerOfShard[shard] ?? -1
  }

  /**
   * Returns the worker that owns the shard of a bot.
   *
   * @param botId - see `shardOf`
   * @returns the worker, 0..workers-1
   */
  workerOfBot(botId: number): number {
    return this.workerOf(this.shardOf(botId))
  }

  /**
   * Returns the shards of one worker, a contiguous range in rising order.
   *
   * @param worker - 0..workers-1
   */
  shardsOf(worker: number): readonly number[] {
    const first = Math.floor((worker * this.shards) / this.workers)
    const end = Math.floor(((worker + 1) * this.shards) / this.workers)
    return Array.from({ length: end - first }, (_, index) => first + index)
  }

  /** The number of cached slots, for the test of the bound `shardSlotsRememberedMax`. */
  get remembered(): number {
    return this.#slots.size
  }
}

/**
 * Returns the slot of a bot, 0..4095. The slot is a rule of the disk format (docs/inside/storage.md).
 *
 * @param botId - hashed in decimal form
 */
export function slotOfBot(botId: number): number {
  const digest = createHash('sha256').update(String(botId)).digest()
  return digest.readUInt16BE(0) >> 4
}

/**
 * Returns the default number of workers: one per CPU, but never more than there are shards, because the data directory
 * may have been made with few of them.
 *
 * @param cpus - the number of CPUs; below 1 it counts as 1
 * @param shards - the number of shards of the data directory
 */
export function defaultWorkers(cpus: number, shards: number): number {
  return Math.min(Math.max(Math.trunc(cpus), 1), workersMax, shards)
}

/**
 * Returns the default number of shards of a new data directory: 8, or the next power of two that is at least the number
 * of CPUs, at most `shardsMax`.
 *
 * @param cpus - the number of CPUs
 */
export function defaultShards(cpus: number): number {
  let shards = 8
  while (shards < cpus && shards < shardsMax) shards *= 2
  return shards
}

function assertShards({ shards, workers }: ShardMapOptions): void {
  if (!Number.isInteger(shards) || shards < 1 || shards > shardsMax || shards & (shards - 1)) {
    throw new RangeError(
      `expected --shards to be a power of two from 1 to ${shardsMax}, got ${shards}`,
    )
  }
  if (!Number.isInteger(workers) || workers < 1 || workers > shards) {
    throw new RangeError(
      `expected --workers from 1 to the number of shards (${shards}), got ${workers}`,
    )
  }
}
