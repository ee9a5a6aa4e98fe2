/** The life of a worker's application (worker.ts draws it), from the opening of its shards to the end. */
import type { IngestRoutesOptions } from '../../admin/ingest-routes.ts'
import type { RefusalPacing } from '../../http/refusal-pacing.ts'
import { drainMs } from '../../limits.ts'
import type { DiskSpace } from '../../store/disk-space.ts'
import type { Shard } from '../../store/shard.ts'
import { Departure, type OpenAnswersView } from './departure.ts'
import type { LoopDelay } from './loop-delay.ts'
import type { MetricSlot } from '../shared-memory/metric-slot.ts'
import type { RequestRouter } from '../forward/request-router.ts'
import { openShards, type ShardOpenerOptions } from './shard-opener.ts'
import type { UpstreamServices } from './upstream-services.ts'
import type { WebhookFactory } from './webhook-factory.ts'

export interface WorkerLifeOptions extends Omit<ShardOpenerOptions, 'counters'> {
  readonly slot: MetricSlot
  readonly router: RequestRouter
  readonly disk: DiskSpace
  readonly webhooks: WebhookFactory
  /** Threads that work for requests. */
  readonly pools: readonly { close(): Promise<void> }[]
  readonly pacing: RefusalPacing
  /** They work in the shards. */
  readonly sweepers: readonly { stop(): void }[]
  readonly loopDelay: LoopDelay
  readonly streams: Pick<IngestRoutesOptions, 'streams' | 'peerStreams'>
  readonly upstream: UpstreamServices | undefined
}

export class WorkerLife {
  readonly #options: WorkerLifeOptions
  readonly #departure: Departure
  #shards: readonly Shard[] = []
  #closing: Promise<void> | undefined

  constructor(options: WorkerLifeOptions) {
    this.#options = options
    this.#departure = new Departure({
      ...options,
      streams: Object.values(options.streams),
      closeShards: () => this.#closeShards(),
    })
  }

  async open(): Promise<void> {
    const { slot } = this.#options
    this.#shards = await openShards({ ...this.#options, counters: slot })
    void this.#startWebhooks()
  }

  /** Shard after shard: together they would do in one turn what each spreads over many. */
  async #startWebhooks(): Promise<void> {
    const { registry, log } = this.#options
    for (const shard of this.#shards) {
      try {
        await registry.startWebhooks(shard)
      } catch (error) {
        log.error({ shard: shard.index, error: String(error) }, 'the webhooks could not be started')
      }
    }
  }

  settle(answers: OpenAnswersView): Promise<void> {
    return this.#departure.settle(answers)
  }

  leave(answers: OpenAnswersView): Promise<void> {
    return this.#departure.leave(answers)
  }

  async finish(): Promise<void> {
    await this.#endStreams()
    await this.#options.upstream?.replies.settled()
  }

  async drain(): Promise<void> {
    const { sweepers, pacing, registry, upstream } = this.#options
    for (const sweeper of sweepers) sweeper.stop()
    pacing.releaseAll()
    await Promise.all([registry.drain(drainMs), this.#endStreams()])
    // The last deliveries may have been answered with one.
    await upstream?.replies.settled()
  }

  async close(): Promise<void> {
    const { pools, loopDelay, upstream } = this.#options
    await Promise.all([...pools.map((pool) => pool.close()), upstream?.close()])
    loopDelay.stop()
    await this.#closeShards()
  }

  /** Streams of other workers end with their producers'. */
  async #endStreams(): Promise<void> {
    await Promise.all(Array.from(this.#options.streams.streams, (stream) => stream.end()))
  }

  #closeShards(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { webhooks, disk, slot } = this.#options
    await webhooks.close()
    disk.stop()
    await Promise.all(this.#shards.map((shard) => shard.close()))
    // Nothing is held any more, though this process may go on with its connections.
    slot.clearGauges()
  }
}
