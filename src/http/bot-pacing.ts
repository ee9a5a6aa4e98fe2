/**
 * Refusals to a bot with a valid token (409 of competing polls, 429) are paced per bot: the first goes out at once,
 * any other until 3 s after the last at-once one is delayed by 3 s, and some kinds are always delayed. At most 8 wait
 * for a bot; past that the oldest goes out.
 *
 * `PerBotPacing` decides and knows no time of its own; `BotPacing` is the shell with the timers, one for each bot
 * that has something waiting.
 */
import type { Clock, Timer } from '../clock.ts'
import { delayedRefusalsPerBotMax, refusalDelayMs } from '../limits.ts'

/** The refusals of one bot, as a pure state: what goes out now and when to ask again. */
export class PerBotPacing<T> {
  #lastAtOnceMs = -Infinity
  /** In the order of their due times, which is that of their arrival: every delay is the same. */
  readonly #delayed: { readonly refusal: T; readonly dueMs: number }[] = []

  /** Takes a refusal in and gives the one to send now, if any: itself, or the oldest, which makes room for it. */
  refuse(refusal: T, nowMs: number, kind: 'paced' | 'delayed' = 'paced'): T | undefined {
    if (kind === 'paced' && nowMs - this.#lastAtOnceMs >= refusalDelayMs) {
      this.#lastAtOnceMs = nowMs
      return refusal
    }
    this.#delayed.push({ refusal, dueMs: nowMs + refusalDelayMs })
    const isOver = this.#delayed.length > delayedRefusalsPerBotMax
    return isOver ? this.#delayed.shift()?.refusal : undefined
  }

  /** Gives the delayed refusals whose time has come. */
  takeDue(nowMs: number): readonly T[] {
    const due: T[] = []
    for (let first = this.#delayed[0]; first !== undefined; first = this.#delayed[0]) {
      if (first.dueMs > nowMs) break
      due.push(first.refusal)
      this.#delayed.shift()
    }
    return due
  }

  /** Forgets a refusal whose client is gone. */
  drop(refusal: T): void {
    const index = this.#delayed.findIndex((delayed) => delayed.refusal === refusal)
    if (index !== -1) this.#delayed.splice(index, 1)
  }

  /** When to call `takeDue` next; undefined while nothing waits. */
  get nextDueMs(): number | undefined {
    return this.#delayed[0]?.dueMs
  }

  /** Until when this state must be kept: behind that moment a new one would decide alike. */
  get endsMs(): number {
    return this.#delayed.at(-1)?.dueMs ?? this.#lastAtOnceMs + refusalDelayMs
  }
}

type Release = () => void

interface PacedBot {
  readonly pacing: PerBotPacing<Release>
  timer: Timer
}

export class BotPacing {
  readonly #clock: Clock
  readonly #bots = new Map<string, PacedBot>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many bots have a refusal that waits or that went out within the last 3 s. */
  get bots(): number {
    return this.#bots.size
  }

  /**
   * Resolves when the refusal may go out. `bot` tells bots (and their test namespaces) apart; `delayed` is
   * for a refusal that never goes out at once; `signal` is aborted when the client is gone.
   */
  hold(
    bot: string,
    options: { readonly kind?: 'paced' | 'delayed'; readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    const { kind = 'paced', signal } = options
    if (signal?.aborted === true) return Promise.resolve()
    return new Promise((resolve) => {
      const state = this.#stateOf(bot)
      const release = (): void => {
        signal?.removeEventListener('abort', abandon)
        resolve()
      }
      const abandon = (): void => {
        state.pacing.drop(release)
        release()
      }
      signal?.addEventListener('abort', abandon, { once: true })
      state.pacing.refuse(release, this.#clock.monotonicMs(), kind)?.()
    })
  }

  /** Lets everything that waits go out now: the worker is being drained. */
  releaseAll(): void {
    for (const { pacing, timer } of this.#bots.values()) {
      timer.cancel()
      for (const release of pacing.takeDue(Infinity)) release()
    }
    this.#bots.clear()
  }

  #stateOf(bot: string): PacedBot {
    const known = this.#bots.get(bot)
    if (known !== undefined) return known
    const state: PacedBot = { pacing: new PerBotPacing(), timer: this.#wake(bot, refusalDelayMs) }
    this.#bots.set(bot, state)
    return state
  }

  #wake(bot: string, afterMs: number): Timer {
    return this.#clock.after(afterMs, () => this.#fire(bot))
  }

  #fire(bot: string): void {
    const state = this.#bots.get(bot)
    if (state === undefined) return
    const nowMs = this.#clock.monotonicMs()
    for (const release of state.pacing.takeDue(nowMs)) release()
    const wakeMs = state.pacing.nextDueMs ?? state.pacing.endsMs
    if (wakeMs > nowMs) state.timer = this.#wake(bot, wakeMs - nowMs)
    else this.#bots.delete(bot)
  }
}
