/**
 * Starts the webhooks of opened shards, and tries again until all of a shard could be read: a table that cannot be read
 * now, or a lack of descriptors, must not keep webhooks silent until the next start.
 *
 * It starts one shard after the other: together they would do in one turn of the event loop what each spreads over many.
 */
import type { Timer } from '../kit/clock.ts'
import { Mutex } from '../kit/mutex.ts'
import type { Shard } from '../shard/shard.ts'
import type { Surroundings } from '../kit/surroundings.ts'

/** All bots of a worker. */
export interface WebhookBots {
  /** Starts those of a shard. Rejects if not all of them could be read. */
  startWebhooks(shard: Shard): Promise<void>
}

interface Retry {
  readonly timer: Timer
  readonly delayMs: number
}

/** Webhooks of a shard that could not be read are started again after this time, which doubles after each failure. */
const webhookStartRetryMsMin = 1_000
/** The time between these attempts grows to this: each attempt reads all webhooks of the shard. */
const webhookStartRetryMsMax = 300_000

export class WebhookStarter {
  readonly #bots: WebhookBots
  readonly #surroundings: Pick<Surroundings, 'clock' | 'log'>
  readonly #retries = new Map<Shard, Retry>()
  readonly #forgotten = new WeakSet<Shard>()
  /** Shards start one after the other. */
  readonly #starts = new Mutex()
  #isStopped = false

  constructor(bots: WebhookBots, surroundings: Pick<Surroundings, 'clock' | 'log'>) {
    this.#bots = bots
    this.#surroundings = surroundings
  }

  /** Call this when the shard is open, and when it was read anew. */
  start(shard: Shard): void {
    this.#retries.get(shard)?.timer.cancel()
    this.#retries.delete(shard)
    this.#begin(shard, webhookStartRetryMsMin)
  }

  /** The shard has left this worker. */
  forget(shard: Shard): void {
    this.#forgotten.add(shard)
    this.#retries.get(shard)?.timer.cancel()
    this.#retries.delete(shard)
  }

  /** Starts no more webhooks. */
  close(): void {
    this.#isStopped = true
    for (const { timer } of this.#retries.values()) timer.cancel()
    this.#retries.clear()
  }

  #begin(shard: Shard, nextDelayMs: number): void {
    void this.#starts.run(() => this.#startOne(shard, nextDelayMs))
  }

  async #startOne(shard: Shard, delayMs: number): Promise<void> {
    if (this.#isStopped || this.#forgotten.has(shard)) return
    const { clock, log } = this.#surroundings
    try {
      await this.#bots.startWebhooks(shard)
    } catch (error) {
      log.error(
        { shard: shard.index, error: describe(error), retryMs: delayMs },
        'some webhooks could not be started and are tried again',
      )
      if (this.#isStopped || this.#forgotten.has(shard)) return
      const timer = clock.after(delayMs, () => {
        this.#retries.delete(shard)
        this.#begin(shard, Math.min(delayMs * 2, webhookStartRetryMsMax))
      })
      this.#retries.get(shard)?.timer.cancel()
      this.#retries.set(shard, { timer, delayMs })
    }
  }
}

/** The error with its cause, which has the message of the database. */
function describe(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error ? `${String(error)} (${cause.message})` : String(error)
}
