/**
 * The webhook of one queue: setWebhook, deleteWebhook, and the dispatcher that runs while there is a webhook.
 *
 *   none --setWebhook--> verifying --ok, one synced commit--> active --deleteWebhook, 410 for too long--> none
 *
 * Nothing changes until a setWebhook has been verified; a later call ends the verification of an earlier one. The
 * dispatcher is created for the first update to deliver, so that 30,000 idle webhooks cost nothing.
 *
 * The operator may pause deliveries. The pause is a setting of the queue, independent of its webhook. The dispatcher of
 * a paused queue sends nothing, and if there is none, none is created.
 */
import type { Clock } from '../kit/clock.ts'
import type { Lease } from '../kit/lease.ts'
import { PostboteError } from '../kit/errors.ts'
import type { UpdateQueue } from '../queue/update-queue.ts'
import { AttemptKeeper } from '../delivery/attempts/attempt-keeper.ts'
import type { BotSettings, QueueSettings, WebhookRecord } from '../shard/records/bot-record.ts'
import type { QueueId } from '../shard/records/record-keys.ts'
import type { Shard } from '../shard/shard.ts'
import type { StoredQueue } from '../shard/records/stored-records.ts'
import type { Attempt } from '../delivery/attempts/attempt.ts'
import type { AttemptLog } from '../delivery/attempts/attempt-log.ts'
import type { HistoryMinute } from '../delivery/delivery-history.ts'
import type { Endpoint } from '../delivery/endpoint/endpoint.ts'
import type { EndpointCheck } from '../delivery/endpoint-check.ts'
import type { Waiting } from '../delivery/attempts/health.ts'
import type { KnownAddresses } from '../delivery/endpoint/known-addresses.ts'
import type { ShownRequest } from '../delivery/endpoint/request-headers.ts'
import type { Verified } from '../delivery/endpoint/verify.ts'
import { subjectOfKey } from '../queue/check/ordering-key.ts'
import { HealthKeeper } from '../delivery/attempts/health-keeper.ts'
import { type SettingsChange, type SetWebhookRequest, withAllowedTypes } from './settings-change.ts'
import {
  type WebhookFacts,
  type WebhookInfo,
  type WebhookReport,
  webhookReport,
} from '../delivery/webhook-report.ts'
import type {
  WebhookDispatcher,
  WebhookOfQueue,
  WebhookServices,
} from '../delivery/webhook-services.ts'

export interface WebhookControlOptions {
  readonly id: QueueId
  readonly queue: UpdateQueue
  readonly lease: Lease
  readonly services: WebhookServices
  readonly clock: Clock
  readonly shard: Pick<Shard, 'commit'>
  settings(): QueueSettings
  /** What the operator has set for the bot. */
  ofBot(): BotSettings
  changeSettings(change: SettingsChange): Promise<void>
  cancelPoll(): void
}

/** A bot may call setWebhook with a url once in this time. [ref] */
const setWebhookPeriodMs = 1_000
/**
 * A handshake or delivery within this time spares a repeated setWebhook its verification. Chosen: bots that restart in a
 * loop repeat the call every few seconds.
 */
const webhookTrustMs = 60_000
/**
 * A setWebhook has updates that wait for a retry tried at once, this often at most. Chosen: short for somebody who repairs an
 * endpoint, and a bot that calls setWebhook in a loop causes no more attempts than failures that have just begun.
 */
const setWebhookRetryPeriodMs = 10_000
/**
 * Of more keys that wait for a retry, nobody counts the chats. Chosen: these take less than a tenth of a millisecond, and a list may
 * have 1,000 such bots.
 */
const subjectsCountedMax = 1_000

export class WebhookControl {
  readonly #options: WebhookControlOptions
  #dispatcher: WebhookDispatcher | undefined
  /** The log of all dispatchers that this object has had. */
  #ownLog: AttemptLog | undefined
  /** Created by the first failure: most webhooks have none. */
  #keeper: AttemptKeeper | undefined
  #verification: AbortController | undefined
  /** The checks of the endpoint that are under way. */
  readonly #checks = new Set<AbortController>()
  #lastSetMs = Number.NEGATIVE_INFINITY
  #lastVerifiedMs = Number.NEGATIVE_INFINITY
  /** When a setWebhook last had updates tried at once, monotonic. */
  #lastRetryMs = Number.NEGATIVE_INFINITY
  readonly #health: HealthKeeper
  /** Number of configurations so far. Callbacks of an earlier one have no effect. */
  #generation = 0
  /** Number of replacements in progress, during which the current configuration is about to change. */
  #replacing = 0
  #isClosed = false
  #isResting = false

  /** @param attempts - what is stored of the last ones */
  constructor(options: WebhookControlOptions, attempts?: StoredQueue['attempts']) {
    this.#options = options
    const { id, services, clock } = options
    const { failures } = options.settings().webhook ?? {}
    services.attempts.restore(id, { failures, attempts }, clock.nowMs())
    this.#health = new HealthKeeper(
      clock,
      () => this.#options.settings().webhook?.failures,
      (generation) => this.#storeHealth(generation),
    )
  }

  /** Whether it may be dropped from memory: there is nothing to deliver, and no call is in progress. */
  get isQuiet(): boolean {
    const { webhook, isPaused } = this.#options.settings()
    const isWaiting = isPaused === true && this.#dispatcher === undefined
    const hasWork = webhook !== undefined && !isWaiting && this.#options.queue.pendingCount > 0
    return !hasWork && this.#verification === undefined && this.#checks.size === 0
  }

  info(): WebhookInfo {
    const info = this.#dispatcher?.info()
    const webhook = this.#webhook
    const { lastErrorMs, lastError } = this.#log ?? {}
    return {
      ipAddress: info?.ipAddress ?? webhook?.verifiedAddress ?? webhook?.ipAddress,
      lastErrorDateS: lastErrorMs === undefined ? undefined : Math.floor(lastErrorMs / 1_000),
      lastErrorMessage: lastError,
      maxConnections: webhook?.maxConnections,
    }
  }

  /** @param of - what only the queue knows */
  report(
    of: Pick<WebhookFacts, 'lateness' | 'polls' | 'troubles' | 'oldestAgeS' | 'notes'>,
  ): WebhookReport {
    const { clock, queue } = this.#options
    return webhookReport({
      ...of,
      webhook: this.#webhook,
      log: this.#log,
      waiting: this.waitingInFull(),
      isPaused: this.#options.settings().isPaused === true,
      limitPerSecond: this.#options.settings().deliveriesPerSecond,
      pendingCount: queue.pendingCount,
      nowMs: clock.nowMs(),
    })
  }

  /** What the dispatcher waits for; undefined if there is none. */
  waiting(): Waiting | undefined {
    return this.#dispatcher?.waiting()
  }

  /** What it waits for, with the kinds of the keys, which are looked at. */
  waitingInFull(): Waiting | undefined {
    const waiting = this.#dispatcher?.waiting()
    if (waiting === undefined || waiting.parkedKeys > subjectsCountedMax) return waiting
    let [chats, users] = [0, 0]
    for (const key of this.#dispatcher?.parkedKeys() ?? []) {
      const subject = subjectOfKey(key)
      if (subject === 'chat') chats += 1
      else if (subject === 'user') users += 1
    }
    return { ...waiting, parkedSubjects: { chats, users } }
  }

  /** What updates of an ordering key wait for; undefined if nobody knows. */
  waitsFor(orderingKey: string): ReturnType<WebhookDispatcher['waitsFor']> {
    return this.#dispatcher?.waitsFor(orderingKey)
  }

  /** Returns the latest attempts, newest first. */
  attempts(limit: number): readonly Attempt[] {
    return this.#log?.latest(limit) ?? []
  }

  /** Returns the requests of deliveries as operators see them; undefined without a webhook. */
  request(): ShownRequest | undefined {
    const webhook = this.#webhook
    return webhook && this.#options.services.requestOf(this.#ofQueue(webhook))
  }

  /** Checks the endpoint of the webhook. Rejects with NO_WEBHOOK, TOO_MANY_REQUESTS or UNAVAILABLE. */
  async check(): Promise<EndpointCheck> {
    const webhook = this.#webhook
    if (webhook === undefined) throw new PostboteError('NO_WEBHOOK')
    if (this.#isClosed) throw new PostboteError('UNAVAILABLE')
    const check = new AbortController()
    this.#checks.add(check)
    try {
      return await this.#options.services.check({
        ...this.#ofQueue(webhook),
        known: this.#addressesOf(webhook),
        signal: check.signal,
      })
    } finally {
      this.#checks.delete(check)
    }
  }

  /** Whether an attempt for this update is known. */
  hasAttempt(updateId: number): boolean {
    const { failures } = this.#options.settings().webhook ?? {}
    return this.#log?.has(updateId) === true || failures?.last.updateId === updateId
  }

  /**
   * Forgets attempts of updates that were erased, in memory and as they are stored. It is durable then.
   *
   * @param partOf - which part of an attempt is forgotten
   * @returns how many attempts were forgotten
   */
  async forgetAttemptsOf(
    partOf: (attempt: Pick<Attempt, 'updateId'>) => 'all' | 'answer' | 'nothing',
  ): Promise<number> {
    const { id, shard } = this.#options
    const log = this.#log
    const count = log?.forget(partOf) ?? 0
    // Written also if it is the same: then a later version is in the files above all earlier ones, which go.
    const record = log?.hasErrors === true ? log.record() : null
    await shard.commit([{ kind: 'attempts', queue: id, record }], { waited: true })
    const { failures } = this.#options.settings().webhook ?? {}
    if (failures !== undefined && partOf(failures.last) === 'all') {
      await this.#options.changeSettings((settings) => ({ settings: withoutLastId(settings) }))
    }
    return count
  }

  /** Returns the minutes of the last hour that had deliveries, oldest first. */
  lastHour(): readonly HistoryMinute[] {
    return this.#log?.lastHour(this.#options.clock.nowMs()) ?? []
  }

  /** Pauses or resumes deliveries. When it resolves, the change is synced and in effect. */
  async setPaused(isPaused: boolean): Promise<void> {
    await this.#options.changeSettings((settings) => {
      const { isPaused: _before, ...rest } = settings
      return { settings: isPaused ? { ...rest, isPaused } : rest }
    })
    if (this.#options.settings().isPaused === true) {
      this.#dispatcher?.pause()
    } else {
      this.#dispatcher?.resume()
      this.retry()
      this.available()
    }
  }

  /**
   * The operator says that the endpoint works again, perhaps at another address.
   *
   * @returns how many keys have waited
   */
  retryForOperator(orderingKeys?: readonly string[]): number {
    this.#dispatcher?.lookUpAgain()
    return this.retry(orderingKeys)
  }

  /**
   * Has updates that wait for a retry tried now, also past a Retry-After.
   *
   * @param orderingKeys - the keys, as they are stored; undefined for all
   * @returns how many keys have waited
   */
  retry(orderingKeys?: readonly string[]): number {
    return this.#dispatcher?.retry({ orderingKeys, isPastRetryAfter: true }) ?? 0
  }

  /** Has deliveries use what the operator has changed of the bot. Those in flight end as they began. */
  changeDeliveries(): void {
    const { headers, retryDelaysS } = this.#options.ofBot()
    const { maxConnections } = this.#webhook ?? {}
    if (maxConnections !== undefined)
      this.#dispatcher?.change({ maxConnections, headers, retryDelaysS })
  }

  /** Starts or wakes the dispatcher if there is something to deliver. */
  available(): void {
    const webhook = this.#webhook
    const { isPaused } = this.#options.settings()
    if (webhook === undefined || this.#isClosed || this.#isResting) return
    if (this.#dispatcher === undefined) {
      if (isPaused === true || this.#options.queue.pendingCount === 0) return
      this.#dispatcher = this.#createDispatcher(webhook)
      this.#dispatcher.start(0)
    }
    this.#dispatcher.wake()
  }

  /**
   * Sets the webhook and returns the description of protocol.md §6. Rejects with INVALID_WEBHOOK_URL, BAD_WEBHOOK,
   * TOO_MANY_REQUESTS, WEBHOOK_SUPERSEDED or UNAVAILABLE.
   */
  async set(request: SetWebhookRequest): Promise<string> {
    const { clock, queue, services } = this.#options
    const endpoint = services.parseEndpoint(request.webhook.url)
    const dropsBelow = request.dropsPending ? queue.nextId : 0
    const nowMs = clock.monotonicMs()
    const changesNothing = this.#isSetTo(request)
    if (changesNothing && this.#isTrusted(nowMs)) {
      // The bot's latest call confirms the current configuration, so an earlier verification ends.
      this.#supersede()
      this.#retryForBot()
      return 'Webhook is already set'
    }
    // A failed verification counts, too; otherwise a bot could have a failing endpoint verified at any rate.
    if (nowMs - this.#lastSetMs < setWebhookPeriodMs) {
      throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: 1 })
    }
    this.#lastSetMs = nowMs
    const verified = await this.#verify(endpoint, request.webhook)
    if (changesNothing && this.#isSetTo(request)) {
      this.#keepAddresses(request.webhook, verified)
      this.#retryForBot()
      return 'Webhook is already set'
    }
    const webhook = { ...request.webhook, verifiedAddress: verified.address }
    const { allowedTypes } = request
    await this.#replace(
      (settings) => ({ ...withAllowedTypes(settings, allowedTypes), webhook }),
      dropsBelow,
    )
    this.#keepAddresses(webhook, verified)
    this.#log?.newEndpoint()
    this.available()
    return 'Webhook was set'
  }

  async delete(dropsPending: boolean): Promise<string> {
    this.#supersede()
    const { queue } = this.#options
    const dropsBelow = dropsPending ? queue.nextId : 0
    if (this.#options.settings().webhook === undefined && this.#replacing === 0) {
      this.#log?.newEndpoint()
      if (dropsPending) await queue.advance(dropsBelow, 'drop')
      return 'Webhook is already deleted'
    }
    await this.#remove(dropsBelow)
    this.#log?.newEndpoint()
    return 'Webhook was deleted'
  }

  /** Counts updates that expired: those that the dispatcher gave up, and those that the sweeper removed. */
  lostByExpiry(count: number): void {
    const { id, services, clock } = this.#options
    this.#ownLog ??= services.attempts.of(id)
    this.#ownLog.count('expired', clock.nowMs(), count)
  }

  /** Counts updates that the webhook took this long after they were stored. */
  deliveredAfter(delayMs: number, count: number): void {
    const { id, services, clock } = this.#options
    this.#ownLog ??= services.attempts.of(id)
    this.#ownLog.addDelivery(clock.nowMs(), delayMs, count)
  }

  /** Forgets attempts and addresses of a removed bot, so that they are not attributed to a later bot with its id. */
  forgetAttempts(): void {
    this.#ownLog = undefined
    this.#options.services.attempts.forget(this.#options.id)
    this.#options.services.addresses.forget(this.#options.id)
  }

  /** Sends nothing new and waits up to `deadlineMs` for deliveries in flight. Everything else goes on. */
  async pauseDeliveries(deadlineMs: number): Promise<void> {
    this.#isResting = true
    await this.#dispatcher?.pauseDeliveries(deadlineMs)
  }

  /** Stops sending and waits up to `deadlineMs` for deliveries in flight. */
  async drain(deadlineMs: number): Promise<void> {
    this.#isClosed = true
    this.#supersede()
    this.#endChecks()
    await this.#dispatcher?.drain(deadlineMs)
    await this.#health.flush()
    this.#keeper?.close()
  }

  /** Ends everything immediately; updates in flight stay pending. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#supersede()
    this.#endChecks()
    this.#health.close()
    const { id, services } = this.#options
    if (this.#ownLog !== undefined) services.attempts.keep(id, this.#ownLog)
    await this.#stopDispatcher()
    this.#keeper?.close()
  }

  /** The webhook with the values in effect. The stored record keeps the bot's own value, for a server with a higher limit. */
  get #webhook(): WebhookRecord | undefined {
    const { webhook } = this.#options.settings()
    const { services } = this.#options
    const { connectionsMax: ofBot = Number.POSITIVE_INFINITY } = this.#options.ofBot()
    const connectionsMax = Math.min(services.connectionsMax, ofBot)
    if (webhook === undefined || webhook.maxConnections <= connectionsMax) return webhook
    return { ...webhook, maxConnections: connectionsMax }
  }

  get #log(): AttemptLog | undefined {
    return this.#ownLog ?? this.#options.services.attempts.find(this.#options.id)
  }

  /** The bot says that its endpoint works. It does so at each start, so this is bounded, and no Retry-After ends. */
  #retryForBot(): void {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs - this.#lastRetryMs < setWebhookRetryPeriodMs) return
    this.#lastRetryMs = nowMs
    this.#dispatcher?.retry({ isPastRetryAfter: false })
  }

  /**
   * Whether a repeated setWebhook needs no verification. An attempt that has failed since may mean that the endpoint has moved,
   * unless it was verified just now.
   */
  #isTrusted(nowMs: number): boolean {
    if (nowMs - this.#lastVerifiedMs < setWebhookPeriodMs) return true
    if ((this.#log?.failuresInRow ?? 0) > 0) return false
    const lastGoodMs = Math.max(
      this.#lastVerifiedMs,
      this.#dispatcher?.info().lastSuccessMs ?? Number.NEGATIVE_INFINITY,
    )
    return nowMs - lastGoodMs < webhookTrustMs
  }

  #isSetTo(request: SetWebhookRequest): boolean {
    const { allowedTypes = 'default', webhook } = this.#options.settings()
    const { connectionsMax } = this.#options.services
    if (webhook === undefined || request.dropsPending || this.#replacing > 0) return false
    const wanted = request.webhook
    return (
      webhook.url === wanted.url &&
      // The request is bounded by the server's limit, and not by that of the operator for the bot.
      Math.min(webhook.maxConnections, connectionsMax) === wanted.maxConnections &&
      webhook.secretToken === wanted.secretToken &&
      webhook.ipAddress === wanted.ipAddress &&
      webhook.certificate === wanted.certificate &&
      webhook.sealedToken === wanted.sealedToken &&
      allowedTypes === request.allowedTypes
    )
  }

  /** Makes deliveries, including running ones, use the addresses that were verified. */
  #keepAddresses(webhook: WebhookRecord, { addresses }: Verified): void {
    const foundMs = this.#options.clock.monotonicMs()
    Object.assign(this.#addressesOf(webhook), { addresses, next: 0, foundMs })
  }

  #addressesOf({ url, ipAddress }: WebhookRecord): KnownAddresses {
    const { id, services } = this.#options
    return services.addresses.of({ queue: id, url, ipAddress })
  }

  async #verify(endpoint: Endpoint, webhook: WebhookRecord): Promise<Verified> {
    if (this.#isClosed) throw new PostboteError('UNAVAILABLE')
    this.#supersede()
    const verification = new AbortController()
    this.#verification = verification
    try {
      const verified = await this.#options.services.verify({
        endpoint,
        webhook,
        signal: verification.signal,
      })
      verification.signal.throwIfAborted()
      this.#lastVerifiedMs = this.#options.clock.monotonicMs()
      return verified
    } catch (error) {
      // An aborted verification fails with the reason of the abort, however it ended.
      verification.signal.throwIfAborted()
      throw error
    } finally {
      if (this.#verification === verification) this.#verification = undefined
    }
  }

  #supersede(): void {
    this.#verification?.abort(new PostboteError('WEBHOOK_SUPERSEDED'))
    this.#verification = undefined
  }

  #endChecks(): void {
    for (const check of this.#checks) check.abort(new PostboteError('UNAVAILABLE'))
  }

  #ofQueue(webhook: WebhookRecord): WebhookOfQueue {
    return {
      queueId: this.#options.id,
      webhook,
      ofBot: this.#options.ofBot(),
      signingKeys: () => this.#options.settings().signingKeys,
    }
  }

  /** Replaces the configuration, and drops updates if requested, in one synced commit. */
  async #replace(
    next: (settings: QueueSettings) => QueueSettings,
    dropsBelow: number,
  ): Promise<void> {
    const { queue } = this.#options
    this.#replacing += 1
    try {
      await this.#options.changeSettings(async (settings) => {
        this.#generation += 1
        return {
          settings: next(settings),
          alongside: dropsBelow > 0 ? await queue.drop(dropsBelow) : [],
        }
      })
    } finally {
      this.#replacing -= 1
    }
    this.#options.cancelPoll()
    await this.#stopDispatcher()
  }

  async #remove(dropsBelow: number): Promise<void> {
    await this.#replace(({ webhook: _webhook, ...rest }) => rest, dropsBelow)
  }

  async #stopDispatcher(): Promise<void> {
    const dispatcher = this.#dispatcher
    this.#dispatcher = undefined
    await dispatcher?.close()
  }

  #createDispatcher(webhook: WebhookRecord): WebhookDispatcher {
    const { clock, id, lease, queue, services } = this.#options
    const generation = this.#generation
    this.#ownLog ??= services.attempts.of(id)
    return services.createDispatcher({
      ...this.#ofQueue(webhook),
      clock,
      source: queue,
      lease,
      addresses: this.#addressesOf(webhook),
      limit: () => this.#options.settings().deliveriesPerSecond,
      attempts: this.#ownLog,
      onGone: () => {
        // A bot that is setting or deleting its webhook at this moment has decided for itself.
        const isCurrent = this.#generation === generation && this.#replacing === 0
        if (isCurrent) void this.#remove(0).catch(() => undefined)
      },
      onGoneClock: (sinceMs) => {
        void this.#keepGoneClock(sinceMs, generation)
      },
      onHealth: () => this.#health.changed(this.#log, generation),
      onAttemptFailed: () => this.#keepAttempts(),
    })
  }

  #keepAttempts(): void {
    const { clock, id, shard } = this.#options
    const log = this.#ownLog
    if (log === undefined) return
    this.#keeper ??= new AttemptKeeper(log, clock, (record) => {
      const operation = { kind: 'attempts', queue: id, record } as const
      // If the shard cannot be written, the next failure stores them all.
      shard.commit([operation], { waited: false }).catch(() => undefined)
    })
    this.#keeper.failed()
  }

  #storeHealth(generation: number): Promise<void> {
    return this.#changeWebhook(generation, ({ failures: _before, ...webhook }) => {
      const failures = this.#log?.stored()
      return failures === undefined ? webhook : { ...webhook, failures }
    })
  }

  #keepGoneClock(sinceMs: number | undefined, generation: number): Promise<void> {
    return this.#changeWebhook(generation, ({ goneSinceMs: _before, ...webhook }) =>
      sinceMs === undefined ? webhook : { ...webhook, goneSinceMs: sinceMs },
    )
  }

  /** Changes what is stored beside the bot's settings. If the shard cannot be written, the change is forgotten. */
  async #changeWebhook(
    generation: number,
    change: (webhook: WebhookRecord) => WebhookRecord,
  ): Promise<void> {
    const changed: SettingsChange = (settings) => {
      const { webhook } = settings
      const isCurrent = webhook !== undefined && this.#generation === generation
      return { settings: isCurrent ? { ...settings, webhook: change(webhook) } : settings }
    }
    await this.#options.changeSettings(changed).catch(() => undefined)
  }
}

/** The last failure stays, because the health depends on it, and names no update any more. */
function withoutLastId(settings: QueueSettings): QueueSettings {
  const { webhook } = settings
  if (webhook?.failures === undefined) return settings
  const { failures } = webhook
  const last = { ...failures.last, updateId: 0 }
  return { ...settings, webhook: { ...webhook, failures: { ...failures, last } } }
}
