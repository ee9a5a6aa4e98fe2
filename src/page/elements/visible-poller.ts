/**
 * Repeats a piece of work while the page is visible: at once when it becomes visible, and then a pause after each end, or a short one
 * after a failure of the server.
 * A page in the background asks the server nothing.
 */
import type { BrowserClock } from './browser-clock.ts'

/** The part of `document` that tells whether somebody sees the page. */
export interface Visibility {
  readonly hidden: boolean
  addEventListener(name: 'visibilitychange', listener: () => void): void
  removeEventListener(name: 'visibilitychange', listener: () => void): void
}

export interface VisiblePollerOptions {
  readonly clock: BrowserClock
  readonly visibility: Visibility
  readonly pauseMs: number
  /** Handles its own failures, and resolves to `later` unless it should be repeated soon. */
  work(): Promise<'soon' | 'later'>
}

/** Chosen: a worker that starts answers within seconds, and nobody should wait for what it says any longer. */
const soonMs = 1_000

/** Runs from its creation until `close`. */
export class VisiblePoller {
  readonly #options: VisiblePollerOptions
  readonly #changed = (): void => this.#wake()
  #cancel: (() => void) | undefined
  #isWorking = false
  /** Whether what is in progress may have begun too early. */
  #isHurried = false
  #isClosed = false

  constructor(options: VisiblePollerOptions) {
    this.#options = options
    options.visibility.addEventListener('visibilitychange', this.#changed)
    this.#wake()
  }

  /** Works now instead of at the end of the pause, or once more if it works: what it reads may be old. */
  hurry(): void {
    this.#isHurried = this.#isWorking
    this.#wake()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
    this.#options.visibility.removeEventListener('visibilitychange', this.#changed)
  }

  #wake(): void {
    if (this.#isWorking || this.#isClosed || this.#options.visibility.hidden) return
    this.#cancel?.()
    this.#isWorking = true
    void this.#work()
  }

  async #work(): Promise<void> {
    const { clock, pauseMs } = this.#options
    const next = await this.#options.work()
    this.#isWorking = false
    if (this.#isClosed) return
    const isHurried = this.#isHurried
    this.#isHurried = false
    const nextMs = next === 'later' ? pauseMs : Math.min(pauseMs, soonMs)
    this.#cancel = clock.after(isHurried ? 0 : nextMs, this.#changed)
  }
}
