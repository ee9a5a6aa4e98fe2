/**
 * Notices a worker that lives and does nothing any more: stopped, or caught in an endless loop. Its bots' calls, and
 * what other workers forward to it, would wait for as long as it hangs.
 *
 *   ask --answer--> pause --> ask ...
 *    +-- none --> ask once more --answer--> pause
 *                      +-- none --> it hangs
 *
 * The second question is for the case that this process was stopped as well (Ctrl-Z, a suspended machine): then its
 * own timer has fired before it could read the answer to the first.
 */
import { type Clock, sleep } from '../../clock.ts'
import { workerAskPeriodMs, workerHangMs, workerHangSurelyMs } from '../../limits.ts'

export interface WatchdogTimes {
  readonly askPeriodMs: number
  readonly hangMs: number
  readonly hangSurelyMs: number
}

const usualTimes: WatchdogTimes = {
  askPeriodMs: workerAskPeriodMs,
  hangMs: workerHangMs,
  hangSurelyMs: workerHangSurelyMs,
}

export interface WatchdogOptions {
  readonly clock: Clock
  /** Those of limits.ts unless a test says otherwise. */
  readonly times?: WatchdogTimes | undefined
  /** Rejects where there is no answer within `limitMs`. */
  ask(limitMs: number): Promise<void>
  /** Called once; nothing is asked after it. */
  onHang(): void
}

export class Watchdog {
  readonly #options: WatchdogOptions
  readonly #stopping = new AbortController()

  constructor(options: WatchdogOptions) {
    this.#options = options
    void this.#watch()
  }

  stop(): void {
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

  /** True where nobody wants to know any more. */
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
