/**
 * What can be done with the bots of one owner, as the APIs ask for it; links/forward/peers.ts forwards requests for bots of other
 * owners before they get here.
 *
 * Unless stated otherwise, a method throws or rejects with SHARD_BROKEN if the bot's shard is set aside, and with
 * STORE_UNAVAILABLE if the shard cannot be read or written. A method that changes something also rejects with
 * OUTCOME_UNKNOWN if its write failed halfway, and one that names an existing bot by its id with UNKNOWN_BOT.
 */
import { randomBytes } from 'node:crypto'
import { PostboteError } from '../kit/errors.ts'
import type { Modules } from '../kit/modules.ts'
import { KeyedMutex, Mutex } from '../kit/mutex.ts'
import { botIdMax, botIdMin } from '../kit/limits.ts'
import { PollActivities } from './poll-activity.ts'
import type { BotRecord, QueueSettings } from '../shard/records/bot-record.ts'
import type { StoredSecret } from '../kit/rights.ts'
import type { Operation } from '../shard/operations.ts'
import { type QueueId, queueIdOf } from '../shard/records/record-keys.ts'
import type { Shard } from '../shard/shard.ts'
import type { UpdateRows } from '../shard/update-rows.ts'
import type { Verified } from '../delivery/endpoint/verify.ts'
import {
  type Bot,
  type BotChange,
  type BotReport,
  type ShownSettings,
  shownSettings,
  summaryOf,
} from './bot.ts'
import { BotCache, type BotCacheOptions } from './bot-cache.ts'
import type { BotQueue, BotQueueServices, QueueReport } from './bot-queue.ts'
import { registrationHash } from './derived-bot-id.ts'
import { type BotHooks, type FollowedQueue, troublesOf } from './hooks.ts'
import { openWithSecret } from '../admission/open-with-secret.ts'
import { PushBatch } from './push-batch.ts'
import type { PushReceipt } from './push-receipt.ts'
import type { IssuedToken, KeyedBot, KeyedRegistration, Registration } from './registration.ts'
import { type SetWebhookRequest, withAllowedTypes } from './settings-change.ts'
import {
  type Token,
  assertIntact,
  foreignTokenPattern,
  makeToken,
  parseToken,
  storedSecretOf,
  tokenText,
  TokenVerifier,
} from '../api/token.ts'

/** Random ids are drawn from this many: all from botIdMin to 9,999,999,999, so that an id has at most ten digits. */
const randomBotIdsCount = 9_999_999_900
/**
 * A registration draws at most this many ids until one is free and belongs to this worker. That is enough for 256 workers
 * with a `--filter`; a draw takes 2 us.
 */
const randomBotIdTriesMax = 10_000
const foreignToken = new RegExp(foreignTokenPattern)

export class BotRegistry {
  /** The bots in memory, and the shards that they are in. */
  readonly bots: BotCache
  readonly #services: BotQueueServices
  readonly #modules: Modules<BotHooks>
  /** Registrations with a key that are in progress, by the ids of their bots. */
  readonly #registering = new KeyedMutex<number>()
  readonly #clearing = new Mutex()
  readonly #polls = new PollActivities()

  constructor(options: BotCacheOptions, modules: Modules<BotHooks>) {
    const onAllowedTypes = (queue: BotQueue): void => void modules.each('typesChanged', queue)
    const services = { ...options.services, onAllowedTypes, polls: this.#polls }
    this.bots = new BotCache({ ...options, services })
    this.#modules = modules
    this.#services = options.services
  }

  /**
   * Finds the queue that a token, whose shape was checked, grants access to.
   *
   * @returns The queue; a promise only if the bot or its /test/ queue is not loaded.
   * @throws INVALID_TOKEN if the secret cannot be one, UNKNOWN_TOKEN if it is not a current token of a bot. With
   *   `--foreign-tokens` the latter takes the same time whether the bot exists or not.
   */
  authorize(token: Token, isTest: boolean): BotQueue | Promise<BotQueue> {
    // The queue in memory is void when its shard was opened again, and a poll would find nothing in it.
    const reopened = this.bots.loaded(token.botId)?.main.shard.reopened()
    return reopened === undefined
      ? this.#authorize(token, isTest)
      : reopened.then(() => this.#authorize(token, isTest))
  }

  #authorize(token: Token, isTest: boolean): BotQueue | Promise<BotQueue> {
    const loaded = this.bots.loaded(token.botId)
    if (this.#takesForeignTokens) return this.#authorizeForeign(loaded, token, isTest)
    if (loaded !== undefined) return this.#open(loaded, token, isTest)
    assertIntact(token)
    return this.bots
      .load([token.botId])
      .then(() => this.#open(this.bots.loaded(token.botId), token, isTest))
  }

  /** Refuses all wrong tokens alike (open-with-secret.ts). */
  #authorizeForeign(
    loaded: Bot | undefined,
    token: Token,
    isTest: boolean,
  ): BotQueue | Promise<BotQueue> {
    const isAccepted = loaded?.accepts(token.secret) ?? nobody.accepts(token.secret, 0)
    if (isAccepted) return this.#open(loaded, token, isTest)
    assertIntact(token, true)
    const { botId, secret } = token
    return openWithSecret({
      clock: this.#services.clock,
      bots: this.bots,
      botId,
      accepts: (bot, atMs) =>
        new TokenVerifier(bot?.secrets ?? nobodysSecrets, true).accepts(secret, atMs),
      open: () => this.#open(this.bots.loaded(botId), token, isTest),
      refusedAs: 'UNKNOWN_TOKEN',
    })
  }

  get #takesForeignTokens(): boolean {
    return this.#services.takesForeignTokens === true
  }

  /**
   * Reads a token that another server has made.
   *
   * @param botId - The bot that it must belong to, if that is known.
   * @throws BAD_REQUEST if it is not such a token, or that of another bot.
   */
  foreignToken(text: string, botId?: number): Token {
    // parseToken would refuse a larger id as the token of a bot that calls, with 401.
    if (!foreignToken.test(text) || Number.parseInt(text, 10) > botIdMax) {
      const detail = 'token: expected <bot_id>:<secret> with 35 to 60 letters, digits, _ and -'
      throw new PostboteError('BAD_REQUEST', { detail })
    }
    const token = parseToken(text, undefined, true)
    if (botId === undefined || token.botId === botId) return token
    const detail = `token: expected a token of bot ${botId}, got one of bot ${token.botId}`
    throw new PostboteError('BAD_REQUEST', { detail })
  }

  /**
   * Registers a bot. Its id must belong to this owner.
   *
   * @param token - A token of `foreignToken`; a new one if it is absent.
   * @throws BOT_NOT_SERVED, BOT_EXISTS.
   */
  async register(registration: Registration, given?: Token): Promise<IssuedToken> {
    const { botId } = registration
    this.bots.assertServed(botId)
    const shard = this.bots.shardOf(botId)
    return this.#add({ botId, shard, given }, (record) => ({
      record: { ...namesOf(registration), ...record },
    }))
  }

  /**
   * Registers a bot, unless its registration had the same key. Nothing changes before its webhook is verified.
   *
   * @throws BOT_NOT_SERVED; BOT_EXISTS if another bot has the id.
   */
  registerOnce(registration: KeyedRegistration): Promise<KeyedBot> {
    // What another one with this id has registered may not be on disk yet.
    return this.#registering.run(registration.botId, () => this.#registerOnce(registration))
  }

  async #registerOnce(registration: KeyedRegistration): Promise<KeyedBot> {
    const { botId, idempotencyKey, webhook, sealToken } = registration
    this.bots.assertServed(botId)
    const shard = this.bots.shardOf(botId)
    const registeredBy = registrationHash(idempotencyKey)
    const { bot: before } = await shard.readBot(botId)
    if (before?.registeredBy === registeredBy) return { botId, isDuplicate: true }
    if (before !== undefined) throw new PostboteError('BOT_EXISTS', { detail: `${botId}` })
    const verified = webhook === undefined ? undefined : await this.#verified(webhook)
    const issued = await this.#add({ botId, shard }, (record, { token, settings }) => ({
      record: { ...namesOf(registration), ...record, registeredBy },
      settings:
        webhook === undefined || verified === undefined || verified instanceof PostboteError
          ? undefined
          : {
              ...withAllowedTypes(settings, webhook.allowedTypes),
              webhook: {
                ...webhook.webhook,
                ...(sealToken === undefined ? {} : { sealedToken: sealToken(token) }),
                verifiedAddress: verified.address,
              },
            },
    }))
    return verified instanceof PostboteError ? { ...issued, webhookError: verified } : issued
  }

  /** Returns why a webhook cannot be set, or where its endpoint was reached. */
  async #verified({
    webhook,
  }: Pick<SetWebhookRequest, 'webhook'>): Promise<Verified | PostboteError> {
    const { webhooks } = this.#services
    try {
      const endpoint = webhooks.parseEndpoint(webhook.url)
      return await webhooks.verify({ endpoint, webhook, signal: new AbortController().signal })
    } catch (error) {
      if (error instanceof PostboteError) return error
      throw error
    }
  }

  /** Adds a bot that does not exist, with its record and, if it has any, the settings of its queue in one write. */
  async #add(
    {
      botId,
      shard,
      given,
    }: { readonly botId: number; readonly shard: Shard; readonly given?: Token | undefined },
    make: (
      record: Pick<BotRecord, 'createdAtMs' | 'secrets'>,
      of: { readonly token: string; readonly settings: QueueSettings },
    ) => { readonly record: BotRecord; readonly settings?: QueueSettings | undefined },
  ): Promise<IssuedToken> {
    const queues = [botId, queueIdOf(botId, true)]
    const [stored] = await shard.load(queues)
    if (stored === undefined || stored.bot !== undefined)
      throw new PostboteError('BOT_EXISTS', { detail: `${botId}` })
    this.#assertNotLoaded(botId)
    // A damaged record is replaced, because this is the only way to give its bot a token and its queue back.
    if (stored.isDamaged !== true) {
      this.bots.assertAbsent([botId])
      // The removal of an earlier bot may have been cut off before it has cleared this.
      await this.#clearing.run(() => {
        this.#assertNotLoaded(botId)
        return clearKept(shard, queues)
      })
      this.#assertNotLoaded(botId)
    }
    // The shard may have left this worker meanwhile, and its bots with it.
    if (this.bots.shardOf(botId) !== shard) throw new PostboteError('STORE_UNAVAILABLE')
    const { token, secret } = issue(given ?? newToken(botId))
    const createdAtMs = shard.clock.nowMs()
    const made = make({ createdAtMs, secrets: [secret] }, { token, settings: stored.settings })
    const { record, settings = stored.settings } = made
    const bot = this.bots.adopt(botId, shard, { ...stored, bot: record, settings })
    const operations: Operation[] = [{ kind: 'bot', queue: botId, record }]
    if (made.settings !== undefined) {
      operations.push({ kind: 'settings', queue: botId, record: made.settings })
    }
    try {
      await shard.commit(operations, { waited: true })
    } catch (error) {
      this.bots.forget(bot)
      throw error
    }
    return { botId, token }
  }

  /**
   * Finds an unused random id for a registration without one.
   *
   * @param accepts - Returns whether an id is acceptable.
   * @returns An id of an open shard of this owner. Another call may return the same id until it is registered.
   * @throws STORE_UNAVAILABLE if none is found after `randomBotIdTriesMax` attempts.
   */
  async freeBotId(accepts: (botId: number) => boolean): Promise<number> {
    for (let attempt = 0; attempt < randomBotIdTriesMax; attempt++) {
      const botId = botIdMin + Math.floor(this.#services.random() * randomBotIdsCount)
      if (botId > botIdMax || !this.bots.hasShardOf(botId) || this.bots.isDoubtful(botId)) continue
      if (!this.bots.isServed(botId) || !accepts(botId)) continue
      if ((await this.bots.find(botId)) === undefined) return botId
    }
    throw new PostboteError('STORE_UNAVAILABLE')
  }

  /**
   * Issues a new token for a bot.
   *
   * @param overlapS - Seconds for which the current token stays valid; 0 ends it immediately.
   * @param token - A token of `foreignToken`; a new one if it is absent.
   */
  async renewToken(botId: number, overlapS: number, given?: Token): Promise<IssuedToken> {
    const { token } = await this.changeRecord(botId, (current) => {
      const endsAtMs = this.bots.shardOf(botId).clock.nowMs() + overlapS * 1000
      const outgoing = current.secrets.slice(0, 1).map((secret) => ({ ...secret, endsAtMs }))
      const { token: issued, secret } = issue(given ?? newToken(botId))
      // A repetition must not end the overlap of the token before.
      const isRepeated = current.secrets[0]?.sha256 === secret.sha256
      const overlapping = isRepeated ? current.secrets : [secret, ...outgoing]
      const secrets = overlapS > 0 ? overlapping : [secret]
      return { token: issued, record: { ...current, secrets } }
    })
    return { botId, token }
  }

  /**
   * Changes the names and settings of a bot in one write. When it resolves, they are in effect.
   *
   * @returns what the bot has now
   */
  async change(botId: number, change: BotChange): Promise<ShownSettings> {
    const { record, changesDeliveries } = await this.changeRecord(botId, (current) => {
      const changed = changedRecord(current, change)
      return {
        record: changed,
        changesDeliveries: deliveriesOf(changed) !== deliveriesOf(current),
      }
    })
    if (changesDeliveries) this.bots.loaded(botId)?.changeDeliveries()
    return shownSettings(record)
  }

  /** Changes the record of a bot on disk. Changes run one after the other, because each token must end the previous one. */
  async changeRecord<Change extends { readonly record: BotRecord }>(
    botId: number,
    change: (current: BotRecord) => Change,
  ): Promise<Change> {
    const bot = await this.existing(botId)
    return bot.recordChanges.run(async () => {
      if (bot.isRemoved) throw new PostboteError('UNKNOWN_BOT', { detail: `${botId}` })
      const changed = change(bot.record)
      const operation = { kind: 'bot', queue: botId, record: changed.record } as const
      await this.bots.shardOf(botId).commit([operation], { waited: true })
      bot.replaceRecord(changed.record)
      return changed
    })
  }

  /** Removes a bot with its queues. */
  async remove(botId: number): Promise<void> {
    const bot = await this.existing(botId)
    const queues = [bot.main, await bot.test()]
    if (bot.isRemoved) throw new PostboteError('UNKNOWN_BOT', { detail: `${botId}` })
    bot.isRemoved = true
    const modules = this.#modules
    modules.each('removalBegins', bot)
    const shard = this.bots.shardOf(botId)
    const polls = queues.map(({ poller }) => poller.take())
    let ending: 'UNKNOWN_TOKEN' | undefined
    try {
      await Promise.all(queues.map((queue) => queue.close()))
      const operations: Operation[] = [{ kind: 'bot', queue: botId, record: null }]
      for (const queue of queues) {
        const { id, updates } = queue
        operations.push(...(await updates.drop(updates.nextId, { isKept: false })))
        operations.push(...(await updates.deadLetters.drop()))
        operations.push({ kind: 'settings', queue: id, record: null })
        operations.push({ kind: 'attempts', queue: id, record: null })
      }
      const endings = modules.each('removing', bot)
      // None is in progress when it turns out that the bot stays.
      await Promise.allSettled(endings)
      operations.push(...(await Promise.all(endings)).flat())
      await shard.commit(operations, { waited: true })
      ending = 'UNKNOWN_TOKEN'
      // Not before, so that a bot that stays keeps it. If this fails, the sweep deletes what is left of a bot that is gone.
      await clearKept(
        shard,
        queues.map(({ id }) => id),
      ).catch(() => undefined)
    } finally {
      // If the removal failed, the next call reads the bot anew.
      this.bots.forget(bot)
      if (ending === undefined && shard.status === 'serving') modules.each('stays', bot)
      for (const end of polls) end?.(ending)
    }
    for (const { id, webhook } of queues) {
      shard.forget(id)
      webhook.forgetAttempts()
      this.#polls.forget(id)
    }
  }

  /** Returns a queue of a bot, loaded into memory. */
  async queueOf(botId: number, isTest: boolean): Promise<BotQueue> {
    const bot = await this.existing(botId)
    return isTest ? bot.test() : bot.main
  }

  /** Has modules erase what they keep of updates of a bot. */
  async eraseBeside(botId: number): Promise<void> {
    const bot = await this.existing(botId)
    await Promise.all(this.#modules.each('erasing', bot))
  }

  /** Returns the state of a bot and its queues. */
  async report(botId: number): Promise<BotReport> {
    const bot = await this.existing(botId)
    const test = await bot.test()
    return {
      ...summaryOf(botId, bot.record),
      ...shownSettings(bot.record),
      fields: this.#modules.fieldsOf('botFields', bot),
      queue: await this.#reportOf(bot.main),
      testQueue: await this.#reportOf(test),
    }
  }

  /** Returns the sentence about the health of a queue. */
  async healthOf(queue: BotQueue): Promise<string> {
    return (await this.#reportOf(queue)).webhook.healthReason
  }

  #reportOf(queue: BotQueue): Promise<QueueReport> {
    const { id, shard } = queue
    const followed = this.#followed(queue)
    return queue.report({
      polls: followed?.polls ?? queue.poller.polls,
      troubles: troublesOf(this.#modules, shard, id),
      lateness: followed?.lateness,
    })
  }

  #followed(queue: BotQueue): FollowedQueue | undefined {
    return this.#modules.each('followed', queue)[0]
  }

  /**
   * Returns how many updates of a bot have waited in each minute of the last hour, the present minute last; undefined where it was
   * well, or nobody counted.
   */
  pendingOf(queue: BotQueue): readonly (number | undefined)[] {
    return this.#followed(queue)?.pending ?? []
  }

  /** Finds the bots of this owner's open shards that have a username, in any case, as far as a module knows all bots. */
  async named(username: string): Promise<readonly number[]> {
    return (await Promise.all(this.#modules.each('named', username))).flat()
  }

  /** Returns what `named` costs the event loop, in milliseconds. */
  namedCostMs(): number {
    return this.#modules.each('namedCostMs').reduce((sum, costMs) => sum + costMs, 0)
  }

  /**
   * Pushes updates. Never throws: a push that fails has its error as its result.
   *
   * @param rows - The updates, also for different bots; those of one queue get ids in this order.
   * @param nths - The numbers of the rows to push. Each row is pushed once.
   * @param hasLeft - Whether the shard of a bot has another owner by now. A push that finds no shard is left to that one.
   */
  push(
    rows: UpdateRows,
    nths: readonly number[],
    hasLeft?: (botId: number) => boolean,
  ): PushReceipt {
    const { clock, counters, tracer } = this.#services
    return new PushBatch(this.bots, { clock, counters, tracer, hasLeft }, { rows, nths }).receipt()
  }

  #open(bot: Bot | undefined, token: Token, isTest: boolean): BotQueue | Promise<BotQueue> {
    const { clock } = this.#services
    if (bot !== undefined) bot.lastUsedMs = clock.monotonicMs()
    if (bot?.accepts(token.secret) !== true || bot.isRemoved) {
      assertIntact(token, this.#takesForeignTokens)
      throw new PostboteError('UNKNOWN_TOKEN')
    }
    return isTest ? bot.test() : bot.main
  }

  #assertNotLoaded(botId: number): void {
    if (this.bots.loaded(botId) !== undefined)
      throw new PostboteError('BOT_EXISTS', { detail: `${botId}` })
  }

  /** Returns a bot. Rejects with UNKNOWN_BOT if it is not there, or being removed. */
  async existing(botId: number): Promise<Bot> {
    const bot = await this.bots.find(botId)
    if (bot === undefined || bot.isRemoved) {
      throw new PostboteError('UNKNOWN_BOT', { detail: `${botId}` })
    }
    return bot
  }

  /** Throws why updates for a queue are not accepted now. */
  assertAccepting({ bot, shard }: BotQueue): void {
    this.bots.assertServed(bot.botId)
    if (bot.isRemoved) throw new PostboteError('UNKNOWN_BOT', { detail: `${bot.botId}` })
    if (shard.status !== 'serving') throw new PostboteError('STORE_UNAVAILABLE')
    if (this.bots.isDiskLow(shard.index)) throw new PostboteError('DISK_LOW')
  }
}

/** Returns the text of a token, and what is stored of it. */
function issue(token: Token): { readonly token: string; readonly secret: StoredSecret } {
  return { token: tokenText(token), secret: storedSecretOf(token) }
}

/** Returns what a record has of its registration. */
function namesOf({
  firstName,
  username,
  polls,
}: Registration): Pick<BotRecord, 'firstName' | 'polls' | 'username'> {
  return { firstName, username, ...(polls === undefined ? {} : { polls }) }
}

function changedRecord(record: BotRecord, change: BotChange): BotRecord {
  const fields: readonly (readonly [string, unknown])[] = Object.entries({
    ...record,
    ...withoutUndefined(change),
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- null, which is left out, is only for what need not be there
  const kept = Object.fromEntries(
    fields.filter(([, value]) => value !== null),
  ) as Partial<BotRecord>
  const { firstName, username, secrets, createdAtMs } = record
  return { firstName, username, secrets, createdAtMs, ...kept }
}

function withoutUndefined(change: BotChange): BotChange {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined))
}

/** What a dispatcher has from the record of its bot, for a comparison. */
function deliveriesOf({ connectionsMax, retryDelaysS, headers }: BotRecord): string {
  return JSON.stringify([connectionsMax, retryDelaysS, headers])
}

/** What the token of a bot that does not exist is compared with: nothing has this hash. */
const nobodysSecrets = [{ sha256: Buffer.alloc(32).toString('base64url') }]
const nobody = new TokenVerifier(nobodysSecrets)

function newToken(botId: number): Token {
  return parseToken(makeToken(botId, randomBytes))
}

/** Deletes what queues keep of updates that have left. They must have been read. */
async function clearKept(shard: Shard, queues: readonly QueueId[]): Promise<void> {
  for (const queue of queues) {
    if (shard.kept.of(queue).count > 0) await shard.clearKept(queue)
  }
}
