/**
 * Which worker owns which shard, and whether it serves the shard already: /readyz reports that in any process. Requests
 * are routed by shard-map.ts, which needs no shared memory.
 *
 *     owner word      0 = unassigned, else generation << 9 | (worker + 1)      stored by the primary only
 *     serving word    0 = not served, else generation + 1                      stored by the primary when the owner serves
 *     hangs word      of a worker's place: processes that were killed because they hung     counted by the primary only
 *
 * The generation is the number of a process within its worker's place. A shard is served while both words have the same
 * generation: a new assignment ends that by itself, and a word that a dead worker leaves has no effect.
 */
import { shardsMax, workersMax } from '../../kit/limits.ts'
import type { ShardOwner } from '../shard-table.ts'

export const shardTableWords = shardsMax * 2 + workersMax

export class SharedShardTable {
  readonly #owners: Int32Array
  readonly #serving: Int32Array
  readonly #hangs: Int32Array

  /**
   * @param words - the `shardTableWords` words of the table
   * @param shards - the number of shards; every method throws a RangeError for a shard beyond it
   */
  constructor(words: Int32Array, shards: number) {
    this.#owners = words.subarray(0, shards)
    this.#serving = words.subarray(shardsMax, shardsMax + shards)
    this.#hangs = words.subarray(shardsMax * 2)
  }

  owner(shard: number): ShardOwner | undefined {
    const word = Atomics.load(this.#owners, shard)
    if (word === 0) return undefined
    return { worker: (word & workerMask) - 1, generation: word >>> workerBits }
  }

  /** For the primary only. From now on the shard is not served until its new owner serves it. */
  assign(shard: number, owner: ShardOwner | undefined): void {
    if (owner === undefined) {
      Atomics.store(this.#owners, shard, 0)
      return
    }
    const { worker, generation } = owner
    if (!(worker >= 0 && worker < workerMask && generation >= 0 && generation <= generationMax)) {
      throw new RangeError(`expected a worker and a generation; got ${worker} and ${generation}`)
    }
    Atomics.store(this.#owners, shard, (generation << workerBits) | (worker + 1))
  }

  /** For the primary only, once the owner has opened the shard. */
  markServing(shard: number, generation: number): void {
    Atomics.store(this.#serving, shard, generation + 1)
  }

  /** For the primary only, before it kills a process of this place that does not answer any more. */
  countHang(worker: number): void {
    Atomics.add(this.#hangs, worker, 1)
  }

  /**
   * A caller whose request was lost compares this with the value from before, and does not repeat the request if it has
   * risen.
   */
  hangs(worker: number): number {
    return Atomics.load(this.#hangs, worker)
  }

  isServed(shard: number): boolean {
    const word = Atomics.load(this.#owners, shard)
    return word !== 0 && Atomics.load(this.#serving, shard) === (word >>> workerBits) + 1
  }
}

/** Nine bits, since worker 255 is stored as 256. */
const workerBits = 9
const workerMask = (1 << workerBits) - 1
const generationMax = 2 ** (32 - workerBits) - 1
