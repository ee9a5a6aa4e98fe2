/** What can be done with bots, as the APIs ask for it. This is the only implementation of `BotService`. */
import { randomBytes } from 'node:crypto'
import { PostboteError } from '../errors.ts'
import { botIdMax, botIdMin } from '../limits.ts'
import type { BotRecord } from '../shard/bot-record.ts'
import type { Operation } from '../shard/operations.ts'
import type { UpdateRows } from '../shard/update-rows.ts'
import { type Bot, shownSettings, summaryOf } from './bot.ts'
import { BotCache, type BotCacheOptions } from './bot-cache.ts'
import type { BotQueue, BotQueueServices, QueueReport } from './bot-queue.ts'
import type {
  BotChange,
  BotList,
  BotReport,
  BotService,
  IssuedToken,
  DeadLetterName,
  ListedBot,
  PushReceipt,
  Registration,
  ReplayResult,
  ShardSums,
  ShownSettings,
} from './bot-service.ts'
import { Fleet } from './fleet.ts'
import type { FleetQuery } from './fleet-status.ts'
import { DeadLetterReplay } from './dead-letter-replay.ts'
import { PushBatch } from './push-batch.ts'
import { type Token, assertIntact, makeToken, parseToken, secretHash } from './token.ts'

/** Random ids are drawn from this many: all from botIdMin to 9,999,999,999, so that an id has at most ten digits. */
const randomBotIdsCount = 9_999_999_900
/**
 * A registration draws at most this many ids until one is free and belongs to this worker. That is enough for 256 workers
 * with a `--filter`; a draw takes 2 us.
 */
const randomBotIdTriesMax = 10_000

export class BotRegistry implements BotService {
  /** The bots in memory, and the shards that they are in. */
  readonly bots: BotCache
  /** What is known of all bots of the shards. */
  readonly fleet: Fleet
  readonly #services: BotQueueServices

  constructor(options: BotCacheOptions) {
    this.bots = new BotCache(options)
    this.#services = options.services
    this.fleet = new Fleet({
      clock: options.clock,
      counters: options.services.counters,
      attempts: options.services.webhooks.attempts,
      loadedQueue: (queue) => this.bots.loadedQueue(queue),
    })
  }

  authorize(token: Token, isTest: boolean): BotQueue | Promise<BotQueue> {
    const loaded = this.bots.loaded(token.botId)
    if (loaded !== undefined) return this.#open(loaded, token, isTest)
    assertIntact(token)
    return this.bots
      .load([token.botId])
      .then(() => this.#open(this.bots.loaded(token.botId), token, isTest))
  }

  async register(registration: Registration): Promise<IssuedToken> {
    const botId = registration.botId
    this.bots.assertServed(botId)
    const shard = this.bots.shardOf(botId)
    const [stored] = await shard.load([botId])
    // A damaged record is replaced, because this is the only way to give its bot a token and its queue back.
    if (stored === undefined || stored.bot !== undefined || this.bots.loaded(botId) !== undefined) {
      throw new PostboteError('BOT_EXISTS')
    }
    if (stored.isDamaged !== true) this.bots.assertAbsent([botId])
    const { token, record } = this.#issue(botId, {
      firstName: registration.firstName,
      username: registration.username,
      createdAtMs: shard.clock.nowMs(),
      secrets: [],
    })
    const bot = this.bots.adopt(botId, shard, { ...stored, bot: record })
    try {
      await shard.commit([{ kind: 'bot', queue: botId, record }], { waited: true })
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

  async renewToken(botId: number, overlapS: number): Promise<IssuedToken> {
    const { token } = await this.#changeRecord(botId, (current) => {
      const endsAtMs = this.bots.shardOf(botId).clock.nowMs() + overlapS * 1000
      const outgoing = current.secrets.slice(0, 1).map(({ sha256 }) => ({ sha256, endsAtMs }))
      return this.#issue(botId, { ...current, secrets: overlapS > 0 ? outgoing : [] })
    })
    return { botId, token }
  }

  async change(botId: number, change: BotChange): Promise<ShownSettings> {
    const { record, changesDeliveries } = await this.#changeRecord(botId, (current) => {
      const changed = changedRecord(current, change)
      return {
        record: changed,
        changesDeliveries: deliveriesOf(changed) !== deliveriesOf(current),
      }
    })
    if (changesDeliveries) await this.bots.loaded(botId)?.renewDispatchers()
    return shownSettings(record)
  }

  /** Changes run one after the other, because each token must end the previous one. */
  async #changeRecord<Change extends { readonly record: BotRecord }>(
    botId: number,
    change: (current: BotRecord) => Change,
  ): Promise<Change> {
    const bot = await this.#existing(botId)
    return bot.recordChanges.run(async () => {
      if (bot.isRemoved) throw new PostboteError('UNKNOWN_BOT')
      const changed = change(bot.record)
      const operation = { kind: 'bot', queue: botId, record: changed.record } as const
      await this.bots.shardOf(botId).commit([operation], { waited: true })
      bot.replaceRecord(changed.record)
      return changed
    })
  }

  async remove(botId: number): Promise<void> {
    const bot = await this.#existing(botId)
    const queues = [bot.main, await bot.test()]
    if (bot.isRemoved) throw new PostboteError('UNKNOWN_BOT')
    bot.isRemoved = true
    const shard = this.bots.shardOf(botId)
    const polls = queues.map(({ poller }) => poller.take())
    let ending: 'UNKNOWN_TOKEN' | undefined
    try {
      await Promise.all(queues.map((queue) => queue.close()))
      const operations: Operation[] = [{ kind: 'bot', queue: botId, record: null }]
      for (const { id, updates } of queues) {
        operations.push(...(await updates.drop(updates.nextId, { isKept: false })))
        await shard.clearKept(id)
        operations.push(...(await updates.deadLetters.drop()))
        operations.push({ kind: 'settings', queue: id, record: null })
        operations.push({ kind: 'attempts', queue: id, record: null })
      }
      await shard.commit(operations, { waited: true })
      ending = 'UNKNOWN_TOKEN'
    } finally {
      // If the removal failed, the next call reads the bot anew.
      this.bots.forget(bot)
      for (const end of polls) end?.(ending)
    }
    for (const { id, webhook } of queues) {
      shard.forget(id)
      webhook.forgetAttempts()
    }
  }

  async queueOf(botId: number, isTest: boolean): Promise<BotQueue> {
    const bot = await this.#existing(botId)
    return isTest ? bot.test() : bot.main
  }

  async replay(deadLetter: DeadLetterName): Promise<number> {
    return (await this.#replayOf(deadLetter)).one(deadLetter.updateId)
  }

  async replayAll(queue: Omit<DeadLetterName, 'updateId'>): Promise<ReplayResult> {
    return (await this.#replayOf(queue)).all()
  }

  async report(botId: number): Promise<BotReport> {
    const bot = await this.#existing(botId)
    const test = await bot.test()
    const reportOf = (queue: BotQueue): Promise<QueueReport> =>
      queue.report(this.fleet.pollsOf(queue))
    return {
      ...summaryOf(botId, bot.record),
      ...shownSettings(bot.record),
      queue: await reportOf(bot.main),
      testQueue: await reportOf(test),
    }
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

  select(query: FleetQuery): Promise<BotList> {
    return this.fleet.list(query)
  }

  named(username: string): Promise<readonly number[]> {
    return this.fleet.named(username)
  }

  summary(): Promise<readonly ShardSums[]> {
    return this.fleet.summary()
  }

  push(
    rows: UpdateRows,
    nths: readonly number[],
    hasLeft?: (botId: number) => boolean,
  ): PushReceipt {
    const { clock, counters } = this.#services
    return new PushBatch(this.bots, { clock, counters, hasLeft }, { rows, nths }).receipt()
  }

  #open(bot: Bot | undefined, token: Token, isTest: boolean): BotQueue | Promise<BotQueue> {
    const { clock } = this.#services
    if (bot !== undefined) bot.lastUsedMs = clock.monotonicMs()
    if (bot?.accepts(token.secret, bot.main.clock.nowMs()) !== true || bot.isRemoved) {
      assertIntact(token)
      throw new PostboteError('UNKNOWN_TOKEN')
    }
    return isTest ? bot.test() : bot.main
  }

  async #existing(botId: number): Promise<Bot> {
    const bot = await this.bots.find(botId)
    if (bot === undefined || bot.isRemoved) throw new PostboteError('UNKNOWN_BOT')
    return bot
  }

  async #replayOf(of: Omit<DeadLetterName, 'updateId'>): Promise<DeadLetterReplay> {
    const bot = await this.#existing(of.botId)
    const queue = await this.queueOf(of.botId, of.isTest)
    const shard = this.bots.shardOf(of.botId)
    const assertAccepting = (): void => {
      this.bots.assertServed(of.botId)
      if (bot.isRemoved) throw new PostboteError('UNKNOWN_BOT')
      if (shard.status !== 'serving') throw new PostboteError('STORE_UNAVAILABLE')
      if (this.bots.isDiskLow(shard.index)) throw new PostboteError('DISK_LOW')
    }
    const { counters } = this.#services
    return new DeadLetterReplay({ queue, shard, counters, assertAccepting })
  }

  #issue(botId: number, record: BotRecord): { readonly token: string; readonly record: BotRecord } {
    const token = makeToken(botId, randomBytes)
    const sha256 = secretHash(parseToken(token).secret).toString('base64url')
    return { token, record: { ...record, secrets: [{ sha256 }, ...record.secrets] } }
  }
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
