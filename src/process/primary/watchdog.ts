/**
 * Detects a worker that is alive and does nothing any more: it was stopped, or it is in an endless loop. Calls of its
 * bots, and requests that other workers forward to it, would wait for as long as it hangs.
 *
 *   ask --answer--> pause --> ask ...
 *    +-- none --> ask once more --answer--> pause
 *                      +-- none --> it hangs
 *
 * The second question covers the case in which this process was stopped as well (Ctrl-Z, a suspended machine): then its
 * timer fires before it can read the answer to the first question.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import type { Log } from '../../kit/surroundings.ts'
import type { ShardTable } from '../shard-table.ts'
import type { WorkerChild } from './worker-child.ts'

export interface WatchdogTimes {
  readonly askPeriodMs: number
  readonly hangMs: number
  readonly hangSurelyMs: number
}

/**
 * The primary checks this often whether a worker still replies. Chosen: it adds at most 5 s to `workerHangMs`, and a
 * check costs next to nothing.
 */
export const workerPingPeriodMs = 5_000
/**
 * A worker that has not replied for this long hangs: no garbage collection and no busy machine takes as long. The primary
 * checks once more, in case it stood still itself.
 */
export const workerHangMs = 30_000
/** The second check waits this long: if the primary stood still as well, the worker now replies immediately. */
export const workerHangSurelyMs = 5_000

const usualTimes: WatchdogTimes = {
  askPeriodMs: workerPingPeriodMs,
  hangMs: workerHangMs,
  hangSurelyMs: workerHangSurelyMs,
}

export interface WatchdogOptions {
  readonly clock: Clock
  /** The times of limits.ts; tests may pass others. */
  readonly times?: WatchdogTimes | undefined
  /** Rejects if there is no answer within `limitMs`. */
  ask(limitMs: number): Promise<void>
  /** Called at most once, after the last question. */
  onHang(): void
}

/** Kills a worker when it hangs. */
export function watchWorker(
  child: WorkerChild,
  at: {
    readonly clock: Clock
    readonly log: Log
    readonly worker: number
    readonly shardTable: ShardTable
    readonly watchdogTimes?: WatchdogTimes | undefined
  },
): void {
  const { clock, log, worker, shardTable, watchdogTimes: times } = at
  const watchdog = new Watchdog({
    clock,
    times,
    ask: (limitMs) => child.ping(limitMs),
    onHang: () => {
      log.error(
        { worker, workerPid: child.pid },
        'a worker does not respond any more and is killed',
      )
      // Count the hang first, so that the workers that notice the end of this one know the reason.
      shardTable.countHang(worker)
      child.kill()
    },
  })
  void child.gone.finally(() => watchdog.close())
}

export class Watchdog {
  readonly #options: WatchdogOptions
  readonly #stopping = new AbortController()

  constructor(options: WatchdogOptions) {
    this.#options = options
    void this.#watch()
  }

  close(): void {
    this.#stopping.abort()
  }

  async #watch(): Promise<void> {
    const { clock, times = usualTimes } = this.#options
    const { signal } = this.#stopping
    let isAlive = true
    while (isAlive && !signal.aborted) {
      await sleep(clock, times.askPeriodMs, signal)
      isAlive = (await this.#answers(times.hangMs)) || (await this.#answers(times.hangSurelyMs))
    }
    if (!isAlive) this.#options.onHang()
  }

  /** Returns true if the watchdog was stopped. */
  async #answers(limitMs: number): Promise<boolean> {
    if (this.#stopping.signal.aborted) return true
    try {
      await this.#options.ask(limitMs)
      return true
    } catch {
      return this.#stopping.signal.aborted
    }
  }
}
