/** The life of a worker's application (worker.ts draws it), from the opening of its shards to the end. */
import { keysShard } from '../shard/records/access-key-record.ts'
import type { PrivateApiOptions } from './private-api.ts'
import type { WorkerKeys } from '../access/worker-keys.ts'
import type { TokenRefusals } from '../admission/token-refusals.ts'
import type { Modules } from '../kit/modules.ts'
import { drainMs } from '../kit/limits.ts'
import type { StoreSpace } from '../store/store-engine.ts'
import {
  type DepartureOptions,
  leave,
  type OpenResponsesView,
  settle,
} from '../worker/departure.ts'
import type { EndingSoon } from '../features/server/ending-soon.ts'
import type { LoopDelay } from '../process/loop-delay.ts'
import type { MetricSlot } from '../process/shared-memory/metric-slot.ts'
import type { RequestRouter } from '../links/forward/request-router.ts'
import type { ShardOpening } from '../process/shard-assignment.ts'
import type { Shard } from '../shard/shard.ts'
import type { ShardChecker } from '../worker/shard-checker.ts'
import type { WorkerModule } from '../worker/module.ts'
import { ShardSet, type ShardSetOptions } from '../worker/shard-set.ts'
import type { SpanExporter } from '../features/tracing/span-exporter.ts'
import type { UpstreamServices } from '../bot-api/upstream-services.ts'
import type { WorkerEvents } from '../features/events/worker-events.ts'
import type { WebhookFactory } from '../worker/webhook-factory.ts'
import { WebhookStarter } from '../delivery/webhook-starter.ts'

/** What the private API sends or receives for as long as its clients like. */
export type WorkerStreams = Pick<
  PrivateApiOptions,
  'streams' | 'peerStreams' | 'recordStreams' | 'eventStreams'
>

/** Returns the streams of a worker that has just started. */
export function noStreams(): WorkerStreams {
  return {
    streams: new Set(),
    peerStreams: new Set(),
    recordStreams: new Set(),
    eventStreams: new Set(),
  }
}

type Made =
  | 'counters'
  | 'isBrief'
  | 'isUnderWay'
  | 'onCommitted'
  | 'onLeft'
  | 'onServed'
  | 'report'
  | 'streamsOf'

export interface WorkerLifeCycleOptions extends Omit<ShardSetOptions, Made> {
  readonly slot: MetricSlot
  readonly events: WorkerEvents
  readonly router: RequestRouter
  /** Undefined if nothing limits the room for records. */
  readonly space: StoreSpace | undefined
  readonly webhooks: WebhookFactory
  /** Sends spans; undefined if there are none. */
  readonly exporter: SpanExporter | undefined
  /** Thread pools that work for requests. */
  readonly pools: readonly { close(): Promise<void> }[]
  readonly pacing: TokenRefusals
  /** Background tasks that work on the shards. */
  readonly sweepers: readonly { close(): void }[]
  readonly modules: Modules<WorkerModule>
  readonly keys: WorkerKeys
  /** Begins to follow the keys; resolves soon (worker-keys.ts). */
  readonly startKeys: () => Promise<void>
  readonly checker: ShardChecker
  readonly loopDelay: LoopDelay
  readonly endingSoon: EndingSoon
  readonly streams: WorkerStreams
  readonly upstream: UpstreamServices | undefined
}

/** A worker that ends waits this long for the delivery of an event. Chosen: below `leaveDeliveriesMs`; the next process sends it again. */
const eventDrainMs = 1_000

export class WorkerLifeCycle {
  readonly #options: WorkerLifeCycleOptions
  readonly #shards: ShardSet
  readonly #webhookStarter: WebhookStarter
  readonly #departure: DepartureOptions
  #closing: Promise<void> | undefined

  constructor(options: WorkerLifeCycleOptions) {
    const { bots, clock, events, router, slot, streams } = options
    this.#options = options
    this.#webhookStarter = new WebhookStarter(bots, options)
    this.#shards = new ShardSet({
      ...options,
      counters: slot,
      report: events.report,
      streamsOf: (shard) =>
        [...streams.peerStreams, ...streams.recordStreams].filter(
          (stream) => stream.shard === shard,
        ),
      // The pairs of a stream that have no ids when the shard is closed are left to its next owner.
      isUnderWay: (response, shard) =>
        router.shardOf(response.req) === shard &&
        !router.mayLast(response.req) &&
        router.isUnderWay(response),
      isBrief: (response) => router.isBrief(response),
      onCommitted: (shard, operations) => void options.modules.each('committed', shard, operations),
      onServed: (shard) => {
        this.#served(shard)
        // Last, because requests that were held for the shard begin now.
        router.noteServed(shard.index)
      },
      onLeft: (shard) => {
        this.#webhookStarter.forget(shard)
        options.modules.each('left', shard)
      },
    })
    this.#departure = {
      clock,
      bots,
      isUnderWay: (response) => router.isUnderWay(response),
      isBrief: (response) => router.isBrief(response),
      streams: () => Object.values(streams).flatMap((set) => [...set]),
      toSettling: () => router.toSettling(),
      toElsewhere: () => {
        router.toElsewhere()
        this.#endBackground()
      },
      closeShards: () => this.#closeShards(),
    }
  }

  async open(openings: readonly ShardOpening[]): Promise<readonly number[]> {
    const { events, webhooks } = this.#options
    const open = await this.#shards.open(openings)
    events.deliver(webhooks.sender)
    await this.#options.startKeys()
    return open
  }

  /** Whether requests for a shard are answered here. */
  serves(shard: number): boolean {
    return this.#shards.serves(shard)
  }

  async openShard(opening: ShardOpening): Promise<void> {
    await this.#shards.of(opening.shard).open(opening)
  }

  async leaveShard(shard: number, responses: OpenResponsesView): Promise<void> {
    await this.#shards.of(shard).leave(responses)
  }

  async dropShard(shard: number): Promise<void> {
    await this.#shards.of(shard).drop()
  }

  databaseIsAt(database: number, server: string): void {
    this.#options.engine.shared?.databaseIsAt(database, server)
  }

  async settle(responses: OpenResponsesView): Promise<void> {
    await settle(this.#departure, responses)
    await this.#options.events.stopDelivery(eventDrainMs)
  }

  leave(responses: OpenResponsesView): Promise<void> {
    return leave(this.#departure, responses)
  }

  async finish(): Promise<void> {
    await this.#endStreams()
    await this.#options.upstream?.replies.settled()
  }

  async drain(): Promise<void> {
    const { bots, events, upstream } = this.#options
    this.#endBackground()
    await Promise.all([bots.drain(drainMs), events.stopDelivery(eventDrainMs), this.#endStreams()])
    // The last deliveries may have been answered with replies.
    await upstream?.replies.settled()
  }

  async close(): Promise<void> {
    const { pools, loopDelay, endingSoon, keys, modules, upstream, exporter } = this.#options
    // The shards do not wait for an endpoint that hangs.
    const spansSent = exporter?.close()
    keys.sync.close()
    keys.registry.close()
    await keys.audit.writer.close()
    await Promise.all([
      ...pools.map((pool) => pool.close()),
      upstream?.close(),
      ...modules.each('close'),
    ])
    loopDelay.close()
    endingSoon.close()
    await this.#closeShards()
    await Promise.all([this.#options.events.close(), spansSent])
  }

  /** Ends what works on the shards by itself, and what waits before it is refused. */
  #endBackground(): void {
    for (const sweeper of this.#options.sweepers) sweeper.close()
    this.#options.modules.each('stop')
    this.#options.pacing.releaseAll()
  }

  /** Ends exports, streams of events, and the producers' own streams; streams of other workers end with those of their producers. */
  async #endStreams(): Promise<void> {
    const { recordStreams, eventStreams, streams } = this.#options.streams
    for (const stream of [...recordStreams, ...eventStreams]) stream.stop()
    await Promise.all(Array.from(streams, (stream) => stream.end()))
  }

  #served(shard: Shard): void {
    const { keys, modules } = this.#options
    this.#webhookStarter.start(shard)
    modules.each('served', shard)
    if (shard.index !== keysShard) return
    // They may have been changed by the worker that had the shard before.
    keys.registry.reset()
    keys.audit.trail.reset()
    void keys.sync.refresh()
  }

  #closeShards(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { events, webhooks, space, slot, checker } = this.#options
    this.#webhookStarter.close()
    checker.close()
    await events.stopDelivery(0)
    await webhooks.close()
    space?.close()
    await this.#shards.close()
    // The process holds no shards any more, though it may go on with its connections.
    slot.clearGauges()
  }
}
