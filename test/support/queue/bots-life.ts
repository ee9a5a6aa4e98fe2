import assert from 'node:assert/strict'
import { Fleet } from '../../../src/features/fleet/fleet.ts'
import { BotFinder } from '../../../src/bots/bot-finder.ts'
import { fleetHooks } from '../../../src/features/fleet/module.ts'
import type { QueueTimes } from '../../../src/features/fleet/queue-times.ts'
import { BotRegistry } from '../../../src/bots/registry.ts'
import type { NewOperatorEvent } from '../../../src/kit/operator-event.ts'
import type { PushOutcome, PushReceipt } from '../../../src/bots/push-receipt.ts'
import type {
  DispatcherRequest,
  WebhookDispatcher,
  WebhookServices,
} from '../../../src/delivery/webhook-services.ts'
import { readToken } from '../../../src/api/token.ts'
import { PostboteError } from '../../../src/kit/errors.ts'
import type { BotQueue, BotQueueServices } from '../../../src/bots/bot-queue.ts'
import { QueueLevels, type QueueLimits } from '../../../src/queue/queue-limits.ts'
import type { Retention } from '../../../src/queue/kept/left-update.ts'
import { WindowBudget } from '../../../src/queue/window/window.ts'
import type { RelayServices } from '../../../src/features/relay/origin.ts'
import { Modules } from '../../../src/kit/modules.ts'
import { lookBackHooks } from '../../../src/features/look-back/module.ts'
import { ReplayJobs } from '../../../src/features/look-back/replay-jobs.ts'
import { PortalFrame } from '../../../src/access/portal-frame.ts'
import { portalHooks } from '../../../src/features/portal/module.ts'
import { PortalLinks } from '../../../src/features/portal/portal-links.ts'
import { relayHooks } from '../../../src/features/relay/module.ts'
import { RelayJobs } from '../../../src/features/relay/relay-jobs.ts'
import type { WorkerModule } from '../../../src/worker/module.ts'
import { FakeRefusedUpdates } from './fake-relays.ts'
import { MemoryStore } from '../store/memory-store.ts'
import type { Shard } from '../../../src/shard/shard.ts'
import type { Store } from '../../../src/store/store.ts'
import { AttemptLogs } from '../../../src/delivery/attempts/attempt-logs.ts'
import { type Span, Tracer } from '../../../src/kit/tracing/tracer.ts'
import type { DispatcherInfo } from '../../../src/delivery/dispatcher.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import type { RetryNow } from '../../../src/delivery/state.ts'
import type { Polls, Waiting } from '../../../src/delivery/attempts/health.ts'
import type { EndpointCheck } from '../../../src/delivery/endpoint-check.ts'
import { AddressBook } from '../../../src/delivery/endpoint/known-addresses.ts'
import type { Verified } from '../../../src/delivery/endpoint/verify.ts'
import { silentLog } from '../kit/silent-log.ts'
import { FakeClock } from '../kit/fake-clock.ts'
import { allOf, noOptions, type PushRequest, rowsOf } from './pushed-rows.ts'
import { ShardLife, TestCounters, whileTimePasses } from '../store/shard-life.ts'

/** What is known of the polls of a queue in the moment of the start. */
export const neverPolled: Polls = { isWaiting: false, lastBeforeMs: undefined, knownForMs: 0 }

/** A dispatcher that delivers nothing and records what it is asked to do. */
export class FakeDispatcher implements WebhookDispatcher {
  readonly request: DispatcherRequest
  readonly calls: string[] = []
  told: Partial<DispatcherInfo> = {}
  toldKeys: readonly string[] = []
  toldWaiting: Waiting = {
    parkedKeys: 0,
    nextAttemptMs: undefined,
    unansweredMs: undefined,
    endpointPerSecond: undefined,
  }

  constructor(request: DispatcherRequest) {
    this.request = request
  }

  start(afterId: number): void {
    this.calls.push(`start ${afterId}`)
  }

  wake(): void {
    if (this.calls.at(-1) !== 'wake') this.calls.push('wake')
  }

  close(): Promise<void> {
    this.calls.push('stop')
    return Promise.resolve()
  }

  drain(deadlineMs: number): Promise<void> {
    this.calls.push(`drain ${deadlineMs}`)
    return Promise.resolve()
  }

  pauseDeliveries(deadlineMs: number): Promise<void> {
    this.calls.push(`rest ${deadlineMs}`)
    return Promise.resolve()
  }

  info(): DispatcherInfo {
    return { ipAddress: undefined, activeConnections: 0, lastSuccessMs: undefined, ...this.told }
  }

  change(settings: Parameters<WebhookDispatcher['change']>[0]): void {
    this.calls.push(`change ${JSON.stringify(settings)}`)
  }

  pause(): void {
    this.calls.push('pause')
  }

  resume(): void {
    this.calls.push('resume')
  }

  lookUpAgain(): void {
    this.calls.push('look up again')
  }

  retry({ orderingKeys, isPastRetryAfter }: RetryNow): number {
    const keys = orderingKeys?.join(' ') ?? 'all'
    this.calls.push(`retry ${keys}${isPastRetryAfter ? ' past Retry-After' : ''}`)
    return 1
  }

  waiting(): Waiting {
    return this.toldWaiting
  }

  waitsFor(): undefined {
    return undefined
  }

  parkedKeys(): Iterable<string> {
    return this.toldKeys
  }
}

/** Verifications succeed immediately, unless a test holds or refuses them. */
export class FakeWebhooks implements WebhookServices {
  readonly dispatchers: FakeDispatcher[] = []
  readonly verified: string[] = []
  readonly attempts = new AttemptLogs()
  readonly addresses = new AddressBook()
  /** The addresses that a verification finds; the first is the address that worked. */
  found: readonly [string, ...string[]] = ['192.0.2.1']
  readonly held: { succeed(): void; fail(reason: string): void }[] = []
  /** The value of `--max-webhook-connections`. */
  connectionsMax = 100
  isHolding = false
  isRefusing = false

  parseEndpoint(url: string): ReturnType<typeof parseEndpoint> {
    return parseEndpoint(url, { local: false })
  }

  async verify(request: Parameters<WebhookServices['verify']>[0]): Promise<Verified> {
    const { url } = request.webhook
    this.verified.push(url)
    if (this.isRefusing) throw new PostboteError('BAD_WEBHOOK', { detail: 'Connection refused' })
    const verified = { address: this.found[0], addresses: this.found }
    if (!this.isHolding) return verified
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        reject(new PostboteError('BAD_WEBHOOK', { detail: reason }))
      }
      this.held.push({ succeed: () => resolve(verified), fail })
      request.signal.addEventListener('abort', () => fail('Connection aborted'))
    })
  }

  /** The checks that are under way. */
  readonly checks: { end(check: EndpointCheck): void }[] = []

  check({ signal }: Parameters<WebhookServices['check']>[0]): Promise<EndpointCheck> {
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
      this.checks.push({ end: resolve })
    })
  }

  requestOf(): ReturnType<WebhookServices['requestOf']> {
    return { method: 'POST', host: 'example.com', headers: [] }
  }

  createDispatcher(request: DispatcherRequest): FakeDispatcher {
    const dispatcher = new FakeDispatcher(request)
    this.dispatchers.push(dispatcher)
    return dispatcher
  }

  get last(): FakeDispatcher {
    return this.dispatchers.at(-1)!
  }
}

export interface BotsLifeOptions {
  readonly shards?: number
  readonly store?: (shard: number) => Store
  readonly clock?: FakeClock
  readonly idempotencyKeysPerDayMax?: number
  /** The value of `--max-webhook-connections`. */
  readonly connectionsMax?: number
  /** Numbers of shards that are set aside. */
  readonly aside?: readonly number[]
  /** How much queues keep of updates that have left. */
  readonly retention?: Retention
  /** The value of `--foreign-tokens`. */
  readonly takesForeignTokens?: boolean
  readonly log?: BotQueueServices['log']
  /** What relays have; absent without them. */
  readonly relays?: RelayServices
  /** What the fleet keeps over a restart. */
  readonly times?: Pick<QueueTimes, 'read' | 'write'>
  /** Those that are not the usual ones of these tests. */
  readonly limits?: Partial<QueueLimits>
}

/** A registry with shards in memory. Bot N is on shard N modulo their number. */
export class BotsLife {
  /** The spans of updates that were pushed with a place in a trace. */
  readonly spans: Span[] = []
  readonly clock: FakeClock
  readonly counters = new TestCounters()
  readonly webhooks = new FakeWebhooks()
  /** The events that were reported. */
  readonly events: NewOperatorEvent[] = []
  readonly modules = new Modules<WorkerModule>()
  readonly registry: BotRegistry
  readonly fleet: Fleet
  readonly finder: BotFinder
  readonly relays: RelayJobs
  readonly replays: ReplayJobs
  readonly portalLinks: PortalLinks
  readonly lives: ShardLife[] = []
  readonly refused = new FakeRefusedUpdates()
  /** Whether the disk of a shard is nearly full. */
  isDiskLow = (_shard: number): boolean => false
  /** Whether `--filter` includes a bot. */
  isServed = (_botId: number): boolean => true

  private constructor(shards: number, clock: FakeClock, options: BotsLifeOptions) {
    this.clock = clock
    const { retention } = options
    const usual = { updateBytesMax: 1_000, pendingUpdatesMax: 5, pendingBytesMax: 10_000 }
    const limits = { ...usual, ...options.limits }
    const report = (event: NewOperatorEvent): void => void this.events.push(event)
    this.registry = new BotRegistry(
      {
        clock,
        shardOf: (botId) => botId % shards,
        isDiskLow: (shard) => this.isDiskLow(shard),
        isServed: (botId) => this.isServed(botId),
        services: {
          clock,
          random: () => 0.5,
          counters: this.counters,
          budget: new WindowBudget(1_000_000),
          limits,
          retention,
          levels: new QueueLevels(limits, clock, report),
          report,
          webhooks: this.webhooks,
          tracer: new Tracer((span) => void this.spans.push(span)),
          ...(options.takesForeignTokens === true ? { takesForeignTokens: true } : {}),
          ...(options.log === undefined ? {} : { log: options.log }),
        },
      },
      this.modules,
    )
    this.relays = new RelayJobs({
      clock,
      counters: this.counters,
      log: silentLog,
      random: () => 0.5,
      report,
      registry: this.registry,
      relays: options.relays,
      refused: this.refused,
    })
    this.replays = new ReplayJobs({
      clock,
      counters: this.counters,
      log: options.log,
      findQueue: (queue) => this.registry.bots.findQueue(queue),
      assertAccepting: (queue) => this.registry.assertAccepting(queue),
    })
    this.portalLinks = new PortalLinks(clock, this.registry.bots, (botId, change) =>
      this.registry.changeRecord(botId, change),
    )
    this.fleet = new Fleet(
      {
        clock,
        counters: this.counters,
        log: { ...silentLog, ...options.log },
        report,
        attempts: this.webhooks.attempts,
        modules: this.modules,
        bots: this.registry.bots,
        config: { foreignTokens: options.takesForeignTokens === true },
      },
      options.times,
    )
    // Without relays, tests that ask about all bots start the fleet.
    const unstarted = options.relays === undefined ? { served: () => undefined } : {}
    this.finder = new BotFinder(clock, this.modules)
    const portal = { url: undefined, frame: new PortalFrame('key') }
    this.modules.list.push(
      portalHooks(this.portalLinks, { bots: this.registry, clock, portal }),
      relayHooks(this.relays, this.registry),
      { ...fleetHooks(this.fleet), ...unstarted },
      lookBackHooks(this.replays, this.registry),
      {
        served: (shard) => this.finder.served(shard),
        left: (shard) => this.finder.left(shard),
        ...unstarted,
      },
    )
  }

  static async open(options: BotsLifeOptions = {}): Promise<BotsLife> {
    const { shards = 1, store = () => new MemoryStore(), clock = new FakeClock() } = options
    const bots = new BotsLife(shards, clock, options)
    bots.webhooks.connectionsMax = options.connectionsMax ?? bots.webhooks.connectionsMax
    for (let index = 0; index < shards; index++) {
      if (options.aside?.includes(index) === true) bots.registry.bots.setAside(index)
      else await bots.addShard(index, store(index), options.idempotencyKeysPerDayMax)
    }
    return bots
  }

  /** Starts the fleet, as a worker starts it with each shard. */
  startFleet(shards: readonly Shard[] = this.lives.map(({ shard }) => shard)): void {
    for (const shard of shards) {
      this.fleet.start(shard)
      this.finder.served(shard)
    }
  }

  async addShard(index: number, store: Store, keysPerDayMax?: number): Promise<void> {
    const life = new ShardLife(store, this.clock, keysPerDayMax)
    Object.defineProperty(life.shard, 'index', { value: index })
    life.onCommitted = (operations) => {
      this.modules.each('committed', life.shard, operations)
      this.registry.bots.committed(operations)
    }
    life.onReset = () => void this.resetShard(life.shard)
    await life.shard.open()
    this.registry.bots.addShard(life.shard)
    this.modules.each('served', life.shard)
    this.lives.push(life)
  }

  /** Drops a shard with its bots, as when another node takes it over. */
  async dropShard(index: number): Promise<void> {
    const shard = this.registry.bots.shardAt(index)
    this.modules.each('left', shard)
    await this.registry.bots.removeShard(shard)
    await this.wait(shard.close())
  }

  async resetShard(shard: Shard): Promise<void> {
    const reset = this.registry.bots.resetShard(shard)
    this.modules.each('served', shard)
    await reset
    await this.registry.bots.startWebhooks(shard)
  }

  async close(): Promise<void> {
    await this.wait(Promise.all(this.lives.map(({ shard }) => shard.close())))
  }

  async register(botId: number): Promise<string> {
    const { token } = await this.registry.register({ botId, firstName: 'A', username: 'a_bot' })
    return token
  }

  /** Returns a registered bot's queue, as a request with its token finds it. */
  async queueOf(token: string, isTest = false): Promise<BotQueue> {
    return this.registry.authorize(readToken(token), isTest)
  }

  request(botId: number, more: Partial<PushRequest> = {}): PushRequest {
    return { botId, update: Buffer.from('{"message":{}}'), ...noOptions, ...more }
  }

  /** Begins to push. */
  receipt(requests: readonly PushRequest[], hasLeft?: (botId: number) => boolean): PushReceipt {
    const rows = rowsOf(requests)
    return this.registry.push(rows, allOf(rows), hasLeft)
  }

  /** Returns the results of a push, with errors as their codes. */
  async push(...requests: PushRequest[]): Promise<(string | number)[]> {
    const results = await this.receipt(requests).results
    return results.map((result) => codeOf(result))
  }

  wait<T>(given: Promise<T>): Promise<T> {
    return whileTimePasses(this.clock, given)
  }
}

/** A bot in memory, with its main queue. */
export interface OneBot {
  readonly bots: BotsLife
  readonly token: string
  readonly queue: BotQueue
}

/** Opens a registry with the bot 100. */
export async function openOneBot(store: Store = new MemoryStore()): Promise<OneBot> {
  const bots = await BotsLife.open({ store: () => store })
  const token = await bots.register(100)
  return { bots, token, queue: await bots.queueOf(token) }
}

/** Sets the webhook of a queue, which accepts messages. */
export async function setWebhook(queue: BotQueue, url = 'https://example.com/a'): Promise<void> {
  const webhook = { url, maxConnections: 40 }
  const description = await queue.webhook.set({ webhook, allowedTypes: 1, dropsPending: false })
  assert.equal(description, 'Webhook was set')
}

export function codeOf(result: PushOutcome): string | number {
  if (result instanceof PostboteError) return result.code
  return typeof result === 'object' ? `duplicate of ${result.duplicateOf}` : result
}
