/**
 * The client for producers: `import { PostboteClient } from 'postbote/client'` (docs/use/client.md).
 *
 * Single calls use a pool of connections. Each push has an idempotency key, and a retry sends the same key and bytes. A
 * stream serves producers with many updates. At run time the client loads no code of the server except a few shared modules.
 */
import { randomUUID } from 'node:crypto'
import { isRecord } from './response-error.ts'
import {
  type ClientOptions,
  type ClientSettings,
  type ClientSurroundings,
  type CloseOptions,
  type Retry,
  type StreamOptions,
  clientSettings,
  clientSurroundings,
  closeTimeoutMs,
  optionNames,
  streamSettings,
} from './client-options.ts'
import { PostboteClientError } from './postbote-client-error.ts'
import { type PushAllResult, pushAll } from './push-all.ts'
import { PushStream } from './push-stream.ts'
import { pushCall, refuseUnknownPushOption } from './push-call.ts'
import { pushOutcome } from './push-outcome.ts'
import type {
  AnyPayloads,
  PushedUpdate,
  PushItem,
  PushOptions,
  PushResult,
  UpdatePayloads,
} from './pushed-update.ts'
import { type Attempts, RepeatedCalls } from './repeated-calls.ts'
import { type PrivateCall, ServerConnection } from './server-connection.ts'
import { ShardGroups } from './shard-groups.ts'
import { StreamRequest } from './stream-request.ts'

export type { ClientOptions, CloseOptions, Retry, StreamOptions } from './client-options.ts'
export type { PostboteClientErrorCode } from './postbote-client-error.ts'
export type { PushAllResult } from './push-all.ts'
export type { PushStream } from './push-stream.ts'
export type {
  AnyPayloads,
  PushedUpdate,
  PushItem,
  PushOptions,
  PushResult,
  StreamPushOptions,
  UpdatePayloads,
} from './pushed-update.ts'
export { PostboteClientError }
export { verifyWebhook } from './verify-webhook.ts'
export type { VerifyWebhookOptions, WebhookHeaders } from './verify-webhook.ts'

/** What `createBot` registers. */
export interface NewBot {
  /** From 100 to 2^52 - 1. The server picks a free id if it is left out. */
  readonly botId?: number
  readonly firstName: string
  readonly username: string
  /** A later getUpdates call ends the one that waits with an empty list, instead of 409. */
  readonly polls?: 'take_over' | null
  /** A token that another server has made; its bot has the id in it. Only a server with `--foreign-tokens` takes one. */
  readonly token?: string
}

/** A bot id with its new token. */
export interface IssuedToken {
  readonly botId: number
  /** The complete token, `<bot_id>:<secret>`. The server shows it only this once. */
  readonly token: string
}

/** The part of a bot's state that a producer needs; `GET /v1/bots/:id` returns more. */
export interface BotState {
  readonly botId: number
  readonly firstName: string
  readonly username: string
  readonly mode: 'polling' | 'webhook'
  /** Updates that the bot has not confirmed yet, or that its webhook has not accepted yet. */
  readonly pendingCount: number
}

/**
 * Pushes updates to bots and manages bots over the private API of one server.
 *
 * Calls that fail reject with a PostboteClientError. Its `code` is one of docs/reference/errors.md or one of the client:
 * CONNECTION_FAILED, CONNECTION_LOST, TIMEOUT, UNEXPECTED_ANSWER, TOO_MANY_UNDER_WAY (16,384 single calls without a
 * response) or CLOSED. Calls are retried as long as that may help and cannot do anything twice. Only an unusable option
 * of the constructor, `openStream`, `pushAll` or `close` is a TypeError.
 *
 * @example
 * ```ts
 * const client = new PostboteClient({ url: 'http://127.0.0.1:8082', key })
 * const { botId, token } = await client.createBot({ firstName: 'Echo', username: 'echo_bot' })
 * const message = { message_id: 1, date: 1795259700, chat: { id: 42, type: 'private' }, text: 'hello' }
 * const result = await client.push(botId, { message }, { orderingKey: '42' })
 * if (!result.isFiltered) console.log(result.updateId)
 * await client.close()
 * ```
 *
 * @typeParam Payloads - The payload type of each update type, for example the `Update` of grammY. Default: any object.
 */
export class PostboteClient<Payloads extends UpdatePayloads = AnyPayloads> {
  readonly #connection: ServerConnection
  /** The nodes that the user has named. */
  readonly #nodes: readonly ServerConnection[]
  readonly #groups: ShardGroups
  readonly #settings: ClientSettings
  readonly #surroundings: ClientSurroundings
  readonly #onRetry: ClientOptions['onRetry']
  readonly #calls: RepeatedCalls
  readonly #streams = new Set<PushStream<Payloads>>()
  #isClosed = false

  /**
   * Creates a client. It connects with the first call.
   *
   * @param options - Where the server is, the key, and how often to retry.
   * @param surroundings - Clock and random numbers, which tests replace.
   * @throws TypeError that names an option that does not exist or cannot be used.
   */
  constructor(options: ClientOptions, surroundings: ClientSurroundings = clientSurroundings) {
    this.#settings = clientSettings(options)
    const { url, nodeUrls = [], socketPath, key, onRetry } = options
    const { connections, timeoutMs } = this.#settings
    const { clock } = surroundings
    const nodeList = listOfNodes(nodeUrls)
    this.#nodes = nodeList.map((node) => {
      const nodePlace = { url: node, urlOption: 'nodeUrls', key }
      return new ServerConnection({ ...nodePlace, connections, timeoutMs, clock })
    })
    // Without a URL, the key goes to a node that was named, and not to the default address.
    const place = { url: socketPath === undefined ? (url ?? nodeList[0]) : url, socketPath, key }
    const connection = new ServerConnection({ ...place, connections, timeoutMs, clock })
    this.#connection = connection
    this.#onRetry = onRetry === undefined ? undefined : harmless(onRetry)
    this.#surroundings = surroundings
    this.#groups = new ShardGroups({
      connection,
      nodes: this.#nodes,
      clock,
      onRetry: this.#onRetry,
    })
    this.#calls = new RepeatedCalls({
      attempt: (call, signal) => connection.call(call, signal),
      settings: this.#settings,
      surroundings,
      onRetry: this.#onRetry,
      unreachedMs: () => connection.unreachedMs(),
    })
  }

  /**
   * Registers a bot.
   *
   * A call that may have been carried out is not retried, because a retry could not return the token.
   *
   * @param bot - Its names and, optionally, its id and its token.
   * @returns The bot's id and its token, which the server shows only this once.
   * @throws PostboteClientError: BOT_EXISTS if the id is taken, BAD_REQUEST if the server rejects a field, or any code
   *   of the class description.
   */
  async createBot(bot: NewBot): Promise<IssuedToken> {
    const { botId, firstName, username, polls, token } = bot
    const body = JSON.stringify({ bot_id: botId, first_name: firstName, username, polls, token })
    const call: PrivateCall = { method: 'POST', path: '/v1/bots', body }
    return issuedToken(await this.#call(call, { isRepeatable: false }))
  }

  /**
   * Returns the names, the mode and the number of pending updates of a bot.
   *
   * @param botId - The bot's id.
   * @throws PostboteClientError: UNKNOWN_BOT, or any code of the class description.
   */
  async getBot(botId: number): Promise<BotState> {
    const path = `/v1/bots/${botId}`
    return botState(await this.#call({ method: 'GET', path }, { isRepeatable: true }))
  }

  /**
   * Issues a new token for a bot. A call that may have been carried out is not retried.
   *
   * @param botId - The bot's id.
   * @param options - `overlapS`: seconds for which the old token stays valid, at most a week. Default: 0, not at all. `token`: one
   *   that another server has made for this bot. Default: a new one.
   * @returns The bot's id and its new token, which the server shows only this once.
   * @throws PostboteClientError: UNKNOWN_BOT, BAD_REQUEST for an unusable overlap, or any code of the class description.
   */
  async rotateToken(
    botId: number,
    { overlapS = 0, token }: { readonly overlapS?: number; readonly token?: string } = {},
  ): Promise<IssuedToken> {
    const body = JSON.stringify({ overlap: overlapS, token })
    const call: PrivateCall = { method: 'POST', path: `/v1/bots/${botId}/token`, body }
    return issuedToken(await this.#call(call, { isRepeatable: false }))
  }

  /**
   * Removes a bot with its queues.
   *
   * A call that may have been carried out is not retried, because the retry would fail with UNKNOWN_BOT.
   *
   * @param botId - The bot's id.
   * @throws PostboteClientError: UNKNOWN_BOT, or any code of the class description.
   */
  async removeBot(botId: number): Promise<void> {
    await this.#call({ method: 'DELETE', path: `/v1/bots/${botId}` }, { isRepeatable: false })
  }

  /**
   * Pushes one update over the connection pool.
   *
   * @param botId - The bot that receives the update.
   * @param update - The update without its id: an object with one of the update types as its only key.
   * @param options - Ordering key, time to live in seconds, /test/ queue, idempotency key, and a signal that ends the wait.
   * @returns Resolves when the update is synced to disk, with its update id, or when the server has filtered it because
   *   the bot does not want its type.
   * @throws PostboteClientError: ABORTED, BAD_REQUEST for an option that does not exist or cannot be used, BAD_UPDATE,
   *   UPDATE_TOO_LARGE, UNKNOWN_BOT, IDEMPOTENCY_MISMATCH, TOO_MANY_KEYS, QUEUE_FULL, DISK_LOW, OUTCOME_UNKNOWN, or any
   *   code of the class description.
   */
  async push(
    botId: number,
    update: PushedUpdate<Payloads>,
    options: PushOptions = {},
  ): Promise<PushResult> {
    refuseUnknownPushOption(options, optionNames.ofPush)
    const { idempotencyKey = this.#newKey(), signal } = options
    const call = pushCall(botId, update, { ...options, idempotencyKey })
    const isRepeatable = idempotencyKey !== undefined
    const outcome = pushOutcome(await this.#call(call, { isRepeatable, signal }))
    if (outcome instanceof PostboteClientError) throw this.#connection.withoutKey(outcome)
    return outcome
  }

  /**
   * Opens a stream: many pushes over a few connections, where no push waits for the result of another.
   *
   * @param options - The bounds at which `ready` waits.
   * @returns The stream. It connects with its first push; close it to let the process end.
   * @throws PostboteClientError: CLOSED if the client is closed.
   * @throws TypeError that names an option that does not exist or cannot be used.
   */
  openStream(options: StreamOptions = {}): PushStream<Payloads> {
    if (this.#isClosed) throw new PostboteClientError('CLOSED')
    const stream = new PushStream<Payloads>({
      openRequest: (place, events) => new StreamRequest(place, events),
      groups: this.#groups,
      settings: this.#settings,
      bounds: streamSettings(options),
      surroundings: this.#surroundings,
      newKey: () => this.#newKey(),
      withoutKey: (error) => this.#connection.withoutKey(error),
      onRetry: this.#onRetry,
      onClosed: () => this.#streams.delete(stream),
    })
    this.#streams.add(stream)
    return stream
  }

  /**
   * Pushes all items over one stream and yields the results in the order of the items.
   *
   * A refused update yields a result with an `error`; the other items go on. The source is read only as far as the
   * server keeps up and results are taken. When the caller leaves the loop early, what was pushed is finished and no
   * further item is pushed.
   *
   * @param items - Objects with `botId`, `update` and `options`, and any other properties that the caller wants back.
   * @param options - The bounds of the stream; `pairsMax` also bounds the results that have not been taken.
   * @returns A generator of `{ item, result }` or `{ item, error }`.
   * @throws PostboteClientError: CLOSED, from the generator, if the client is closed.
   * @throws TypeError that names an option that does not exist or cannot be used, and from the generator any error of
   *   the source.
   */
  pushAll<Item extends PushItem<Payloads>>(
    items: AsyncIterable<Item> | Iterable<Item>,
    options: StreamOptions = {},
  ): AsyncGenerator<PushAllResult<Item>, void, undefined> {
    return pushAll(items, () => this.openStream(options), streamSettings(options).pairsMax)
  }

  /**
   * Accepts no more calls, waits for those in progress, and closes the connections.
   *
   * Calls and pushes without a result after `timeoutMs` are rejected with CLOSED, and `isOutcomeUnknown` is set if they
   * were sent. A second call may shorten the wait of the first.
   *
   * @param options - `timeoutMs`: the longest wait, in milliseconds. Default: the client's `timeoutMs`.
   * @throws TypeError that names an option that does not exist or cannot be used.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const timeoutMs = closeTimeoutMs(options, this.#settings)
    this.#isClosed = true
    const timer = this.#surroundings.clock.after(timeoutMs, () => this.#calls.giveUp())
    const streams = [...this.#streams].map((stream) => stream.close({ timeoutMs }))
    await Promise.all([this.#calls.idle(), ...streams])
    timer.cancel()
    this.#groups.close()
    await Promise.all([this.#connection, ...this.#nodes].map((each) => each.close()))
  }

  #newKey(): string | undefined {
    return this.#settings.hasIdempotencyKeys ? randomUUID() : undefined
  }

  async #call(call: PrivateCall, attempts: Attempts): Promise<unknown> {
    if (this.#isClosed) throw new PostboteClientError('CLOSED')
    return this.#calls.run(call, attempts)
  }
}

/** A client asks at most this many nodes. Chosen: a cluster of more is not known. */
const nodesMax = 64

function listOfNodes(nodeUrls: unknown): readonly string[] {
  if (Array.isArray(nodeUrls) && nodeUrls.length <= nodesMax) return nodeUrls.map(String)
  throw new TypeError(`nodeUrls: expected a list of at most ${nodesMax} URLs`)
}

/**
 * Wraps the callback so that its exception becomes an uncaught exception, as that of an event listener does. The push
 * that it was called for goes on.
 */
function harmless(onRetry: (retry: Retry) => void): (retry: Retry) => void {
  return (retry) => {
    try {
      onRetry(retry)
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }
}

function issuedToken(response: unknown): IssuedToken {
  if (isRecord(response)) {
    const { bot_id: botId, token } = response
    if (typeof botId === 'number' && typeof token === 'string') return { botId, token }
  }
  throw new PostboteClientError('UNEXPECTED_ANSWER')
}

function botState(response: unknown): BotState {
  if (isRecord(response)) {
    const { bot_id: botId, first_name: firstName, username, mode, pending: pendingCount } = response
    if (
      typeof botId === 'number' &&
      typeof firstName === 'string' &&
      typeof username === 'string' &&
      (mode === 'polling' || mode === 'webhook') &&
      typeof pendingCount === 'number'
    ) {
      return { botId, firstName, username, mode, pendingCount }
    }
  }
  throw new PostboteClientError('UNEXPECTED_ANSWER')
}
