/**
 * Which shard a bot lies in, and which worker owns a shard when all workers are up.
 *
 *   slot  = first 12 bits of SHA-256(decimal bot_id)      0..4095
 *   shard = slot mod S                                    S a power of two <= 256
 *   worker w owns the shards [floor(w*S/W), floor((w+1)*S/W))
 *
 * The first two lines are on disk for ever: do not change them (test vectors in docs/storage.md). SHA-256 costs
 * about 2 us, too dear for every request, so slots are remembered in a bounded Map. It is emptied when
 * full: cheaper than an LRU, and the bots that are awake fill it again at once.
 */
import { createHash } from 'node:crypto'
import { shardSlotsRememberedMax, shardsMax, workersMax } from '../limits.ts'

export interface ShardMapOptions {
  readonly shards: number
  readonly workers: number
}

export class ShardMap {
  readonly shards: number
  readonly workers: number
  readonly #workerOfShard: Int16Array
  readonly #slots = new Map<number, number>()

  constructor(options: ShardMapOptions) {
    assertShards(options)
    this.shards = options.shards
    this.workers = options.workers
    this.#workerOfShard = new Int16Array(options.shards)
    for (let worker = 0; worker < options.workers; worker++) {
      for (const shard of this.shardsOf(worker)) this.#workerOfShard[shard] = worker
    }
  }

  shardOf(botId: number): number {
    let slot = this.#slots.get(botId)
    if (slot === undefined) {
      slot = slotOfBot(botId)
      if (this.#slots.size >= shardSlotsRememberedMax) this.#slots.clear()
      this.#slots.set(botId, slot)
    }
    return slot & (this.shards - 1)
  }

  /** The worker that owns this shard whenever it is alive. */
  workerOf(shard: number): number {
    return this.#workerOfShard[shard] ?? -1
  }

  workerOfBot(botId: number): number {
    return this.workerOf(this.shardOf(botId))
  }

  shardsOf(worker: number): readonly number[] {
    const first = Math.floor((worker * this.shards) / this.workers)
    const end = Math.floor(((worker + 1) * this.shards) / this.workers)
    return Array.from({ length: end - first }, (_, index) => first + index)
  }

  /** How many slots are remembered; for the test of the bound. */
  get remembered(): number {
    return this.#slots.size
  }
}

export function slotOfBot(botId: number): number {
  const digest = createHash('sha256').update(String(botId)).digest()
  return digest.readUInt16BE(0) >> 4
}

/** One worker a CPU, as long as there are shards for all of them: a data directory may have been made with few. */
export function defaultWorkers(cpus: number, shards: number): number {
  return Math.min(Math.max(Math.trunc(cpus), 1), workersMax, shards)
}

/** 8, or the next power of two >= the number of CPUs. */
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
