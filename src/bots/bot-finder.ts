/** Reads the bots of each shard once, for all modules that have to find theirs: one shard after the other, in the background. */
import { type Clock, nextTurn } from '../kit/clock.ts'
import type { Modules } from '../kit/modules.ts'
import { Mutex } from '../kit/mutex.ts'
import type { ShardHooks } from '../shard/hooks.ts'
import type { Shard } from '../shard/shard.ts'

/** If the bots of a shard cannot be read, the next try is after this time. */
export const findRetryMs = 5_000
/**
 * This many records are read in one turn of the event loop. With 500, a collection of young objects found so many alive that V8
 * enlarged their space: 20 MB more in each worker, at the same CPU time.
 */
export const foundPerReadMax = 100

/** It hooks into its worker after all modules that it tells. */
export class BotFinder implements Pick<ShardHooks, 'served' | 'left'> {
  readonly #clock: Clock
  readonly #modules: Modules<ShardHooks>
  readonly #readings = new Map<Shard, AbortController>()
  /** Shards are read one after the other, so that a start has time for requests. */
  readonly #turns = new Mutex()

  constructor(clock: Clock, modules: Modules<ShardHooks>) {
    this.#clock = clock
    this.#modules = modules
  }

  served(shard: Shard): void {
    this.left(shard)
    if (!this.#modules.list.some((module) => 'found' in module)) return
    const reading = new AbortController()
    this.#readings.set(shard, reading)
    void this.#turns.run(() => this.#find(shard, reading.signal))
  }

  left(shard: Shard): void {
    this.#readings.get(shard)?.abort()
    this.#readings.delete(shard)
  }

  stop(): void {
    for (const shard of this.#readings.keys()) this.left(shard)
  }

  async #find(shard: Shard, signal: AbortSignal): Promise<void> {
    try {
      await this.#read(shard, signal)
      if (!signal.aborted) await Promise.all(this.#modules.each('foundAll', shard))
    } catch {
      // The shard reports that it cannot be read.
      if (signal.aborted) return
      this.#modules.each('unfound', shard)
      this.#clock.after(findRetryMs, () => {
        if (!signal.aborted) this.served(shard)
      })
    }
  }

  async #read(shard: Shard, signal: AbortSignal): Promise<void> {
    for (let after = 0; !signal.aborted; ) {
      const bots = await shard.lists.records('b', { after, limit: foundPerReadMax })
      const last = bots.at(-1)
      if (signal.aborted || last === undefined) return
      this.#modules.each('found', shard, bots)
      after = last.queue
      await nextTurn(this.#clock)
    }
  }
}
