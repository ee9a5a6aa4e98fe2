/**
 * Keeps one worker process in each place: forks them, starts them, restarts the dead, and ends them in order.
 *
 * A successor has the index and the shards of its predecessor and the next generation. If one worker cannot start
 * when the server does, the server does not start: the reason is the operator's to see at once. Later a
 * worker that cannot start is tried again, with the delays of `workerRestartDelaysMs`.
 */
import type { Clock } from '../../clock.ts'
import { sleep } from '../../clock.ts'
import { closeMarginMs, drainMs } from '../../limits.ts'
import type { HandOff } from './hand-off.ts'
import { WorkerPlace, type WorkerPlaceOptions } from './worker-place.ts'

export type SupervisorOptions = Omit<WorkerPlaceOptions, 'worker' | 'handOff'>

export class Supervisor {
  readonly #clock: Clock
  readonly #places: readonly WorkerPlace[]

  /** `handOffs[worker]` is where that worker's connections wait. */
  constructor(options: SupervisorOptions, handOffs: readonly HandOff[]) {
    this.#clock = options.clock
    this.#places = handOffs.map(
      (handOff, worker) => new WorkerPlace({ ...options, worker, handOff }),
    )
  }

  /** Resolves when every worker serves; rejects with the reason of the first that cannot, with none left alive. */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#places.map((place) => place.start({ triesAgain: true })))
    } catch (error) {
      await Promise.all(this.#places.map((place) => place.kill()))
      throw error
    }
  }

  /**
   * Replaces the workers by new processes with these settings, one after the other, so that at most one worker's shards
   * are on the move. Rejects at the first that cannot be replaced: that one and those behind it are as they were.
   */
  async reload(settings: unknown): Promise<void> {
    for (const [worker, place] of this.#places.entries()) {
      await place.reload(settings)
      for (const other of this.#places) other.forgetPeer(worker)
    }
  }

  /** Every worker answers what it has, and only then any of them closes: until then they forward to each other. */
  async stop(): Promise<void> {
    await Promise.all(this.#places.map((place) => place.drain()))
    await Promise.race([
      Promise.all(this.#places.map((place) => place.close())),
      sleep(this.#clock, drainMs + closeMarginMs),
    ])
    await Promise.all(this.#places.map((place) => place.kill()))
  }

  /** The process ids of the workers, -1 where there is none at the moment. */
  pids(): readonly number[] {
    return this.#places.map((place) => place.pid)
  }
}
