/**
 * One queue of one bot with everything around it: its settings, its getUpdates calls and its webhook. A bot
 * has two, the main one and the one of its /test/ namespace.
 */
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { PostboteError } from '../errors.ts'
import { UpdateQueue } from '../queue/update-queue.ts'
import { type TypeMask, defaultTypesMask } from '../queue/update-types.ts'
import type { QueueLimits } from '../queue/queue-limits.ts'
import type { WindowBudget } from '../queue/window-budget.ts'
import type { BotRecord, QueueSettings, StoredSigningKey } from '../store/bot-record.ts'
import type { QueueId } from '../store/keys.ts'
import type { Shard } from '../store/shard.ts'
import type { StoredQueue } from '../store/stored.ts'
import { Poller } from './poller.ts'
import { RefusalPacer } from './refusal-pacer.ts'
import {
  type SettingsChange,
  WebhookControl,
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
  readonly record: BotRecord
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
  readonly updates: UpdateQueue
  readonly poller: Poller
  readonly webhook: WebhookControl
  /** Paces refusals of this bot's valid token. */
  readonly pacer: RefusalPacer
  readonly #shard: Shard
  readonly #services: BotQueueServices
  #settings: QueueSettings
  #settling: Promise<void> = Promise.resolve()
  #changesUnderWay = 0
  #isClosed = false

  constructor(id: QueueId, context: BotQueueContext) {
    const { bot, shard, stored, services } = context
    const { clock, random, limits, budget, counters } = services
    this.id = id
    this.bot = bot
    this.#shard = shard
    this.#services = services
    this.#settings = stored.settings
    this.pacer = new RefusalPacer(clock)
    const isWebhookActive = (): boolean => this.#settings.webhook !== undefined
    const lostByExpiry = (count: number): void => this.webhook.lostByExpiry(count)
    // Not spread: every such object would have a hidden class of its own, 340 bytes a queue.
    this.updates = new UpdateQueue(
      { id, shard, clock, random, limits, budget, counters, isWebhookActive, lostByExpiry },
      stored.state,
    )
    this.poller = new Poller({
      queue: this.updates,
      clock,
      counters,
      pacer: this.pacer,
      isWebhookActive,
      setAllowedTypes: (types) => this.#setAllowedTypes(types),
    })
    this.webhook = new WebhookControl({
      id,
      queue: this.updates,
      services: services.webhooks,
      clock,
      settings: () => this.#settings,
      changeSettings: (change) => this.#changeSettings(change),
      cancelPoll: () => this.poller.terminate('POLL_TERMINATED_BY_WEBHOOK'),
    })
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
      this.#changesUnderWay === 0 &&
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
    return this.#changeSettings(({ signingKeys: before = [], ...rest }) => {
      const signingKeys = change(before)
      return { settings: signingKeys.length === 0 ? rest : { ...rest, signingKeys } }
    })
  }

  /** Ends everything that runs for this queue; what is pending stays pending. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.poller.drain()
    await this.webhook.close()
    await this.#settling
  }

  #setAllowedTypes(types: TypeMask): void | Promise<void> {
    if (types === this.allowedTypes && this.#changesUnderWay === 0) return undefined
    return this.#changeSettings((settings) => ({
      settings: { ...settings, allowedTypes: types },
    }))
  }

  /** One change at a time, each made to what the one before has left; in effect once it is synced. */
  #changeSettings(change: SettingsChange): Promise<void> {
    if (this.#isClosed) return Promise.reject(new PostboteError('UNAVAILABLE'))
    this.#changesUnderWay += 1
    const changed = this.#settling.then(() => this.#commitSettings(change))
    const settle = (): void => {
      this.#changesUnderWay -= 1
    }
    this.#settling = changed.then(settle, settle)
    return changed
  }

  async #commitSettings(change: SettingsChange): Promise<void> {
    const { settings, alongside = [] } = await change(this.#settings)
    const operation = { kind: 'settings', queue: this.id, record: settings } as const
    await this.#shard.commit([...alongside, operation], { waited: true })
    this.#settings = settings
  }
}
