/**
 * One queue of one bot with its settings, its getUpdates calls and its webhook. A bot has two queues: the main
 * queue and the /test/ queue.
 */
import type { Clock } from '../kit/clock.ts'
import type { Lease } from '../kit/lease.ts'
import { PostboteError } from '../kit/errors.ts'
import type { NewOperatorEvent, ReportEvent } from '../kit/operator-event.ts'
import { Mutex } from '../kit/mutex.ts'
import { conflictMetrics } from '../kit/metrics.ts'
import { dropKept } from '../queue/kept/drop-kept.ts'
import { UpdateQueue, type UpdateQueueOptions } from '../queue/update-queue.ts'
import type { AllowedTypes } from '../queue/allowed-updates.ts'
import type { PollConflict } from '../queue/poll.ts'
import { type TypeMask, allTypes, defaultTypesMask } from '../kit/update-types.ts'
import type { QueueLevels, QueueLimits } from '../queue/queue-limits.ts'
import {
  longestRetention,
  type OwnRetention,
  type Retention,
  retentionOf,
} from '../queue/kept/left-update.ts'
import type { WindowBudget } from '../queue/window/window.ts'
import type {
  BotRecord,
  BotSettings,
  QueueSettings,
  StoredSigningKey,
} from '../shard/records/bot-record.ts'
import { botIdOf, isTestQueue, type QueueId } from '../shard/records/record-keys.ts'
import type { Shard } from '../shard/shard.ts'
import type { StoredQueue } from '../shard/records/stored-records.ts'
import type { Counters, Log } from '../kit/surroundings.ts'
import type { Tracer } from '../kit/tracing/tracer.ts'
import {
  type ClientPresence,
  Poller,
  type PollerOptions,
  type PollReply,
  type PollRequest,
} from './poller.ts'
import { type PollActivities, PollActivity, type PolledMinutes } from './poll-activity.ts'
import { type QueueTail, QueueTails } from './queue-tails.ts'
import { type NoteSubject, QueueNotes } from '../delivery/queue-notes.ts'
import { RefusalPacer } from '../admission/refusal-pacer.ts'
import { hostOfWebhook } from '../http/webhook-url.ts'
import { type SettingsChange, settingsAsStored, withAllowedTypes } from './settings-change.ts'
import { WebhookControl, type WebhookControlOptions } from './webhook-control.ts'
import type { WebhookFacts, WebhookReport } from '../delivery/webhook-report.ts'
import type { WebhookServices } from '../delivery/webhook-services.ts'

/** What all queues of a shard share. The clock is that of the shard. */
export interface BotQueueServices
  extends Pick<
    UpdateQueueOptions,
    'clock' | 'counters' | 'random' | 'limits' | 'levels' | 'budget' | 'tracer'
  > {
  /** How long updates that have left are kept, unless the queue has a retention of its own. */
  readonly retention?: Retention | undefined
  readonly webhooks: WebhookServices
  /** The value of `--foreign-tokens`: whether bots may have tokens that another server has made. */
  readonly takesForeignTokens?: boolean
  readonly report: ReportEvent
  readonly log?: Pick<Log, 'debug' | 'warn' | 'error'>
  /** Returns a queue as it is in memory now; undefined if its bot is gone. */
  readonly findQueue?: (id: QueueId) => Promise<BotQueue | undefined>
  /** What is known of polls, also of bots that are not in memory. */
  readonly polls?: PollActivities
  /** Called when a bot wants other types than before. */
  readonly onAllowedTypes?: (queue: BotQueue) => void
}

/** The state of a queue, as the private API shows it. */
export interface QueueReport {
  readonly mode: 'polling' | 'webhook'
  readonly pendingCount: number
  readonly pendingBytes: number
  readonly nextId: number
  readonly oldestAgeS: number | null
  readonly deadLetterCount: number
  /** Whether a getUpdates call waits. */
  readonly isPollWaiting: boolean
  /** Undefined with a webhook. */
  readonly polling: PollingReport | undefined
  /** The host only, because bots put their tokens into the path of the url, and passwords before the host. */
  readonly webhookHost: string | null
  readonly lastErrorAtS: number | null
  readonly lastErrorMessage: string | null
  /** Whether the operator has paused the queue. This may be the case without a webhook, too. */
  readonly isPaused: boolean
  /** The operator's limit. It may be set without a webhook, too. */
  readonly deliveriesPerSecond: number | null
  readonly webhook: WebhookReport
}

/** What is known of the getUpdates calls of a queue. */
export interface PollingReport {
  /** When the last one began, or ended if it has waited, wall time; undefined if none is known. */
  readonly lastPollMs: number | undefined
  /** Undefined if none is known since the worker was started. */
  readonly activity: PollActivity | undefined
  /** In each minute of the last hour. */
  readonly lastHour: PolledMinutes
}

/** The bot that a queue belongs to. */
export interface BotIdentity {
  readonly botId: number
  /** Replaced when the token is renewed. */
  readonly record: BotRecord
  /** Whether the removal of the bot has begun, so that nothing more is accepted for it. */
  readonly isRemoved: boolean
}

/** What one queue is created from. */
export interface BotQueueContext {
  readonly bot: BotIdentity
  readonly shard: Shard
  readonly stored: StoredQueue
  readonly services: BotQueueServices
}

/** One queue of one bot. It connects the stored updates, the polls and the webhook, which share its settings. */
export class BotQueue {
  readonly id: QueueId
  readonly bot: BotIdentity
  readonly shard: Shard
  readonly updates: UpdateQueue
  readonly poller: Poller
  readonly webhook: WebhookControl
  /** Paces the refusals of calls with this bot's valid token. */
  readonly pacer: RefusalPacer
  /** What the bot gets wrong in silence. */
  readonly notes = new QueueNotes()
  readonly #services: BotQueueServices
  #settings: QueueSettings
  readonly #changes = new Mutex()
  /** Undefined if nobody has watched this queue. */
  #tails: QueueTails | undefined
  #isDraining = false
  #isClosed = false

  /** Starts nothing. */
  constructor(id: QueueId, context: BotQueueContext) {
    const { bot, shard, stored, services } = context
    this.id = id
    this.bot = bot
    this.shard = shard
    this.#services = services
    this.#settings = stored.areSettingsLost
      ? settingsInPlace(shard.kept.of(id).count > 0)
      : settingsAsStored(stored.settings)
    this.pacer = new RefusalPacer(services.clock)
    const parts = new QueueParts(this, services)
    this.updates = new UpdateQueue(parts, stored.state)
    this.poller = new Poller(parts)
    this.webhook = new WebhookControl(parts, stored.attempts)
  }

  /** The update types that are stored when they are pushed; others are filtered. */
  get allowedTypes(): TypeMask {
    return this.#settings.allowedTypes ?? defaultTypesMask
  }

  get clock(): Clock {
    return this.#services.clock
  }

  /** How much is kept of updates that have left. */
  get retention(): Retention {
    return retentionOf(this.#settings, this.#services.retention)
  }

  /** The settings in effect, which are those on disk. */
  get settings(): QueueSettings {
    return this.#settings
  }

  /** Notes what a call of the bot gets wrong, or that it is right, for the health and for a debug line. */
  note(about: NoteSubject, text: string | undefined): void {
    if (!this.notes.set(about, text) || text === undefined) return
    const { id } = this
    const bot = `bot${botIdOf(id)}`
    this.#services.log?.debug({ bot, isTest: isTestQueue(id) }, text)
  }

  /** Returns how many updates polls got and confirmed in each minute of the last hour, the present minute last. */
  polledMinutes(): PolledMinutes {
    return (this.poller.activity ?? unpolled).lastHour(this.#services.clock.nowMs())
  }

  /** Notifies polls and the webhook that new updates are visible. */
  announce(): void {
    this.poller.available()
    this.webhook.available()
  }

  /** Whether nothing is in progress and no call waits, so that the queue may be dropped from memory and read again. */
  get isQuiet(): boolean {
    return (
      this.updates.isQuiet &&
      !this.#changes.isBusy &&
      !this.poller.isWaiting &&
      this.pacer.delayedCount === 0 &&
      this.webhook.isQuiet &&
      this.#tails?.isEmpty !== false
    )
  }

  /** Releases updates from memory that have not been read for some time. */
  releaseUnread(): void {
    if (!this.poller.isWaiting) this.updates.releaseUnread()
  }

  /**
   * Returns the state of the queue.
   *
   * @param seen - what others know of the queue
   * @throws STORE_UNAVAILABLE if updates or dead letters that are only on disk cannot be read.
   */
  async report(seen: Pick<WebhookFacts, 'lateness' | 'polls' | 'troubles'>): Promise<QueueReport> {
    const { webhook } = this.#settings
    const info = this.webhook.info()
    const oldestS = await this.updates.oldestAcceptedAtS()
    const nowS = Math.floor(this.#services.clock.nowMs() / 1000)
    const oldestAgeS = oldestS === undefined ? undefined : Math.max(0, nowS - oldestS)
    return {
      mode: webhook === undefined ? 'polling' : 'webhook',
      pendingCount: this.updates.pendingCount,
      pendingBytes: this.updates.pendingBytes,
      nextId: this.updates.nextId,
      oldestAgeS: oldestAgeS ?? null,
      deadLetterCount: await this.updates.deadLetters.count(),
      isPollWaiting: this.poller.isWaiting,
      polling: webhook === undefined ? this.#polling(seen.polls) : undefined,
      webhookHost: webhook === undefined ? null : hostOfWebhook(webhook.url),
      lastErrorAtS: info.lastErrorDateS ?? null,
      lastErrorMessage: info.lastErrorMessage ?? null,
      isPaused: this.#settings.isPaused ?? false,
      deliveriesPerSecond: this.#settings.deliveriesPerSecond ?? null,
      webhook: this.webhook.report({ ...seen, oldestAgeS, notes: this.notes.texts }),
    }
  }

  #polling({ lastBeforeMs }: WebhookFacts['polls']): PollingReport {
    const { clock } = this.#services
    const lastPollMs = lastBeforeMs === undefined ? undefined : clock.nowMs() - lastBeforeMs
    return { lastPollMs, activity: this.poller.activity, lastHour: this.polledMinutes() }
  }

  /**
   * Removes one update, pending, kept or dead. Its ordering key is tried at once, if it waited for a retry.
   *
   * @throws UNKNOWN_UPDATE, UPDATE_IN_DELIVERY, STORE_UNAVAILABLE or OUTCOME_UNKNOWN.
   */
  async dropUpdate(updateId: number): Promise<void> {
    const pending = await this.updates.dropOne(updateId)
    if (pending !== undefined) {
      this.webhook.retry([pending.orderingKey])
      return
    }
    if (await dropKept(this.shard, this.id, updateId)) return
    if (!(await this.updates.deadLetters.remove(updateId))) {
      throw new PostboteError('UNKNOWN_UPDATE', { detail: `${updateId}` })
    }
  }

  /**
   * Changes the signing keys. The next delivery is signed with the new ones.
   *
   * @param change - Returns the new keys for the stored ones.
   * @throws As `changeSettings`.
   */
  changeSigningKeys(
    change: (keys: readonly StoredSigningKey[]) => readonly StoredSigningKey[],
  ): Promise<void> {
    return this.changeSettings(({ signingKeys: before = [], ...rest }) => {
      const signingKeys = change(before)
      return { settings: signingKeys.length === 0 ? rest : { ...rest, signingKeys } }
    })
  }

  /**
   * Sets or removes the limit of deliveries per second.
   *
   * @param deliveriesPerSecond - A number above 0; null for no limit.
   * @throws As `changeSettings`.
   */
  async setDeliveryLimit(deliveriesPerSecond: number | null): Promise<void> {
    await this.changeSettings(({ deliveriesPerSecond: _before, ...rest }) => ({
      settings: deliveriesPerSecond === null ? rest : { ...rest, deliveriesPerSecond },
    }))
    // The dispatcher takes over the limit when it is woken.
    this.webhook.available()
  }

  /**
   * Sets how much is kept of updates that have left.
   *
   * @param own - what does not follow the server's options.
   * @throws As `changeSettings`.
   */
  setRetention(own: OwnRetention): Promise<void> {
    return this.changeSettings(({ retention: _before, ...rest }) => ({
      settings:
        own.ms === undefined && own.bytes === undefined ? rest : { ...rest, retention: own },
    }))
  }

  /**
   * Shows a tail the updates that are pushed and confirmed from now on. The queue stays in memory meanwhile.
   *
   * @param tail - is ended when the queue leaves this process; immediately, if it is about to
   */
  watch(tail: QueueTail): void {
    if (this.#isDraining) {
      tail.end()
      return
    }
    this.#tails ??= new QueueTails()
    this.#tails.add(tail)
    this.updates.watchedBy(this.#tails)
  }

  /** Shows a tail nothing more. */
  unwatch(tail: QueueTail): void {
    this.#tails?.remove(tail)
    if (this.#tails?.isEmpty !== false) this.updates.watchedBy(undefined)
  }

  /** Ends what waits for updates: polls, with an empty list, and tails. From now on nothing waits. */
  drain(): void {
    this.#isDraining = true
    this.poller.drain()
    this.#tails?.end()
  }

  /** Ends polls, deliveries and changes of settings. Pending updates stay pending. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.drain()
    await this.webhook.close()
    await this.#changes.idle()
  }

  /**
   * Stores the update types that the bot wants, if they differ from the current ones.
   *
   * @param types - The mask of the types, or `default`.
   * @returns A promise only if something is written; it rejects as `changeSettings` does.
   */
  setAllowedTypes(types: AllowedTypes): void | Promise<void> {
    const { allowedTypes = 'default' } = this.#settings
    if (types === allowedTypes && !this.#changes.isBusy) return undefined
    return this.changeSettings((settings) => ({ settings: withAllowedTypes(settings, types) }))
  }

  /**
   * Changes the settings. Changes run one at a time, each based on the result of the previous one.
   *
   * @param change - Returns the new settings for the current ones, and operations to commit in the same group.
   * @returns Resolves when the change is synced and in effect.
   * @throws UNAVAILABLE after `close`, STORE_UNAVAILABLE if the change cannot be written, and whatever `change` throws.
   */
  changeSettings(change: SettingsChange): Promise<void> {
    if (this.#isClosed) return Promise.reject(new PostboteError('UNAVAILABLE'))
    return this.#changes.run(() => this.#commitSettings(change))
  }

  async #commitSettings(change: SettingsChange): Promise<void> {
    const { settings, alongside = [] } = await change(this.#settings)
    const operation = { kind: 'settings', queue: this.id, record: settings } as const
    await this.shard.commit([...alongside, operation], { waited: true })
    const { allowedTypes } = this
    this.#settings = settings
    if (this.allowedTypes !== allowedTypes) this.#services.onAllowedTypes?.(this)
  }
}

const unpolled = new PollActivity()

/** Returns the settings of a queue whose own ones are damaged: those that lose the least, until they are set again. */
function settingsInPlace(isKeeping: boolean): QueueSettings {
  return { allowedTypes: allTypes(), ...(isKeeping ? { retention: longestRetention } : {}) }
}

/**
 * What the parts of a queue need from it and from each other.
 *
 * This is one object for all parts, with its methods on the class. As closures and option objects, it took 900 bytes
 * for every bot in memory.
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

  get lease(): Lease {
    return this.#of.shard.lease
  }

  get random(): () => number {
    return this.#services.random
  }

  /** The bot may have been removed, or its shard may have left. */
  async pollAnew(request: PollRequest, presence: ClientPresence): Promise<PollReply> {
    const anew = await this.#services.findQueue?.(this.id).catch(() => undefined)
    return anew === undefined || anew === this.#of ? [] : anew.poller.poll(request, presence)
  }

  get limits(): QueueLimits {
    return this.#services.limits
  }

  get levels(): Pick<QueueLevels, 'note'> {
    return this.#services.levels
  }

  get budget(): WindowBudget {
    return this.#services.budget
  }

  get counters(): Counters {
    return this.#services.counters
  }

  get tracer(): Tracer | undefined {
    return this.#services.tracer
  }

  get services(): WebhookServices {
    return this.#services.webhooks
  }

  settings(): QueueSettings {
    return this.#of.settings
  }

  ofBot(): BotSettings {
    return this.#of.bot.record
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
    log?.debug({ bot, isTest: isTestQueue(id), rule }, 'a getUpdates call got 409')
  }

  isWebhookActive(): boolean {
    return this.#of.settings.webhook !== undefined
  }

  takesOver(): boolean {
    return this.#of.bot.record.polls === 'take_over'
  }

  tokenEndsInMs(): number {
    const endsAtMs = this.#of.bot.record.secrets[1]?.endsAtMs
    if (endsAtMs === undefined) return Infinity
    const leftMs = endsAtMs - this.#services.clock.nowMs()
    return leftMs > 0 ? leftMs : Infinity
  }

  retention(): Retention {
    return this.#of.retention
  }

  lostByExpiry(count: number): void {
    this.#of.webhook.lostByExpiry(count)
    // Those of a webhook become dead letters, which have an event of their own.
    if (this.isWebhookActive()) return
    this.#of.poller.expired(count)
    this.#report('updates.expired', { count, reason: undefined })
  }

  activity(isPolled: boolean): PollActivity | undefined {
    const { polls } = this.#services
    return isPolled ? polls?.of(this.id) : polls?.find(this.id)
  }

  confirmed(count: number): void {
    this.#of.poller.confirmed(count)
  }

  deliveredAfter(delayMs: number, count: number): void {
    this.#of.webhook.deliveredAfter(delayMs, count)
  }

  deadLettersAdded(count: number, lastError: string | undefined): void {
    this.#report('dead_letters.added', { count, reason: lastError })
  }

  #report(
    type: 'dead_letters.added' | 'updates.expired',
    what: Pick<NewOperatorEvent, 'count' | 'reason'>,
  ): void {
    const { clock, report } = this.#services
    const { id } = this.#of
    report({ type, timeMs: clock.nowMs(), botId: botIdOf(id), isTest: isTestQueue(id), ...what })
  }

  cancelPoll(): void {
    this.#of.poller.terminate()
  }
}
