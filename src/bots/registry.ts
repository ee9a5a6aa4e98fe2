/** What can be done with bots, as the APIs ask for it. This is the only implementation of `BotService`. */
import { randomBytes } from 'node:crypto'
import { PostboteError } from '../kit/errors.ts'
import { KeyedMutex } from '../kit/keyed-mutex.ts'
import type { Modules } from '../kit/modules.ts'
import { Mutex } from '../kit/mutex.ts'
import { botIdMax, botIdMin } from '../kit/limits.ts'
import type { BotRecord, QueueSettings } from '../shard/records/bot-record.ts'
import type { StoredSecret } from '../kit/stored-secret.ts'
import type { Operation } from '../shard/operations.ts'
import { type QueueId, queueIdOf } from '../shard/records/record-keys.ts'
import type { ShardHooks } from '../shard/hooks.ts'
import type { Shard } from '../shard/shard.ts'
import type { UpdateRows } from '../shard/update-rows.ts'
import type { Verified } from '../delivery/endpoint/verify.ts'
import { withAllowedTypes } from './allowed-types.ts'
import { type Bot, shownSettings, summaryOf } from './bot.ts'
import { BotCache, type BotCacheOptions } from './bot-cache.ts'
import type { BotQueue, BotQueueServices, QueueReport } from './bot-queue.ts'
import type {
  BotChange,
  BotList,
  BotReport,
  BotService,
  IssuedToken,
  KeyedBot,
  KeyedRegistration,
  ListedBot,
  PushReceipt,
  Registration,
  ShardSums,
  ShownSettings,
} from './bot-service.ts'
import { Fleet, type FleetOptions } from '../features/fleet/fleet.ts'
import type { FleetQuery } from '../features/fleet/fleet-status.ts'
import { registrationHash } from './derived-bot-id.ts'
import { type BotHooks, troublesOf } from './hooks.ts'
import { openWithSecret } from '../admission/open-with-secret.ts'
import { PushBatch } from './push-batch.ts'
import type { SetWebhookRequest } from './set-webhook-request.ts'
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

export interface BotRegistryOptions extends BotCacheOptions, Pick<FleetOptions, 'times'> {
  readonly modules: Modules<BotHooks & ShardHooks>
}

export class BotRegistry implements BotService {
  /** The bots in memory, and the shards that they are in. */
  readonly bots: BotCache
  /** What is known of all bots of the shards. */
  readonly fleet: Fleet
  readonly #services: BotQueueServices
  readonly #modules: BotRegistryOptions['modules']
  /** Registrations with a key that are in progress, by the ids of their bots. */
  readonly #registering = new KeyedMutex<number>()
  readonly #clearing = new Mutex()

  constructor(options: BotRegistryOptions) {
    const { modules } = options
    const onAllowedTypes = (queue: BotQueue): void => void modules.each('typesChanged', queue)
    this.bots = new BotCache({ ...options, services: { ...options.services, onAllowedTypes } })
    this.#modules = modules
    this.#services = options.services
    this.fleet = new Fleet({
      clock: options.clock,
      counters: options.services.counters,
      attempts: options.services.webhooks.attempts,
      loadedQueue: (queue) => this.bots.loadedQueue(queue),
      log: options.services.log,
      takesForeignTokens: options.services.takesForeignTokens,
      report: options.services.report,
      times: options.times,
      modules,
    })
  }

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

  async register(registration: Registration, given?: Token): Promise<IssuedToken> {
    const { botId } = registration
    this.bots.assertServed(botId)
    const shard = this.bots.shardOf(botId)
    return this.#add({ botId, shard, given }, (record) => ({
      record: { ...namesOf(registration), ...record },
    }))
  }

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

  async freeBotId(accepts: (botId: number) => boolean): Promise<number> {
    for (let attempt = 0; attempt < randomBotIdTriesMax; attempt++) {
      const botId = botIdMin + Math.floor(this.#services.random() * randomBotIdsCount)
      if (botId > botIdMax || !this.bots.hasShardOf(botId) || this.bots.isDoubtful(botId)) continue
      if (!this.bots.isServed(botId) || !accepts(botId)) continue
      if ((await this.bots.find(botId)) === undefined) return botId
    }
    throw new PostboteError('STORE_UNAVAILABLE')
  }

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
    }
  }

  async queueOf(botId: number, isTest: boolean): Promise<BotQueue> {
    const bot = await this.existing(botId)
    return isTest ? bot.test() : bot.main
  }

  async eraseBeside(botId: number): Promise<void> {
    const bot = await this.existing(botId)
    await Promise.all(this.#modules.each('erasing', bot))
  }

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
    return queue.report({
      polls: this.fleet.pollsOf(queue),
      troubles: troublesOf(this.#modules, shard, id),
      isFallingBehind: this.fleet.isFallingBehind(id),
    })
  }

  async list(page: { readonly after: number; readonly limit: number }): Promise<BotList> {
    const read: number[] = []
    const lists = await Promise.all(
      [...this.bots.shards].map(async (shard): Promise<readonly ListedBot[]> => {
        try {
          const listed = await shard.list('b', page)
          read.push(shard.index)
          return listed.map(({ queue, record }) => ({
            ...summaryOf(queue, record),
            status: this.fleet.statusOf(shard, queue),
          }))
        } catch {
          return []
        }
      }),
    )
    const bots = lists.flat().toSorted((a, b) => a.botId - b.botId)
    return { bots: bots.slice(0, page.limit), shards: read }
  }

  pendingOf(queue: BotQueue): readonly (number | undefined)[] {
    return this.fleet.pendingOf(queue)
  }

  select(query: FleetQuery): Promise<BotList> {
    return this.fleet.list(query)
  }

  named(username: string): Promise<readonly number[]> {
    return this.fleet.named(username)
  }

  questionCostMs(listed: number): number {
    return this.fleet.questionCostMs(listed)
  }

  summary(): Promise<readonly ShardSums[]> {
    return this.fleet.summary()
  }

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
