/**
 * Keeps one worker process in each place: forks and starts the processes, restarts dead ones, and ends all in order.
 *
 * A successor has the index and the shards of its predecessor, and the next generation. If a worker cannot start when the
 * server starts, the server does not start, so that the operator sees the reason immediately. Later, a worker that cannot
 * start is tried again after the delays of `workerRestartDelaysMs`.
 */
import type { Clock } from '../../kit/clock.ts'
import { sleep } from '../../kit/clock.ts'
import { closeMarginMs } from '../limits.ts'
import { drainMs } from '../../kit/limits.ts'
import type { ShardControl, ShardWorker } from '../shard-assignment.ts'
import type { RouteTable } from '../routes.ts'
import type { ShardMap } from '../shard-map.ts'
import type { HandOff } from './hand-off.ts'
import { WorkerPlace, type WorkerPlaceOptions } from './worker-place.ts'

export type SupervisorOptions = Omit<WorkerPlaceOptions, 'worker' | 'handOff'>

export class Supervisor implements ShardControl {
  readonly #clock: Clock
  readonly #places: readonly WorkerPlace[]
  readonly #map: ShardMap

  /** @param handOffs - by worker: where the connections of that worker wait */
  constructor(options: SupervisorOptions, handOffs: readonly HandOff[]) {
    this.#clock = options.clock
    this.#map = options.map
    this.#places = handOffs.map(
      (handOff, worker) => new WorkerPlace({ ...options, worker, handOff }),
    )
  }

  /** Resolves when every worker serves. If one cannot start, this kills all of them and rejects with its reason. */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#places.map((place) => place.start({ triesAgain: true })))
    } catch (error) {
      await Promise.all(this.#places.map((place) => place.kill()))
      throw error
    }
  }

  /**
   * Replaces the workers by new processes with these settings, one after the other, so that the shards of at most one
   * worker change hands at a time. Rejects at the first worker that cannot be replaced: that one and those after it go on
   * unchanged.
   */
  async reload(settings: unknown): Promise<void> {
    for (const place of this.#places) await place.reload(settings)
  }

  workerOf(shard: number): ShardWorker {
    const place = this.#places[this.#map.workerOf(shard)]
    if (place === undefined) throw new Error(`there is no shard ${shard}`)
    return place.shards
  }

  setRoutes(routes: RouteTable): void {
    for (const place of this.#places) place.shards.setRoutes(routes)
  }

  /** No worker closes before every worker has drained: until then they forward requests to each other. */
  async close(): Promise<void> {
    await Promise.all(this.#places.map((place) => place.drain()))
    await Promise.race([
      Promise.all(this.#places.map((place) => place.close())),
      sleep(this.#clock, drainMs + closeMarginMs),
    ])
    await Promise.all(this.#places.map((place) => place.kill()))
  }

  /** The process ids of the workers; -1 for a place without a process. */
  pids(): readonly number[] {
    return this.#places.map((place) => place.pid)
  }
}
