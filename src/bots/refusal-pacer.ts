/**
 * Paces the refusals of one bot (SPEC 5.6): several frameworks repeat a refused call with no pause at all.
 * The first goes out at once, any other until 3 s after the last at-once one waits 3 s. At most 8 wait; past
 * that the oldest goes out.
 */
import type { Clock, Timer } from '../clock.ts'
import { delayedRefusalsPerBotMax, refusalDelayMs } from '../limits.ts'

interface Delayed {
  readonly timer: Timer
  release(): void
}

export class RefusalPacer {
  readonly #clock: Clock
  /** Made by the first one: there is a pacer for every bot, and most never refuse anything. */
  #delayed: Set<Delayed> | undefined
  #lastAtOnceMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get delayedCount(): number {
    return this.#delayed?.size ?? 0
  }

  /** Resolves when the refusal may go out; `alwaysDelayed` ones never go out at once. */
  pace(options: { readonly alwaysDelayed: boolean }): Promise<void> {
    const nowMs = this.#clock.monotonicMs()
    if (!options.alwaysDelayed && nowMs - this.#lastAtOnceMs >= refusalDelayMs) {
      this.#lastAtOnceMs = nowMs
      return Promise.resolve()
    }
    const waiting = (this.#delayed ??= new Set())
    if (waiting.size >= delayedRefusalsPerBotMax) releaseOldest(waiting)
    return new Promise((resolve) => {
      const delayed: Delayed = {
        timer: this.#clock.after(refusalDelayMs, () => delayed.release()),
        release: () => {
          delayed.timer.cancel()
          waiting.delete(delayed)
          resolve()
        },
      }
      waiting.add(delayed)
    })
  }

  /** Lets all go out now, as at a shutdown. */
  releaseAll(): void {
    for (const delayed of this.#delayed ?? []) delayed.release()
  }
}

function releaseOldest(waiting: ReadonlySet<Delayed>): void {
  for (const delayed of waiting) {
    delayed.release()
    return
  }
}
