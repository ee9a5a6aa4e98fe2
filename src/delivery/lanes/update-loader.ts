/**
 * Reads pending updates from a queue into a `DeliveryState`, page by page as far as the state asks for them. One read is in
 * progress at a time. A failed read, or one that was of no use, is repeated after a pause.
 */
import type { Clock, Timer } from '../../kit/clock.ts'
import type { DeliverySource, PendingUpdate } from '../delivery-source.ts'
import type { DeliveryState } from '../state.ts'

export interface UpdateLoaderOptions {
  readonly source: Pick<DeliverySource, 'pendingAfter'>
  readonly clock: Clock
  state(): DeliveryState
  /** Returns whether what is read is still of use. */
  isActive(): boolean
  /** Called when a read has ended after `read` has returned: call `read` again. */
  loaded(): void
}

/** This many pages are read in one turn of the event loop if the queue has them in memory; then other work runs. */
const webhookPagesPerTurn = 8
/**
 * The dispatcher pauses this long after a page without a usable update, which took about 1 ms: 100,000 updates of one key
 * are passed in 2 s.
 */
const webhookFruitlessReadPauseMs = 3
/**
 * A queue whose shard cannot be read is read again after this time, as often as a poisoned shard tests its disk
 * (`shardProbePeriodMs`).
 */
const webhookReadRetryMs = 1_000

export class UpdateLoader {
  readonly #options: UpdateLoaderOptions
  #isReading = false
  #retry: Timer | undefined

  constructor(options: UpdateLoaderOptions) {
    this.#options = options
  }

  /** Reads what the state asks for, unless a read is in progress. */
  read(): void {
    const { source, clock } = this.#options
    const state = this.#options.state()
    for (let pages = 0; !this.#isReading; pages++) {
      if (pages === webhookPagesPerTurn) {
        this.#isReading = true
        clock.soon(() => this.#end(undefined))
        return
      }
      const afterId = state.nextRead()
      if (afterId === undefined) return
      const page = source.pendingAfter(afterId, state.readLimit)
      if (page instanceof Promise) {
        this.#isReading = true
        page.then(
          (updates) => this.#end(updates),
          // The store reports its failures itself; this only tries to read again.
          () => this.#readLater(webhookReadRetryMs),
        )
        return
      }
      state.loaded(page)
    }
  }

  close(): void {
    this.#retry?.cancel()
  }

  #readLater(delayMs: number): void {
    if (!this.#options.isActive()) return
    this.#retry = this.#options.clock.after(delayMs, () => this.#end(undefined))
  }

  #end(updates: readonly PendingUpdate[] | undefined): void {
    this.#isReading = false
    if (!this.#options.isActive()) return
    if (updates !== undefined) this.#takeIn(updates)
    this.#options.loaded()
  }

  /**
   * If a page was of no use, the next read waits a little. A deep queue of few keys may yield many such pages, and other
   * bots need their turns in between.
   */
  #takeIn(updates: readonly PendingUpdate[]): void {
    const state = this.#options.state()
    const before = state.loadedUpdates
    state.loaded(updates)
    if (updates.length === 0 || state.loadedUpdates !== before) return
    this.#isReading = true
    this.#readLater(webhookFruitlessReadPauseMs)
  }
}
