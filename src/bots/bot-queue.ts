/**
 * One queue of one bot with everything around it: its settings, its getUpdates calls and its webhook. A bot
 * has two, the main one and the one of its /test/ namespace.
 */
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { PostboteError } from '../errors.ts'
import { Mutex } from '../kit/mutex.ts'
import { conflictMetrics } from '../metrics.ts'
import { UpdateQueue, type UpdateQueueOptions } from '../queue/update-queue.ts'
import type { AllowedTypes } from '../queue/filter.ts'
import type { PollConflict } from '../queue/poll.ts'
import { type TypeMask, allTypesMask, defaultTypesMask } from '../queue/update-types.ts'
import type { QueueLimits } from '../queue/queue-limits.ts'
import type { WindowBudget } from '../queue/window-budget.ts'
import type { BotRecord, QueueSettings, StoredSigningKey } from '../shard/bot-record.ts'
import { botIdOf, isTestQueue, type QueueId } from '../shard/keys.ts'
import type { Shard } from '../shard/shard.ts'
import type { StoredQueue } from '../shard/stored.ts'
import { settingsAsStored, withAllowedTypes } from './allowed-types.ts'
import { Poller, type PollerOptions } from './poller.ts'
import { RefusalPacer } from './refusal-pacer.ts'
import {
  type SettingsChange,
  WebhookControl,
  type WebhookControlOptions,
  type WebhookReport,
  type WebhookServices,
} from './webhook-control.ts'

export interface BotQueueServices {
  readonly clock: Clock
  readonly random: () => number
  readonly limits: QueueLimits
  readonly budget: WindowBudget
  readonly counters: Counters
  readonly webhooks: WebhookServices
  readonly log?: { debug(details: object, message: string): void }
}

export interface QueueReport {
  readonly mode: 'polling' | 'webhook'
  readonly pendingCount: number
  readonly pendingBytes: number
  readonly nextId: number
  readonly oldestAgeS: number | null
  readonly deadLetterCount: number
  readonly isPollWaiting: boolean
  /** Not the url: bots put their tokens into its path, and passwords before its host. */
  readonly webhookHost: string | null
  readonly lastErrorAtS: number | null
  readonly lastErrorMessage: string | null
  /** By the operator; also while no webhook is set. */
  readonly isPaused: boolean
  readonly webhook: WebhookReport
}

/** The bot a queue belongs to. */
export interface BotIdentity {
  readonly botId: number
  /** Another one after each renewal of its token. */
  readonly record: BotRecord
  /** Its removal has begun: nothing more is accepted for it. */
  readonly isRemoved: boolean
}

export interface BotQueueContext {
  readonly bot: BotIdentity
  readonly shard: Shard
  readonly stored: StoredQueue
  readonly services: BotQueueServices
}

export class BotQueue {
  readonly id: QueueId
  readonly bot: BotIdentity
  readonly shard: Shard
  readonly updates: UpdateQueue
  readonly poller: Poller
  readonly webhook: WebhookControl
  /** Paces refusals of this bot's valid token. */
  readonly pacer: RefusalPacer
  readonly #services: BotQueueServices
  #settings: QueueSettings
  readonly #changes = new Mutex()
  #isClosed = false

  constructor(id: QueueId, context: BotQueueContext) {
    const { bot, shard, stored, services } = context
    this.id = id
    this.bot = bot
    this.shard = shard
    this.#services = services
    // Which types were asked for nobody knows any more: too many of them lose nothing.
    this.#settings = stored.areSettingsLost
      ? { allowedTypes: allTypesMask }
      : settingsAsStored(stored.settings)
    this.pacer = new RefusalPacer(services.clock)
    const parts = new QueueParts(this, services)
    this.updates = new UpdateQueue(parts, stored.state)
    this.poller = new Poller(parts)
    this.webhook = new WebhookControl(parts)
  }

  /** What is pushed now is kept if its type is in here. */
  get allowedTypes(): TypeMask {
    return this.#settings.allowedTypes ?? defaultTypesMask
  }

  get settings(): QueueSettings {
    return this.#settings
  }

  /** New updates are visible. */
  announce(): void {
    this.poller.available()
    this.webhook.available()
  }

  /** Nothing is under way and nobody waits: it can be dropped from memory and read again. */
  get isQuiet(): boolean {
    return (
      this.updates.isQuiet &&
      !this.#changes.isBusy &&
      !this.poller.isWaiting &&
      this.pacer.delayedCount === 0 &&
      this.webhook.isQuiet
    )
  }

  /** Lets go of updates in memory that nobody has asked for of late. */
  releaseUnread(): void {
    if (!this.poller.isWaiting) this.updates.releaseUnread()
  }

  async report(): Promise<QueueReport> {
    const { webhook } = this.#settings
    const info = this.webhook.info()
    const oldestS = await this.updates.oldestAcceptedAtS()
    return {
      mode: webhook === undefined ? 'polling' : 'webhook',
      pendingCount: this.updates.pendingCount,
      pendingBytes: this.updates.pendingBytes,
      nextId: this.updates.nextId,
      oldestAgeS:
        oldestS === undefined
          ? null
          : Math.max(0, Math.floor(this.#services.clock.nowMs() / 1000) - oldestS),
      deadLetterCount: await this.updates.letters.count(),
      isPollWaiting: this.poller.isWaiting,
      webhookHost: webhook === undefined ? null : new URL(webhook.url).host,
      lastErrorAtS: info.lastErrorDateS ?? null,
      lastErrorMessage: info.lastErrorMessage ?? null,
      isPaused: this.#settings.isPaused ?? false,
      webhook: this.webhook.report(),
    }
  }

  /** Deliveries are signed with them from the next on; whatever `change` throws is what this rejects with. */
  changeSigningKeys(
    change: (keys: readonly StoredSigningKey[]) => readonly StoredSigningKey[],
  ): Promise<void> {
    return this.changeSettings(({ signingKeys: before = [], ...rest }) => {
      const signingKeys = change(before)
      return { settings: signingKeys.length === 0 ? rest : { ...rest, signingKeys } }
    })
  }

  /** Ends everything that runs for this queue; what is pending stays pending. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.poller.drain()
    await this.webhook.close()
    await this.#changes.idle()
  }

  /** Persists them where they differ from what is set. */
  setAllowedTypes(types: AllowedTypes): void | Promise<void> {
    const { allowedTypes = 'default' } = this.#settings
    if (types === allowedTypes && !this.#changes.isBusy) return undefined
    return this.changeSettings((settings) => ({ settings: withAllowedTypes(settings, types) }))
  }

  /** One change at a time, each made to what the one before has left; in effect once it is synced. */
  changeSettings(change: SettingsChange): Promise<void> {
    if (this.#isClosed) return Promise.reject(new PostboteError('UNAVAILABLE'))
    return this.#changes.run(() => this.#commitSettings(change))
  }

  async #commitSettings(change: SettingsChange): Promise<void> {
    const { settings, alongside = [] } = await change(this.#settings)
    const operation = { kind: 'settings', queue: this.id, record: settings } as const
    await this.shard.commit([...alongside, operation], { waited: true })
    this.#settings = settings
  }
}

/**
 * What the parts of a queue ask of it and of each other. One object for all of them, with its methods on the class:
 * as closures and objects of options these were 900 bytes for every bot in memory.
 */
class QueueParts implements UpdateQueueOptions, PollerOptions, WebhookControlOptions {
  readonly #of: BotQueue
  readonly #services: BotQueueServices

  constructor(of: BotQueue, services: BotQueueServices) {
    this.#of = of
    this.#services = services
  }

  get id(): QueueId {
    return this.#of.id
  }

  get shard(): Shard {
    return this.#of.shard
  }

  get queue(): UpdateQueue {
    return this.#of.updates
  }

  get pacer(): RefusalPacer {
    return this.#of.pacer
  }

  get clock(): Clock {
    return this.#services.clock
  }

  get random(): () => number {
    return this.#services.random
  }

  get limits(): QueueLimits {
    return this.#services.limits
  }

  get budget(): WindowBudget {
    return this.#services.budget
  }

  get counters(): Counters {
    return this.#services.counters
  }

  get services(): WebhookServices {
    return this.#services.webhooks
  }

  settings(): QueueSettings {
    return this.#of.settings
  }

  changeSettings(change: SettingsChange): Promise<void> {
    return this.#of.changeSettings(change)
  }

  setAllowedTypes(types: AllowedTypes): void | Promise<void> {
    return this.#of.setAllowedTypes(types)
  }

  refused(rule: PollConflict): void {
    const { counters, log } = this.#services
    counters.add('polls_refused', 1)
    counters.add(conflictMetrics[rule], 1)
    const { id } = this.#of
    const bot = `bot${botIdOf(id)}`
    log?.debug({ bot, isTest: isTestQueue(id), rule }, 'a getUpdates call was answered with 409')
  }

  isWebhookActive(): boolean {
    return this.#of.settings.webhook !== undefined
  }

  tokenEndsInMs(): number {
    const endsAtMs = this.#of.bot.record.secrets[1]?.endsAtMs
    if (endsAtMs === undefined) return Infinity
    const leftMs = endsAtMs - this.#services.clock.nowMs()
    return leftMs > 0 ? leftMs : Infinity
  }

  lostByExpiry(count: number): void {
    this.#of.webhook.lostByExpiry(count)
  }

  cancelPoll(): void {
    this.#of.poller.terminate('webhook_set')
  }
}
