/**
 * The client for producers: `import { PostboteClient } from 'postbote/client'` (docs/producer-client.md).
 *
 * Single calls go over a pool of connections, each push with an idempotency key and repeated with the same key and
 * bytes while it may help; whoever has many updates opens a stream. It imports nothing of the server that runs.
 */
import { randomUUID } from 'node:crypto'
import { isRecord } from './answer-error.ts'
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
  refuseUnknown,
  streamSettings,
} from './client-options.ts'
import { PostboteClientError } from './postbote-client-error.ts'
import { type PushAllResult, pushAll } from './push-all.ts'
import { PushStream } from './push-stream.ts'
import { pushCall } from './push-call.ts'
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

export interface NewBot {
  /** A free one is taken if not given. */
  readonly botId?: number
  readonly firstName: string
  readonly username: string
}

export interface IssuedToken {
  readonly botId: number
  /** Shown only once. */
  readonly token: string
}

/** What a producer wants to know of a bot; `GET /v1/bots/:id` has more. */
export interface BotState {
  readonly botId: number
  readonly firstName: string
  readonly username: string
  readonly mode: 'polling' | 'webhook'
  /** Updates that it has not confirmed yet, or that its webhook has not taken yet. */
  readonly pendingCount: number
}

export class PostboteClient<Payloads extends UpdatePayloads = AnyPayloads> {
  readonly #connection: ServerConnection
  readonly #settings: ClientSettings
  readonly #surroundings: ClientSurroundings
  readonly #onRetry: ClientOptions['onRetry']
  readonly #calls: RepeatedCalls
  readonly #streams = new Set<PushStream<Payloads>>()
  #isClosed = false

  /** Throws a TypeError that names the option that cannot be used. Connects with the first call. */
  constructor(options: ClientOptions, surroundings: ClientSurroundings = clientSurroundings) {
    this.#settings = clientSettings(options)
    const { url, socketPath, key, onRetry } = options
    const { connections, timeoutMs } = this.#settings
    const connection = new ServerConnection({ url, socketPath, key, connections, timeoutMs })
    this.#connection = connection
    this.#onRetry = onRetry === undefined ? undefined : harmless(onRetry)
    this.#surroundings = surroundings
    this.#calls = new RepeatedCalls({
      attempt: (call, signal) => connection.call(call, signal),
      settings: this.#settings,
      surroundings,
      onRetry: this.#onRetry,
    })
  }

  /** Not repeated where it may have been done: its token would be lost. */
  async createBot(bot: NewBot): Promise<IssuedToken> {
    const { botId, firstName, username } = bot
    const body = JSON.stringify({ bot_id: botId, first_name: firstName, username })
    const call: PrivateCall = { method: 'POST', path: '/v1/bots', body }
    return issuedToken(await this.#call(call, { isRepeatable: false }))
  }

  async getBot(botId: number): Promise<BotState> {
    const path = `/v1/bots/${botId}`
    return botState(await this.#call({ method: 'GET', path }, { isRepeatable: true }))
  }

  /** The old token stops at once, or after so many seconds. Not repeated where it may have been done. */
  async rotateToken(botId: number, { overlapS = 0 } = {}): Promise<IssuedToken> {
    const body = JSON.stringify({ overlap: overlapS })
    const call: PrivateCall = { method: 'POST', path: `/v1/bots/${botId}/token`, body }
    return issuedToken(await this.#call(call, { isRepeatable: false }))
  }

  /** With its queues. Not repeated where it may have been done: that would fail with UNKNOWN_BOT. */
  async removeBot(botId: number): Promise<void> {
    await this.#call({ method: 'DELETE', path: `/v1/bots/${botId}` }, { isRepeatable: false })
  }

  /** Resolves when the update is on disk, or the bot does not want it. Rejects with a PostboteClientError. */
  async push(
    botId: number,
    update: PushedUpdate<Payloads>,
    options: PushOptions = {},
  ): Promise<PushResult> {
    refuseUnknown(options, optionNames.ofPush)
    const { idempotencyKey = this.#newKey(), signal } = options
    const call = pushCall(botId, update, { ...options, idempotencyKey })
    const isRepeatable = idempotencyKey !== undefined
    const outcome = pushOutcome(await this.#call(call, { isRepeatable, signal }))
    if (outcome instanceof PostboteClientError) throw outcome
    return outcome
  }

  /** For many updates at a time: one connection, nothing waits for the answer to what was pushed before. */
  openStream(options: StreamOptions = {}): PushStream<Payloads> {
    if (this.#isClosed) throw new PostboteClientError('CLOSED')
    const stream = new PushStream<Payloads>({
      openRequest: (events) => new StreamRequest(this.#connection, events),
      settings: this.#settings,
      bounds: streamSettings(options),
      surroundings: this.#surroundings,
      newKey: () => this.#newKey(),
      onRetry: this.#onRetry,
      onClosed: () => this.#streams.delete(stream),
    })
    this.#streams.add(stream)
    return stream
  }

  /**
   * Pushes all that comes through a stream of its own and yields the results in order, each with its item. An update
   * that is refused is a result with an error. Reads no further than results are taken.
   */
  pushAll<Item extends PushItem<Payloads>>(
    items: AsyncIterable<Item> | Iterable<Item>,
    options: StreamOptions = {},
  ): AsyncGenerator<PushAllResult<Item>, void, undefined> {
    return pushAll(items, () => this.openStream(options), streamSettings(options).pairsMax)
  }

  /**
   * Takes nothing more, finishes what is under way, and closes the connections. What has no result after `timeoutMs` is
   * rejected with CLOSED, and with `isOutcomeUnknown` where it was sent. A second call may shorten the wait of the first.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const timeoutMs = closeTimeoutMs(options, this.#settings)
    this.#isClosed = true
    const timer = this.#surroundings.clock.after(timeoutMs, () => this.#calls.giveUp())
    const streams = [...this.#streams].map((stream) => stream.close({ timeoutMs }))
    await Promise.all([this.#calls.idle(), ...streams])
    timer.cancel()
    await this.#connection.close()
  }

  #newKey(): string | undefined {
    return this.#settings.hasIdempotencyKeys ? randomUUID() : undefined
  }

  async #call(call: PrivateCall, attempts: Attempts): Promise<unknown> {
    if (this.#isClosed) throw new PostboteClientError('CLOSED')
    return this.#calls.run(call, attempts)
  }
}

/** What the callback throws is uncaught, as from a listener: the pushes that it is told of go on. */
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

function issuedToken(answer: unknown): IssuedToken {
  if (isRecord(answer)) {
    const { bot_id: botId, token } = answer
    if (typeof botId === 'number' && typeof token === 'string') return { botId, token }
  }
  throw new PostboteClientError('UNEXPECTED_ANSWER')
}

function botState(answer: unknown): BotState {
  if (isRecord(answer)) {
    const { bot_id: botId, first_name: firstName, username, mode, pending: pendingCount } = answer
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
