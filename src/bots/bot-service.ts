/**
 * The port to the bots. Only the owner of a bot's shard implements it; links/forward/peers.ts forwards requests for
 * bots of other owners before they get here.
 */
import type { PostboteError } from '../kit/errors.ts'
import type { BotRecord, BotSettings, PollsSetting } from '../shard/records/bot-record.ts'
import type { UpdateRows } from '../shard/update-rows.ts'
import type { BotQueue, QueueReport } from './bot-queue.ts'
import type { FleetCounts } from '../features/fleet/fleet-counts.ts'
import type { FleetQuery, FleetStatus } from '../features/fleet/fleet-status.ts'
import type { SetWebhookRequest } from './set-webhook-request.ts'
import type { Token } from '../api/token.ts'

/** A bot with what getMe returns. */
export interface NamedBot {
  readonly botId: number
  readonly firstName: string
  readonly username: string
}

/** What a bot is registered with. */
export interface Registration extends NamedBot {
  readonly polls?: PollsSetting | undefined
}

/** A token at the time of its creation. */
export interface IssuedToken {
  readonly botId: number
  /** Returned only here, because only its hash is stored. */
  readonly token: string
}

/** A registration that may be repeated. */
export interface KeyedRegistration extends Registration {
  /** A repetition with this key registers nothing. */
  readonly idempotencyKey: string
  /** Set with the registration in one write, if its endpoint can be verified. */
  readonly webhook?: Pick<SetWebhookRequest, 'webhook' | 'allowedTypes'> | undefined
  /** Returns the form of the token that may be stored with the webhook. */
  readonly sealToken?: ((token: string) => string) | undefined
}

/** A bot that was registered now, or before with the same key. */
export type KeyedBot =
  | (IssuedToken & {
      /** Why it has no webhook, although it was asked for one. */
      readonly webhookError?: PostboteError
    })
  | { readonly botId: number; readonly isDuplicate: true }

/** A bot with its names. */
export interface BotSummary extends NamedBot {
  readonly createdAtMs: number
}

/** A bot in a list, with its state. */
export interface ListedBot extends BotSummary {
  /** Undefined in the moment after the start of a worker in which it is not known. */
  readonly status?: FleetStatus | undefined
}

/** One page of a list of bots. */
export interface BotList {
  readonly bots: readonly ListedBot[]
  /** Numbers of the shards that were read. The bots of all others are missing from the list. */
  readonly shards: readonly number[]
}

/** The sums over all bots of one shard. */
export interface ShardSums {
  readonly shard: number
  readonly counts: FleetCounts
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

/** The result of a push whose idempotency key was used before: the id of the update that is already stored. */
export interface DuplicatePush {
  readonly duplicateOf: number
}

/** The update's id, or the reason why there is none. */
export type PushOutcome = number | DuplicatePush | 'filtered' | PostboteError

/** The two stages of a batch of pushes. */
export interface PushReceipt {
  /**
   * Resolves when the ids are allocated. A later push for the same bot gets higher ids. The indexes are those of the pushes
   * that are left to the next owner of their shard.
   */
  readonly accepted: Promise<ReadonlySet<number>>
  /** Resolves when every accepted update is synced, with one result per push, in the order of the pushes. */
  readonly results: Promise<readonly PushOutcome[]>
}

/**
 * The operations on the bots of one owner.
 *
 * Unless stated otherwise, a method throws or rejects with SHARD_BROKEN if the bot's shard is set aside, and with
 * STORE_UNAVAILABLE if the shard cannot be read or written. A method that changes something also rejects with
 * OUTCOME_UNKNOWN if its write failed halfway, and one that names an existing bot by its id with UNKNOWN_BOT.
 */
export interface BotService {
  /**
   * Finds the queue that a token, whose shape was checked, grants access to.
   *
   * @returns The queue; a promise only if the bot or its /test/ queue is not loaded.
   * @throws INVALID_TOKEN if the secret cannot be one, UNKNOWN_TOKEN if it is not a current token of a bot. With
   *   `--foreign-tokens` the latter takes the same time whether the bot exists or not.
   */
  authorize(token: Token, isTest: boolean): BotQueue | Promise<BotQueue>
  /**
   * Reads a token that another server has made.
   *
   * @param botId - The bot that it must belong to, if that is known.
   * @throws BAD_REQUEST if it is not such a token, or that of another bot.
   */
  foreignToken(text: string, botId?: number): Token
  /**
   * Registers a bot. Its id must belong to this owner.
   *
   * @param token - A token of `foreignToken`; a new one if it is absent.
   * @throws BOT_NOT_SERVED, BOT_EXISTS.
   */
  register(registration: Registration, token?: Token): Promise<IssuedToken>
  /**
   * Registers a bot, unless its registration had the same key. Nothing changes before its webhook is verified.
   *
   * @throws BOT_NOT_SERVED; BOT_EXISTS if another bot has the id.
   */
  registerOnce(registration: KeyedRegistration): Promise<KeyedBot>
  /**
   * Finds an unused random id for a registration without one.
   *
   * @param accepts - Returns whether an id is acceptable.
   * @returns An id of an open shard of this owner. Another call may return the same id until it is registered.
   * @throws STORE_UNAVAILABLE if none is found after `randomBotIdTriesMax` attempts.
   */
  freeBotId(accepts: (botId: number) => boolean): Promise<number>
  /**
   * Issues a new token for a bot.
   *
   * @param overlapS - Seconds for which the current token stays valid; 0 ends it immediately.
   * @param token - A token of `foreignToken`; a new one if it is absent.
   */
  renewToken(botId: number, overlapS: number, token?: Token): Promise<IssuedToken>
  /**
   * Changes the names and settings of a bot in one write. When it resolves, they are in effect.
   *
   * @returns what the bot has now
   */
  change(botId: number, change: BotChange): Promise<ShownSettings>
  /** Removes a bot with its queues. */
  remove(botId: number): Promise<void>
  /** Returns a queue of a bot, loaded into memory. */
  queueOf(botId: number, isTest: boolean): Promise<BotQueue>
  /** Has modules erase what they keep of updates of a bot. */
  eraseBeside(botId: number): Promise<void>
  /** Returns the state of a bot and its queues. */
  report(botId: number): Promise<BotReport>
  /**
   * Lists the bots of this owner's open shards.
   *
   * @param page - Only ids above `after`, at most `limit`.
   * @returns The bots in ascending order of ids. A shard that cannot be read is left out instead of failing the call.
   */
  list(page: { readonly after: number; readonly limit: number }): Promise<BotList>
  /**
   * Returns how many updates of a bot have waited in each minute of the last hour, the present minute last; undefined where it was
   * well, or nobody counted.
   */
  pendingOf(queue: BotQueue): readonly (number | undefined)[]
  /**
   * Selects bots of this owner's open shards by their state, from memory. Only the names of those that it returns are read.
   *
   * @returns The bots, in the order of the query. A shard whose bots are not known yet is left out.
   */
  select(query: FleetQuery): Promise<BotList>
  /**
   * Finds the bots of this owner's open shards that have a username, in any case, from memory.
   *
   * @returns Their ids. A shard whose bots are not known yet is left out.
   */
  named(username: string): Promise<readonly number[]>
  /**
   * Returns what a question about all bots of this owner costs the event loop, in milliseconds.
   *
   * @param listed - how many of them are listed at most
   */
  questionCostMs(listed: number): number
  /** Sums up the bots of each of this owner's open shards, from memory. A shard whose bots are not known yet is left out. */
  summary(): Promise<readonly ShardSums[]>
  /**
   * Pushes updates. Never throws: a push that fails has its error as its result.
   *
   * @param rows - The updates, also for different bots; those of one queue get ids in this order.
   * @param nths - The numbers of the rows to push. Each row is pushed once.
   * @param hasLeft - Whether the shard of a bot has another owner by now. A push that finds no shard is left to that one.
   */
  push(rows: UpdateRows, nths: readonly number[], hasLeft?: (botId: number) => boolean): PushReceipt
}
