/** The life of a worker's application (worker.ts draws it), from the opening of its shards to the end. */
import type { EventRoutesOptions } from '../private-api/event-routes.ts'
import type { IngestRoutesOptions } from '../private-api/ingest-routes.ts'
import { calledOperation } from '../operations/operation-of.ts'
import { updateOperations } from '../operations/update-operations.ts'
import { keysShard } from '../private-api/key-routes.ts'
import type { WorkerKeys } from '../private-api/private-api.ts'
import type { RecordRoutesOptions } from '../private-api/record-routes.ts'
import type { TokenRefusals } from '../bot-api/token-refusals.ts'
import type { Fleet } from '../bots/fleet.ts'
import { eventDrainMs } from './limits.ts'
import { drainMs } from '../limits.ts'
import type { StoreSpace } from '../store/store-engine.ts'
import { Departure, type OpenResponsesView } from '../cluster/worker/departure.ts'
import type { LoopDelay } from './loop-delay.ts'
import type { MetricSlot } from '../cluster/shared-memory/metric-slot.ts'
import type { RequestRouter } from '../cluster/forward/request-router.ts'
import type { DatabaseClocks } from './database-clocks.ts'
import type { DatabaseLeases } from './database-leases.ts'
import type { ShardOpening } from '../cluster/shard-assignment.ts'
import type { Shard } from '../shard/shard.ts'
import { ClaimedShards } from './claimed-shards.ts'
import { ShardSet, type ShardSetOptions } from './shard-set.ts'
import type { UpstreamServices } from './upstream-services.ts'
import type { WorkerEvents } from './worker-events.ts'
import type { WebhookFactory } from './webhook-factory.ts'
import { WebhookStarter } from './webhook-starter.ts'

/** What the private API sends or receives for as long as its clients like. */
export type WorkerStreams = Pick<IngestRoutesOptions, 'streams' | 'peerStreams'> &
  Pick<RecordRoutesOptions, 'recordStreams'> &
  Pick<EventRoutesOptions, 'eventStreams'>

/** Returns the streams of a worker that has just started. */
export function noStreams(): WorkerStreams {
  return {
    streams: new Set(),
    peerStreams: new Set(),
    recordStreams: new Set(),
    eventStreams: new Set(),
  }
}

export interface WorkerLifeOptions
  extends Omit<ShardSetOptions, 'boot' | 'counters' | 'files' | 'lease' | 'onServed' | 'report'> {
  readonly slot: MetricSlot
  readonly events: WorkerEvents
  readonly router: RequestRouter
  /** Undefined if nothing limits the room for records. */
  readonly disk: StoreSpace | undefined
  readonly webhooks: WebhookFactory
  /** Thread pools that work for requests. */
  readonly pools: readonly { close(): Promise<void> }[]
  readonly pacing: TokenRefusals
  /** Background tasks that work on the shards. */
  readonly sweepers: readonly { close(): void }[]
  readonly fleet: Fleet
  readonly keys: WorkerKeys
  /** Begins to follow the keys; resolves soon (worker-keys.ts). */
  readonly startKeys: () => Promise<void>
  readonly loopDelay: LoopDelay
  readonly leases: DatabaseLeases
  readonly clocks: DatabaseClocks
  readonly streams: WorkerStreams
  readonly upstream: UpstreamServices | undefined
}

export class WorkerLife {
  readonly #options: WorkerLifeOptions
  readonly #departure: Departure
  /** Its own shards on this machine, or those that it has in a database. */
  readonly #shards: ShardSet | ClaimedShards
  readonly #webhookStarter: WebhookStarter
  #closing: Promise<void> | undefined

  constructor(options: WorkerLifeOptions) {
    this.#options = options
    this.#webhookStarter = new WebhookStarter(options)
    const { engine, events, router, slot, streams } = options
    const common = {
      ...options,
      counters: slot,
      report: events.report,
      onServed: (shard: Shard) => this.#served(shard),
    }
    this.#shards =
      engine.files === undefined
        ? new ClaimedShards({
            ...common,
            ...streams,
            onLeft: (shard) => this.#left(shard),
            // The pairs of a stream that have no ids when the shard is closed are left to its next owner.
            isUnderWay: (response, shard) =>
              router.shardOf(response.req) === shard &&
              calledOperation(response.req) !== updateOperations.pushUpdates &&
              router.isUnderWay(response),
          })
        : new ShardSet({ ...common, files: engine.files })
    this.#departure = new Departure({
      ...options,
      streams: Object.values(options.streams),
      closeShards: () => this.#closeShards(),
    })
  }

  async open(openings: readonly ShardOpening[]): Promise<readonly number[]> {
    const { events, webhooks } = this.#options
    const open = await this.#shards.open(openings)
    events.deliver((target, source) => webhooks.createEventDispatcher(target, source))
    await this.#options.startKeys()
    return open
  }

  /** Whether requests for a shard are answered here. */
  serves(shard: number): boolean {
    return !(this.#shards instanceof ClaimedShards) || this.#shards.serves(shard)
  }

  openShard(opening: ShardOpening): Promise<void> {
    return this.#claimed.openOne(opening)
  }

  leaveShard(shard: number, responses: OpenResponsesView): Promise<void> {
    return this.#claimed.leave(shard, responses)
  }

  dropShard(shard: number): Promise<void> {
    return this.#claimed.drop(shard)
  }

  databaseIsAt(database: number, server: string): void {
    this.#options.engine.databaseIsAt?.(database, server)
  }

  async settle(responses: OpenResponsesView): Promise<void> {
    await this.#departure.settle(responses)
    await this.#options.events.stopDelivery(eventDrainMs)
  }

  leave(responses: OpenResponsesView): Promise<void> {
    return this.#departure.leave(responses)
  }

  async finish(): Promise<void> {
    await this.#endStreams()
    await this.#options.upstream?.replies.settled()
  }

  async drain(): Promise<void> {
    const { sweepers, pacing, bots, events, upstream } = this.#options
    for (const sweeper of sweepers) sweeper.close()
    pacing.releaseAll()
    await Promise.all([bots.drain(drainMs), events.stopDelivery(eventDrainMs), this.#endStreams()])
    // The last deliveries may have been answered with replies.
    await upstream?.replies.settled()
  }

  async close(): Promise<void> {
    const { pools, loopDelay, keys, upstream } = this.#options
    keys.sync.close()
    keys.registry.close()
    await Promise.all([...pools.map((pool) => pool.close()), upstream?.close()])
    loopDelay.close()
    await this.#closeShards()
    await this.#options.events.close()
  }

  /** Ends exports, streams of events, and the producers' own streams; streams of other workers end with those of their producers. */
  async #endStreams(): Promise<void> {
    const { recordStreams, eventStreams, streams } = this.#options.streams
    for (const stream of [...recordStreams, ...eventStreams]) stream.stop()
    await Promise.all(Array.from(streams, (stream) => stream.end()))
  }

  #served(shard: Shard): void {
    this.#webhookStarter.start(shard)
    this.#options.fleet.start(shard)
    if (shard.index === keysShard) this.#takeKeys()
  }

  /** They may have been changed by the worker that had the shard before. */
  #takeKeys(): void {
    const { registry, sync } = this.#options.keys
    registry.reset()
    void sync.refresh()
  }

  #left(shard: Shard): void {
    this.#webhookStarter.forget(shard)
    this.#options.fleet.forget(shard)
  }

  get #claimed(): ClaimedShards {
    if (this.#shards instanceof ClaimedShards) return this.#shards
    throw new Error('the shards of a data directory stay with their worker')
  }

  #closeShards(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { events, webhooks, disk, slot, checker } = this.#options
    this.#webhookStarter.close()
    checker.close()
    await events.stopDelivery(0)
    await webhooks.close()
    disk?.close()
    await this.#shards.close()
    // The process holds no shards any more, though it may go on with its connections.
    slot.clearGauges()
  }
}
