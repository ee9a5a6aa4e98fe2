/**
 * Decides when to store what the health of a webhook depends on, so that a later process is not wrong about it: when the
 * webhook begins or ceases to fail, and when the stored failure has become old.
 */
import type { Clock, Timer } from '../../kit/clock.ts'
import type { AttemptLog } from './attempt-log.ts'
import { isFailing } from './health.ts'
import type { WebhookRecord } from '../../shard/records/bot-record.ts'

/**
 * What the health of a webhook depends on is stored when it begins or ceases to fail, this often at most. Chosen: an endpoint
 * that fails and recovers all the time causes few writes.
 */
const healthStoredPeriodMs = 10_000
/**
 * It is stored again if the stored failure is older. Chosen: a third of the time for which a failure makes a webhook
 * degraded, so that it is degraded after a restart, too.
 */
const storedFailureAgeMsMax = 5 * 60_000

export class HealthKeeper {
  readonly #clock: Clock
  readonly #stored: () => WebhookRecord['failures']
  readonly #store: (generation: number) => Promise<void>
  /** When a change may be stored again, monotonic, and what waits for that. */
  #dueMs = 0
  #waiting: { readonly timer: Timer; store(): Promise<void> } | undefined

  /**
   * @param stored - returns what is stored now
   * @param store - stores what the log says; never rejects
   */
  constructor(
    clock: Clock,
    stored: () => WebhookRecord['failures'],
    store: (generation: number) => Promise<void>,
  ) {
    this.#clock = clock
    this.#stored = stored
    this.#store = store
  }

  /**
   * Reports that an attempt has failed, or that the webhook has recovered.
   *
   * @param generation - the configuration of the webhook that this is about
   */
  changed(log: AttemptLog | undefined, generation: number): void {
    const stored = this.#stored()
    if (isFailing(log) !== isFailing({ failuresInRow: stored?.inRow ?? 0 })) {
      this.#keepChange(generation)
      return
    }
    const lastMs = stored?.last.atMs ?? Number.NEGATIVE_INFINITY
    if ((log?.lastErrorMs ?? lastMs) - lastMs > storedFailureAgeMsMax) {
      void this.#store(generation)
    }
  }

  /** Stores what waits for its time. */
  async flush(): Promise<void> {
    this.close()
    await this.#waiting?.store()
  }

  close(): void {
    this.#waiting?.timer.cancel()
  }

  /** The webhook has begun or ceased to fail. */
  #keepChange(generation: number): void {
    if (this.#waiting !== undefined) return
    const clock = this.#clock
    const store = (): Promise<void> => {
      this.#waiting = undefined
      this.#dueMs = clock.monotonicMs() + healthStoredPeriodMs
      return this.#store(generation)
    }
    const waitMs = this.#dueMs - clock.monotonicMs()
    if (waitMs <= 0) void store()
    else this.#waiting = { store, timer: clock.after(waitMs, () => void store()) }
  }
}
