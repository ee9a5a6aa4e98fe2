/**
 * The bot API: `/bot<TOKEN>/METHOD`, from the request line to the envelope.
 *
 *   target -> token's shape (SPEC 2, steps 1-3) -> method -> parameters -> the bot (step 4) -> the method's file
 *
 * Fastify routes and owns the life of the server; the body is read by the one reader in params.ts, because stock
 * parsers refuse what real frameworks send, and answers go out as slices that no serializer touches.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import Fastify, { type FastifyInstance } from 'fastify'
import type { BotQueue } from '../bots/bot-queue.ts'
import type { BotService } from '../bots/bot-service.ts'
import type { ClientPresence } from '../bots/poller.ts'
import { type Token, type TokenFilter, parseToken } from '../bots/token.ts'
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { PostboteError, toPostboteError } from '../errors.ts'
import { certificateRequestBytesMax, parameterBytesMax } from '../limits.ts'
import type { MethodAnswer, Method } from './method-call.ts'
import { close } from './methods/close.ts'
import { deleteWebhook } from './methods/delete-webhook.ts'
import { getMe } from './methods/get-me.ts'
import { getUpdates } from './methods/get-updates.ts'
import { getWebhookInfo } from './methods/get-webhook-info.ts'
import { logOut } from './methods/log-out.ts'
import { makeSetWebhook } from './methods/set-webhook.ts'
import { readParams } from './params.ts'
import type { RefusalPacing } from './refusal-pacing.ts'
import { sendError, sendResult } from './reply.ts'
import { type MethodTarget, parseTarget } from './target.ts'
import type { UpdatesReply } from './updates-reply.ts'

/** SPEC 2: look-ups of unknown tokens per peer address. */
export interface CreationGate {
  takeCreationSlot(
    address: string,
    nowMs: number,
  ): { readonly ok: true } | { readonly ok: false; readonly retryAfterS: number }
}

export interface BotApiOptions {
  readonly bots: BotService
  readonly clock: Clock
  readonly counters: Counters
  readonly pacing: RefusalPacing
  readonly creationGate: CreationGate
  readonly updatesReply: UpdatesReply
  readonly filter: TokenFilter | undefined
  readonly webhookConnectionsMax: number
  readonly log: { error(details: object, message: string): void }
  peerAddressOf(request: IncomingMessage): string
}

export type BotApi = FastifyInstance

export class BotApiHandler {
  readonly #options: BotApiOptions
  readonly #methods: ReadonlyMap<string, Method>

  constructor(options: BotApiOptions) {
    this.#options = options
    this.#methods = new Map<string, Method>([
      ['getupdates', getUpdates],
      ['setwebhook', makeSetWebhook({ connectionsMax: options.webhookConnectionsMax })],
      ['deletewebhook', deleteWebhook],
      ['getwebhookinfo', getWebhookInfo],
      ['getme', getMe],
      ['logout', logOut],
      ['close', close],
    ])
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#options.counters.add('requests_bot', 1)
    let queue: BotQueue | undefined
    try {
      const target = parseTarget(request.url ?? '/')
      if (target.kind === 'unknown') throw new PostboteError('NOT_FOUND')
      const token = parseToken(target.token, this.#options.filter)
      queue = await this.#authorize(request, token, target.isTest)
      await this.#answer({ request, response, target, queue })
    } catch (error) {
      await this.#refuse({ request, response, queue }, this.#expected(error))
    }
  }

  async #authorize(request: IncomingMessage, token: Token, isTest: boolean): Promise<BotQueue> {
    try {
      return await this.#options.bots.authorize(token, isTest)
    } catch (error) {
      if (!(error instanceof PostboteError) || error.code !== 'UNKNOWN_TOKEN') throw error
      const { clock, creationGate } = this.#options
      const address = this.#options.peerAddressOf(request)
      const slot = creationGate.takeCreationSlot(address, clock.nowMs())
      if (slot.ok) throw error
      throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: slot.retryAfterS, cause: error })
    }
  }

  async #answer(exchange: {
    readonly request: IncomingMessage
    readonly response: ServerResponse
    readonly target: MethodTarget
    readonly queue: BotQueue
  }): Promise<void> {
    const { request, response, target, queue } = exchange
    const method = this.#methods.get(target.method)
    if (method === undefined) throw new PostboteError('METHOD_NOT_FOUND')
    const params = await readParams(request, {
      query: target.query,
      bytesMax: parameterBytesMax,
      ...(method === this.#methods.get('setwebhook')
        ? { certificateBytesMax: certificateRequestBytesMax }
        : {}),
    })
    const presence: ClientPresence = { onGone: undefined }
    const answer = method({ queue, params, presence })
    if (!(answer instanceof Promise)) {
      await this.#send({ request, response }, answer)
      return
    }
    const onClose = (): void => {
      presence.isGone = true
      presence.onGone?.()
    }
    response.once('close', onClose)
    try {
      await this.#send({ request, response }, await answer)
    } finally {
      response.off('close', onClose)
    }
  }

  #send(
    exchange: { readonly request: IncomingMessage; readonly response: ServerResponse },
    answer: MethodAnswer,
  ): void | Promise<void> {
    if ('updates' in answer) {
      const acceptEncoding = exchange.request.headers['accept-encoding']
      return this.#options.updatesReply.send(exchange.response, answer.updates, acceptEncoding)
    }
    sendResult(exchange.response, answer.result, answer.description)
    return undefined
  }

  /** Refusals of tokens are paced per peer address, a 429 of a valid token per bot. */
  async #refuse(
    exchange: {
      readonly request: IncomingMessage
      readonly response: ServerResponse
      readonly queue: BotQueue | undefined
    },
    error: PostboteError,
  ): Promise<void> {
    const { request, response, queue } = exchange
    let isClosing = false
    if (queue === undefined && [401, 421, 429].includes(error.status)) {
      const release = await this.#options.pacing.hold(this.#options.peerAddressOf(request))
      isClosing = release === 'close'
    } else if (error.status === 429) {
      await queue?.pacer.pace({ alwaysDelayed: false })
    }
    sendError(response, error, { close: isClosing })
  }

  #expected(error: unknown): PostboteError {
    const expected = toPostboteError(error)
    if (expected.code === 'INTERNAL') {
      const cause = error instanceof Error ? error.stack : String(error)
      this.#options.log.error({ cause }, 'a request failed by a bug')
    }
    return expected
  }
}

/** The Fastify application around the handler. */
export function createBotApi(options: BotApiOptions): BotApi {
  const handler = new BotApiHandler(options)
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    // Fastify's own refusals (a url it cannot decode, say) go out in the envelope too.
    frameworkErrors: (_error, _request, reply) => {
      reply.hijack()
      sendError(reply.raw, new PostboteError('NOT_FOUND'))
    },
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.all('/*', async (request, reply) => {
    reply.hijack()
    await handler.handle(request.raw, reply.raw)
  })
  app.setNotFoundHandler((_request, reply) => {
    reply.hijack()
    sendError(reply.raw, new PostboteError('NOT_FOUND'))
  })
  return app
}
