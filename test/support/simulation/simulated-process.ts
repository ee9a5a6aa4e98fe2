/**
 * One process of the server as far as it concerns one bot: the real `WebhookControl`, verification and dispatcher on a
 * simulated queue, network and disk. It ends with a drain, as at a restart, or with a crash, after which only the disk
 * remains.
 */
import type { SettingsChange } from '../../../src/bots/settings-change.ts'
import { WebhookControl } from '../../../src/bots/webhook-control.ts'
import { PostboteError } from '../../../src/kit/errors.ts'
import type { UpdateQueue } from '../../../src/queue/update-queue.ts'
import { defaultTypesMask } from '../../../src/kit/update-types.ts'
import type { QueueSettings, WebhookRecord } from '../../../src/shard/records/bot-record.ts'
import { endlessLease } from '../../../src/kit/lease.ts'
import { AttemptLogs } from '../../../src/delivery/attempts/attempt-logs.ts'
import { parseEndpoint } from '../../../src/delivery/endpoint/endpoint.ts'
import { AddressBook } from '../../../src/delivery/endpoint/known-addresses.ts'
import { verifyEndpoint } from '../../../src/delivery/endpoint/verify.ts'
import { DispatcherWatch, type ProcessParts } from './dispatcher-watch.ts'
import { ProcessClock } from './event-clock.ts'
import { SimulatedNetwork } from './simulated-network.ts'
import { SimulatedQueue } from './simulated-queue.ts'
import { drawMs } from './weather.ts'
import { updateBytesMax, type World } from './world.ts'

const verifyTimeoutMs = 4_500
const expectedCodes: ReadonlySet<string> = new Set([
  'BAD_WEBHOOK',
  'TOO_MANY_REQUESTS',
  'WEBHOOK_SUPERSEDED',
  'UNAVAILABLE',
])

export class SimulatedProcess implements ProcessParts {
  readonly world: World
  readonly clock: ProcessClock
  readonly network: SimulatedNetwork
  readonly queue: SimulatedQueue
  /** Watches the latest dispatcher. */
  watch: DispatcherWatch | undefined
  readonly #control: WebhookControl
  #settings: QueueSettings
  #settling: Promise<void> = Promise.resolve()
  #changes = 0
  isDraining = false
  /** Calls of setWebhook and deleteWebhook in progress. */
  calls = 0

  constructor(world: World) {
    this.world = world
    this.clock = new ProcessClock(world.clock)
    this.network = new SimulatedNetwork(world, this.clock)
    this.queue = new SimulatedQueue(world.stored, this.clock)
    this.#settings = world.settings
    const { clock, network } = this
    this.#control = new WebhookControl({
      id: 1,
      lease: endlessLease,
      queue: this.queue as unknown as UpdateQueue,
      shard: { commit: async () => undefined },
      clock,
      ofBot: () => ({}),
      settings: () => this.#settings,
      changeSettings: (change) => this.#changeSettings(change),
      cancelPoll: () => undefined,
      services: {
        attempts: new AttemptLogs(),
        addresses: new AddressBook(),
        connectionsMax: 100,
        parseEndpoint: (url) => parseEndpoint(url, { local: false }),
        verify: ({ endpoint, webhook, signal }) =>
          verifyEndpoint({
            endpoint,
            ipAddress: webhook.ipAddress,
            network,
            clock,
            timeoutMs: verifyTimeoutMs,
            signal,
          }),
        check: () => Promise.reject(new Error('nobody checks here')),
        requestOf: () => ({ method: 'POST', host: 'example.com', headers: [] }),
        createDispatcher: (request) => {
          const watch = new DispatcherWatch(this, request)
          this.watch = watch
          return watch
        },
      },
    })
    world.log(() => 'boot')
    this.#control.available()
  }

  get hasWebhook(): boolean {
    return this.#settings.webhook !== undefined
  }

  get isPaused(): boolean {
    return this.#settings.isPaused === true
  }

  get isReplacing(): boolean {
    return this.#changes > 0
  }

  get goneSinceMs(): number | undefined {
    return this.#settings.webhook?.goneSinceMs
  }

  whyNotSend(watch: DispatcherWatch): string | undefined {
    const { webhook, isPaused } = this.#settings
    const { url, maxConnections } = watch.request.webhook
    if (watch !== this.watch) return 'there is a newer dispatcher'
    if (this.isDraining) return 'the server is about to stop'
    if (webhook === undefined) return 'there is no webhook'
    if (isPaused === true) return 'it is paused'
    const isCurrent = webhook.url === url && webhook.maxConnections === maxConnections
    return isCurrent ? undefined : 'the webhook was replaced'
  }

  push(orderingKey: string, ttlS: number): void {
    const { stored, clock, luck } = this.world
    const textBytes = luck.int(1, updateBytesMax)
    stored.push(orderingKey, Math.floor(clock.wallMs() / 1_000) + ttlS, textBytes)
  }

  /** Reports that pushed updates are synced. */
  announce(): void {
    this.#control.available()
  }

  set(webhook: WebhookRecord, dropsPending: boolean): void {
    this.world.log(() => `setWebhook ${JSON.stringify(webhook)} drop ${dropsPending}`)
    const request = { webhook, allowedTypes: defaultTypesMask, dropsPending }
    this.#follow(this.#control.set(request))
  }

  delete(dropsPending: boolean): void {
    this.world.log(() => `deleteWebhook drop ${dropsPending}`)
    this.#follow(this.#control.delete(dropsPending))
  }

  setPaused(isPaused: boolean): void {
    this.world.log(() => (isPaused ? 'pause' : 'resume'))
    this.#follow(this.#control.setPaused(isPaused).then(() => `paused: ${isPaused}`))
  }

  /** Works like `BotQueue.setDeliveryLimit`. */
  setLimit(perSecond: number | undefined): void {
    this.world.log(() => `limit ${perSecond}`)
    const changed = this.#changeSettings(({ deliveriesPerSecond: _before, ...rest }) => ({
      settings: perSecond === undefined ? rest : { ...rest, deliveriesPerSecond: perSecond },
    }))
    this.#follow(
      changed.then(() => {
        this.#control.available()
        return `limited: ${perSecond}`
      }),
    )
  }

  /** Shuts down as for a restart. Resolves when nothing of the process is left. */
  async shutDown(): Promise<void> {
    this.world.log(() => 'shut down')
    this.isDraining = true
    await this.#control.drain(10_000)
    await this.close()
  }

  async close(): Promise<void> {
    this.isDraining = true
    await this.#control.close()
    await this.#settling
    this.queue.detach()
  }

  crash(): void {
    this.world.log(() => 'crash')
    this.clock.kill()
    this.queue.detach()
    this.watch?.crash()
    this.world.stored.crash()
  }

  checkClosed(): void {
    const { ledger } = this.world
    const left = {
      timers: this.clock.timers,
      openings: this.network.pending,
      connections: this.watch?.counted ?? 0,
    }
    if (Object.values(left).some((count) => count !== 0)) {
      ledger.fail(`left behind by a closed process: ${JSON.stringify(left)}`)
    }
  }

  checkAnswered(): void {
    if (this.calls > 0) this.world.ledger.fail(`${this.calls} calls were never answered`)
  }

  #follow(call: Promise<string>): void {
    this.calls++
    call.then(
      (description) => {
        this.calls--
        this.world.log(() => description)
        return undefined
      },
      (error: unknown) => {
        this.calls--
        this.world.log(() => String(error))
        const isExpected = error instanceof PostboteError && expectedCodes.has(error.code)
        if (!isExpected) this.world.ledger.fail(`a call ends with ${String(error)}`)
      },
    )
  }

  /** Works like `BotQueue`: one change at a time, in effect once it is on disk. */
  #changeSettings(change: SettingsChange): Promise<void> {
    if (this.queue.isDetached) return Promise.reject(new PostboteError('UNAVAILABLE'))
    this.#changes++
    const changed = this.#settling.then(() => this.#commitSettings(change))
    const settle = (): void => {
      this.#changes--
    }
    this.#settling = changed.then(settle, settle)
    return changed
  }

  async #commitSettings(change: SettingsChange): Promise<void> {
    const { settings } = await change(this.#settings)
    await new Promise<void>((resolve) => {
      this.clock.fromOutside(drawMs(this.world.luck, 4), resolve)
    })
    this.#settings = settings
    this.world.settings = settings
    const nowMs = this.world.clock.monotonicMs()
    this.world.limit.setTo(settings.deliveriesPerSecond, nowMs)
    this.world.openingsLimit.setTo(settings.deliveriesPerSecond, nowMs)
    this.world.log(() => `settings ${JSON.stringify(settings)}`)
  }
}
