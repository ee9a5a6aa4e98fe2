import { UpdateQueue } from '../../../src/queue/update-queue.ts'
import { noRetention, type Retention } from '../../../src/queue/kept/left-update.ts'
import type { QueueLimits } from '../../../src/queue/queue-limits.ts'
import { WindowBudget } from '../../../src/queue/window/window.ts'
import { MemoryStore } from '../store/memory-store.ts'
import type { PushOperation } from '../../../src/shard/operations.ts'
import type { Store } from '../../../src/store/store.ts'
import { FakeClock } from '../kit/fake-clock.ts'
import { ShardLife, TestCounters, whileTimePasses } from '../store/shard-life.ts'

export interface QueueLifeOptions {
  readonly store?: Store
  readonly windowBytes?: number
  readonly limits?: Partial<QueueLimits>
  readonly random?: () => number
}

/** One queue with a separate shard. */
export class QueueLife {
  readonly id = 123_456
  readonly clock = new FakeClock()
  readonly store: Store
  readonly budget: WindowBudget
  readonly counters = new TestCounters()
  readonly #options: QueueLifeOptions
  isWebhookActive = false
  lostByExpiry = 0
  retention: Retention = noRetention
  life: ShardLife
  queue!: UpdateQueue

  private constructor(options: QueueLifeOptions) {
    this.#options = options
    this.store = options.store ?? new MemoryStore()
    this.budget = new WindowBudget(options.windowBytes ?? 1_000_000)
    this.life = new ShardLife(this.store, this.clock)
  }

  static async open(options: QueueLifeOptions = {}): Promise<QueueLife> {
    const life = new QueueLife(options)
    await life.life.shard.open()
    await life.load()
    // As after a poll of the bot: what is pushed from now on stays in memory.
    await life.queue.page(1)
    return life
  }

  /** Reads the queue from the current shard. */
  async load(): Promise<void> {
    const [stored] = await this.life.shard.load([this.id])
    this.queue = new UpdateQueue(
      {
        id: this.id,
        shard: this.life.shard,
        clock: this.clock,
        random: this.#options.random ?? (() => 0.5),
        limits: {
          updateBytesMax: 1_000,
          pendingUpdatesMax: 100_000,
          pendingBytesMax: 100_000_000,
          ...this.#options.limits,
        },
        budget: this.budget,
        counters: this.counters,
        retention: () => this.retention,
        isWebhookActive: () => this.isWebhookActive,
        lostByExpiry: (count) => {
          this.lostByExpiry += count
        },
        levels: { note: () => undefined },
        deadLettersAdded: () => undefined,
      },
      stored!.state,
    )
    const { queue } = this
    this.life.onCommitted = (operations) => {
      for (const operation of operations) {
        if (operation.kind === 'push') queue.committed(operation)
      }
    }
  }

  /** Drops the queue from memory and reads it again, as for an idle bot. */
  async reload(): Promise<void> {
    await this.clock.advance(50)
    this.queue.detach()
    this.life.shard.forget(this.id)
    await this.load()
  }

  /** Allocates an id without committing anything. */
  accept(text = '"message":{}', ttlS = 86_400, orderingKey = 'k'): PushOperation {
    return this.queue.push({
      typeNumber: 0,
      orderingKey,
      expiresAtS: Math.round(this.clock.nowMs() / 1000) + ttlS,
      text: Buffer.from(text),
    })
  }

  /** Pushes `count` updates, waits until they are synced, and returns their ids. */
  async push(count = 1, ttlS = 86_400): Promise<number[]> {
    const operations = Array.from({ length: count }, () => this.accept('"message":{}', ttlS))
    await this.life.shard.commit(operations, { waited: true })
    return operations.map(({ updateId }) => updateId)
  }

  async pageIds(limit = 100): Promise<number[]> {
    const entries = await this.queue.page(limit)
    return entries.map(({ updateId }) => updateId)
  }

  async wait<T>(given: T | Promise<T>): Promise<T> {
    return given instanceof Promise ? whileTimePasses(this.clock, given) : given
  }
}
