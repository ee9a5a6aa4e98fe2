/**
 * The port behind which the bots live. Only the owner of a bot's shard implements it; requests for other
 * owners never get here (cluster/forward/peers.ts sends them on).
 */
import type { PostboteError } from '../errors.ts'
import type { CheckedUpdate } from '../queue/check-update.ts'
import type { BotQueue, QueueReport } from './bot-queue.ts'
import type { Token } from './token.ts'

export interface Registration {
  readonly botId: number
  readonly firstName: string
  readonly username: string
}

export interface IssuedToken {
  readonly botId: number
  /** Shown here once; only its hash is stored. */
  readonly token: string
}

export interface BotSummary {
  readonly botId: number
  readonly firstName: string
  readonly username: string
  readonly createdAtMs: number
}

export interface BotList {
  readonly bots: readonly BotSummary[]
  /** Numbers of open shards that could not be read: their bots are missing. */
  readonly unreadShards: readonly number[]
}

export interface BotReport extends BotSummary {
  readonly queue: QueueReport
  readonly testQueue: QueueReport
}

export interface PushRequest {
  readonly botId: number
  readonly isTest: boolean
  /** The producer's own key, or undefined to derive one from the payload. */
  readonly orderingKey: string | undefined
  readonly ttlS: number | undefined
  /** The producer's; a later push with the same one is answered with this one's result. */
  readonly idempotencyKey: string | undefined
  /** One update, `{"message":{...}}`, as it was sent. */
  readonly update: Buffer
  /** What a thread has found out about it; undefined where it is still to be checked. */
  readonly checked?: CheckedUpdate | PostboteError | undefined
}

/** The update with this push's idempotency key is there already. */
export interface DuplicatePush {
  readonly duplicateOf: number
}

/** The update's id, or why there is none. */
export type PushResult = number | DuplicatePush | 'filtered' | PostboteError

export interface PushReceipt {
  /** Resolves when the ids are allocated: a later push of the same bot comes behind these. */
  readonly accepted: Promise<void>
  /** Resolves when everything that was accepted is synced; one result per request, in their order. */
  readonly results: Promise<readonly PushResult[]>
}

export interface LetterName {
  readonly botId: number
  readonly isTest: boolean
  readonly updateId: number
}

/** A dead letter that was pushed again as another update. */
export interface ReplayedLetter {
  readonly updateId: number
  readonly newUpdateId: number
}

export interface ReplayResult {
  readonly replayed: readonly ReplayedLetter[]
  /** What refused this letter, behind which none was replayed. */
  readonly stopped: { readonly updateId: number; readonly error: PostboteError } | undefined
}

export interface BotService {
  /** The queue a token opens. Throws or rejects with INVALID_TOKEN or UNKNOWN_TOKEN. A promise only where the bot is not loaded. */
  authorize(token: Token, isTest: boolean): BotQueue | Promise<BotQueue>
  /** Rejects with BOT_EXISTS. */
  register(registration: Registration): Promise<IssuedToken>
  /** A free random id that `accepts` takes, for a registration that names none. Rejects with STORE_UNAVAILABLE. */
  freeBotId(accepts: (botId: number) => boolean): Promise<number>
  /** A new token; the old one goes on for `overlapS` seconds. Rejects with UNKNOWN_BOT. */
  renewToken(botId: number, overlapS: number): Promise<IssuedToken>
  /** Removes the bot and its queues. Rejects with UNKNOWN_BOT. */
  remove(botId: number): Promise<void>
  /** A bot's queue, or the one of its /test/ namespace. Rejects with UNKNOWN_BOT. */
  queueOf(botId: number, isTest: boolean): Promise<BotQueue>
  /** Pushes a dead letter again; gives its new id. Rejects with UNKNOWN_BOT, UNKNOWN_DEAD_LETTER, or as a push does. */
  replay(letter: LetterName): Promise<number>
  /** All dead letters of a queue, oldest first. Rejects as `replay` where there are some and the first is refused. */
  replayAll(queue: Omit<LetterName, 'updateId'>): Promise<ReplayResult>
  /** Rejects with UNKNOWN_BOT. */
  report(botId: number): Promise<BotReport>
  /** Bots of this owner's open shards with ids above `after`, ascending. */
  list(page: { readonly after: number; readonly limit: number }): Promise<BotList>
  push(requests: readonly PushRequest[]): PushReceipt
}
