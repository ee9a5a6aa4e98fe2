/** One registered bot: its record, its secrets and its two queues. The /test/ queue is loaded when it is first used. */
import assert from 'node:assert/strict'
import { PostboteError } from '../kit/errors.ts'
import { botIdMax, botIdMin } from '../kit/limits.ts'
import type { BotRecord, BotSettings, PollsSetting } from '../shard/records/bot-record.ts'
import { queueIdOf } from '../shard/records/record-keys.ts'
import type { Shard } from '../shard/shard.ts'
import type { StoredQueue } from '../shard/records/stored-records.ts'
import { BotQueue, type BotQueueServices, type QueueReport } from './bot-queue.ts'
import type { NamedBot } from './registration.ts'
import { TokenVerifier } from '../api/token.ts'
import { Mutex } from '../kit/mutex.ts'

/** What all bots of a shard share. */
export interface BotHome {
  readonly services: BotQueueServices
  /** Registers a queue with the code that announces committed updates. */
  attach(queue: BotQueue): void
}

export interface BotContext {
  readonly home: BotHome
  readonly shard: Shard
  readonly stored: StoredQueue & { readonly bot: BotRecord }
}

/** A bot with its names. */
export interface BotSummary extends NamedBot {
  readonly createdAtMs: number
}

type Changed = Partial<Pick<NamedBot, 'firstName' | 'username'>> &
  Pick<BotRecord, 'isValidated' | keyof BotSettings>

/** What changes of a bot: a field that is absent stays, and null takes a setting back. */
export type BotChange = {
  readonly [Name in keyof Changed]?:
    | Changed[Name]
    | (Name extends keyof NamedBot ? undefined : null | undefined)
}

/** The settings of a bot as they may be shown: of the headers, only the names. */
export interface ShownSettings {
  readonly isValidated: boolean
  readonly polls: PollsSetting | undefined
  readonly ttlS: number | undefined
  readonly connectionsMax: number | undefined
  readonly retryDelaysS: readonly number[] | undefined
  readonly headerNames: readonly string[] | undefined
}

/** A bot with the state of its two queues. */
export interface BotReport extends BotSummary, ShownSettings {
  /** What modules show of it. */
  readonly fields: object
  readonly queue: QueueReport
  readonly testQueue: QueueReport
}

export class Bot {
  readonly botId: number
  readonly main: BotQueue
  lastUsedMs: number
  /** Whether its removal has begun, so that nothing more is accepted for it. */
  isRemoved = false
  /** Changes of its record, which run one after the other. */
  readonly recordChanges = new Mutex()
  readonly #home: BotHome
  #record: BotRecord
  #test: BotQueue | undefined
  #loadingTest: Promise<BotQueue> | undefined
  #verifier: TokenVerifier

  constructor(botId: number, context: BotContext) {
    const { home, shard, stored } = context
    const { services } = home
    this.botId = botId
    this.#home = home
    this.#record = stored.bot
    this.#verifier = new TokenVerifier(stored.bot.secrets, services.takesForeignTokens)
    this.lastUsedMs = services.clock.monotonicMs()
    this.main = new BotQueue(queueIdOf(botId, false), { bot: this, shard, stored, services })
    home.attach(this.main)
  }

  get record(): BotRecord {
    return this.#record
  }

  /**
   * Replaces the record.
   *
   * If the token was renewed without an overlap, waiting polls end with UNKNOWN_TOKEN. With an overlap they end with an empty list, because a
   * poll does not know its token: the bot polls again, and no call waits past the end of the old token.
   */
  replaceRecord(record: BotRecord): void {
    const isSameToken = record.secrets === this.#record.secrets
    this.#record = record
    if (isSameToken) return
    this.#verifier = new TokenVerifier(record.secrets, this.#home.services.takesForeignTokens)
    const hasOverlap = record.secrets.length > 1
    for (const queue of [this.main, this.#test]) {
      if (hasOverlap) queue?.poller.end()
      else queue?.poller.revoke()
    }
  }

  /** Has the deliveries of its queues use the settings of its record. */
  changeDeliveries(): void {
    this.main.webhook.changeDeliveries()
    this.#test?.webhook.changeDeliveries()
  }

  get loadedTest(): BotQueue | undefined {
    return this.#test
  }

  /** Returns the queue of the /test/ namespace, loaded. */
  test(): Promise<BotQueue> {
    this.#loadingTest ??= this.#loadTest().catch((error: unknown) => {
      this.#loadingTest = undefined
      throw error
    })
    return this.#loadingTest
  }

  /** Whether `secret` is a valid secret of this bot now. */
  accepts(secret: string): boolean {
    const nowMs = this.#verifier.hasEnd ? this.main.clock.nowMs() : 0
    return this.#verifier.accepts(secret, nowMs)
  }

  get isQuiet(): boolean {
    const isLoading = this.#loadingTest !== undefined && this.#test === undefined
    return this.main.isQuiet && (this.#test?.isQuiet ?? true) && !isLoading && !this.isRemoved
  }

  /** Releases updates from memory that have not been read for some time. */
  releaseUnread(): void {
    this.main.releaseUnread()
    this.#test?.releaseUnread()
  }

  async close(): Promise<void> {
    await this.main.close()
    await this.#test?.close()
  }

  async #loadTest(): Promise<BotQueue> {
    const { services } = this.#home
    const { shard } = this.main
    const id = queueIdOf(this.botId, true)
    const [stored] = await shard.load([id])
    assert(stored !== undefined, 'a shard loads as many queues as it is asked for')
    if (stored.isDamaged) throw new PostboteError('STORE_UNAVAILABLE')
    const queue = new BotQueue(id, { bot: this, shard, stored, services })
    this.#test = queue
    this.#home.attach(queue)
    return queue
  }
}

/** Returns the names of a bot. */
export function summaryOf(botId: number, record: BotRecord): BotSummary {
  const { firstName, username, createdAtMs } = record
  return { botId, firstName, username, createdAtMs }
}

/** Returns the settings of a bot without the values of its headers, which are secrets. */
export function shownSettings(record: BotRecord): ShownSettings {
  const { isValidated = false, polls, ttlS, connectionsMax, retryDelaysS, headers } = record
  const headerNames = headers === undefined ? undefined : Object.keys(headers)
  return { isValidated, polls, ttlS, connectionsMax, retryDelaysS, headerNames }
}

/** Whether a number is in the range of bot ids (protocol.md §2). */
export function isBotId(id: number): boolean {
  return Number.isInteger(id) && id >= botIdMin && id <= botIdMax
}
