/**
 * The bot API: `/bot<TOKEN>/METHOD`, from the request line to the envelope, and `/file/bot<TOKEN>/PATH`.
 *
 *   target -> verb -> token's shape (SPEC 2, steps 1-3) -> the bot (step 4) -> method -> parameters -> the method's file
 *                                                                      \--not ours, a file--> the upstream server, or 404
 *
 * Fastify owns the life of the server and what goes on to the upstream server, and has no routes. The body is read by
 * the one reader in params.ts, because stock parsers refuse what real frameworks send, and answers go out as slices
 * that no serializer touches.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import Fastify, { type FastifyInstance, type FastifyReply } from 'fastify'
import type { BotQueue } from '../bots/bot-queue.ts'
import type { BotService } from '../bots/bot-service.ts'
import type { ClientPresence } from '../bots/poller.ts'
import { type TokenFilter, readToken } from '../bots/token.ts'
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { PostboteError, toPostboteError } from '../errors.ts'
import {
  brokenShardRetryAfterS,
  certificateRequestBytesMax,
  parameterBytesMax,
  requestTimeoutMs,
} from '../limits.ts'
import type { BodyBudget } from '../http/body-budget.ts'
import { dropBody, hasBody } from '../http/body.ts'
import type { BudgetGate } from '../http/budget-gate.ts'
import { endEmptyRequest } from '../http/end-empty-request.ts'
import { type CloseWatcher, unwatchClose, watchClose } from '../http/once-closed.ts'
import type { MethodAnswer, Method } from './method-call.ts'
import { isForeign, makeOwnMethods, runsMethods } from './own-methods.ts'
import { type Params, readParams } from './params.ts'
import type { RefusalPacing } from './refusal-pacing.ts'
import { sendError, sendResult } from './reply.ts'
import {
  type FileTarget,
  isFilePath,
  isMethodName,
  type MethodTarget,
  parseTarget,
} from './target.ts'
import type { UpdatesReply } from './updates-reply.ts'

/** SPEC 2: look-ups of unknown tokens per client address. */
export interface CreationGate {
  takeCreationSlot(
    address: string,
    nowMs: number,
  ): { readonly ok: true } | { readonly ok: false; readonly retryAfterS: number }
}

/** Answers what this server does not, in its name. */
export interface Upstream {
  /** Lets the server take what it sends on: bodies of any type and size. */
  addTo(app: FastifyInstance): void
  pass(reply: FastifyReply, target: MethodTarget | FileTarget): void
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
  /** Gets the methods that are not ours, and files; its server lets requests take longer to arrive than those may. */
  readonly upstream?: Upstream | undefined
  /** A form of a token that may be stored; absent: none is. */
  readonly sealToken?: ((token: string) => string) | undefined
  readonly log: { error(details: object, message: string): void }
  /** For bodies of own methods. */
  readonly bodies: BodyBudget<IncomingMessage>
  clientAddressOf(request: IncomingMessage): string
  /** Charges a bot and its client for the work that a call with a body makes. */
  readonly budget?: Pick<BudgetGate, 'turn' | 'begin' | 'spent' | 'noteNoToken'> | undefined
  /** A refusal of this request waits for its time to go out; what is returned is called when it goes. */
  holding?(request: IncomingMessage): () => void
}

export interface BotApi {
  /** Its life is the server's. */
  readonly app: FastifyInstance
  /** Answers a request. */
  readonly listener: RequestListener
}

type PassOn = (target: MethodTarget | FileTarget) => void

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Sends the call on to the upstream server, which answers it. */
  readonly passOn?: PassOn | undefined
  /** The queue that a valid token has opened. */
  readonly queue?: BotQueue
}

interface AuthorizedExchange extends Exchange {
  readonly queue: BotQueue
  readonly target: MethodTarget | FileTarget
}

/** A call of a method that this server has. */
interface OwnCall {
  readonly exchange: AuthorizedExchange
  readonly method: Method
  /** Valid. */
  readonly token: string
}

const noQuery = {}

/** Of the client of one call, as its connection tells. */
class Presence implements ClientPresence, CloseWatcher {
  isGone = false
  onGone: (() => void) | undefined

  closed(): void {
    this.isGone = true
    this.onGone?.()
  }
}

export class BotApiHandler {
  readonly #options: BotApiOptions
  readonly #methods: ReadonlyMap<string, Method>

  constructor(options: BotApiOptions) {
    this.#options = options
    this.#methods = makeOwnMethods({
      connectionsMax: options.webhookConnectionsMax,
      sealToken: options.sealToken,
    })
  }

  /**
   * Answers one request, whatever happens. Nothing waits that need not: a bot in memory and a request without a
   * body are answered in the turn in which they came.
   */
  handle(request: IncomingMessage, response: ServerResponse, passOn?: PassOn): void {
    this.#options.counters.add('requests_bot', 1)
    try {
      const target = parseTarget(request.url ?? '/')
      const isFile = target.kind === 'file'
      if (target.kind === 'unknown' || (isFile && passOn === undefined)) {
        throw new PostboteError('NOT_FOUND')
      }
      // Before the token, so that the answer says nothing about it.
      if (!isFile && !runsMethods(request)) throw new PostboteError('VERB_NOT_ALLOWED')
      const token = readToken(target.token, this.#options.filter)
      const queue = this.#options.bots.authorize(token, !isFile && target.isTest)
      if (queue instanceof Promise) {
        queue.then(
          (found) => this.#call({ request, response, passOn, target, queue: found }),
          (error: unknown) => this.#refuse({ request, response }, error),
        )
      } else {
        this.#call({ request, response, passOn, target, queue })
      }
    } catch (error) {
      void this.#refuse({ request, response }, error)
    }
  }

  /** No promise is made where nothing has to be waited for. */
  #call(exchange: AuthorizedExchange): void {
    try {
      const answering = this.#answer(exchange)
      if (answering !== undefined) {
        answering.catch((error: unknown) => this.#refuse(exchange, error))
      }
    } catch (error) {
      void this.#refuse(exchange, error)
    }
  }

  #answer(exchange: AuthorizedExchange): void | Promise<void> {
    const { request, target, passOn } = exchange
    if (target.kind === 'file') {
      if (passOn === undefined || !isFilePath(target.path)) throw new PostboteError('NOT_FOUND')
      passOn(target)
      return undefined
    }
    const method = this.#methods.get(target.method)
    if (method === undefined) {
      if (passOn === undefined || !isMethodName(target.method)) {
        throw new PostboteError('METHOD_NOT_FOUND')
      }
      passOn(target)
      return undefined
    }
    const call = { exchange, method, token: target.token }
    let sinceMs: number | undefined
    const { budget } = this.#options
    const reading = readParams(request, {
      onBody: (bodyBytes) => {
        const begin = (): void => {
          sinceMs = budget?.begin()
        }
        const turn = budget?.turn(request, { botId: exchange.queue.bot.botId, bodyBytes })
        if (turn === undefined) begin()
        return turn?.then(begin)
      },
      query: target.query,
      bytesMax: parameterBytesMax,
      certificateBytesMax: target.method === 'setwebhook' ? certificateRequestBytesMax : undefined,
      lease: hasBody(request) ? this.#options.bodies.leaseFor(request) : undefined,
    })
    if (!(reading instanceof Promise)) return this.#run(call, reading)
    const { bot } = exchange.queue
    const { record } = bot
    const charge = (): void => {
      if (sinceMs !== undefined) budget?.spent(request, bot.botId, sinceMs)
    }
    return this.#inTime(reading).then(
      (params) => {
        // The body may have taken its time to come.
        const isSame = bot.record === record && !bot.isRemoved
        try {
          return isSame ? this.#run(call, params) : this.#runStill(call, params)
        } finally {
          charge()
        }
      },
      (error: unknown) => {
        charge()
        throw error
      },
    )
  }

  /** The token was renewed meanwhile, or the bot removed: may the call go on? */
  async #runStill({ exchange, method, token }: OwnCall, params: Params): Promise<void> {
    const { bots, filter } = this.#options
    const { target } = exchange
    const isTest = target.kind === 'method' && target.isTest
    const queue = await bots.authorize(readToken(token, filter), isTest)
    await this.#run({ exchange: { ...exchange, queue }, method, token }, params)
  }

  #run({ exchange, method, token }: OwnCall, params: Params): void | Promise<void> {
    const presence = new Presence()
    const answer = method({ queue: exchange.queue, params, token, presence })
    if (!(answer instanceof Promise)) return this.#send(exchange, answer)
    this.#sendLater(exchange, answer, presence)
    return undefined
  }

  /**
   * With an upstream the server leaves requests the time that uploads take. Ours keep their own: a queue is not
   * held in memory for longer than they may take to arrive.
   */
  #inTime(reading: Promise<Params>): Promise<Params> {
    const { clock, upstream } = this.#options
    if (upstream === undefined) return reading
    return new Promise((resolve, reject) => {
      const timer = clock.after(requestTimeoutMs, () => {
        reject(new PostboteError('REQUEST_TIMEOUT'))
      })
      reading.finally(() => timer.cancel()).then(resolve, reject)
    })
  }

  /**
   * Meanwhile the client may go; a poll of it is over then. Thousands wait here at a time: nothing is kept of the call
   * but what its answer takes.
   */
  #sendLater(
    { request, response, queue }: AuthorizedExchange,
    answer: Promise<MethodAnswer>,
    presence: Presence,
  ): void {
    const { socket } = request
    watchClose(socket, presence)
    answer.then(
      (given) => {
        unwatchClose(socket, presence)
        return this.#sendSafely({ request, response, queue }, given)
      },
      (error: unknown) => {
        unwatchClose(socket, presence)
        void this.#refuse({ request, response, queue }, error)
      },
    )
  }

  #sendSafely(exchange: Exchange, answer: MethodAnswer): void {
    try {
      this.#send(exchange, answer)?.catch((error: unknown) => this.#refuse(exchange, error))
    } catch (error) {
      void this.#refuse(exchange, error)
    }
  }

  #send({ request, response }: Exchange, answer: MethodAnswer): void | Promise<void> {
    if ('result' in answer) {
      sendResult(response, answer.result, answer.description)
      return undefined
    }
    return this.#options.updatesReply.send(response, answer, request.headers['accept-encoding'])
  }

  /** Refusals of tokens are paced per client address, a 429 of a valid token per bot. */
  async #refuse(exchange: Exchange, cause: unknown): Promise<void> {
    const { request, response, queue } = exchange
    if (queue === undefined) this.#options.budget?.noteNoToken(request)
    const expected = this.#expected(cause)
    // One that was valid when its call came has cost nothing.
    const error = queue === undefined ? this.#gated(request, expected) : expected
    // What it still sends of this request would be taken for the next.
    let isClosing = error.code === 'REQUEST_TIMEOUT'
    if (queue === undefined && [401, 421, 429].includes(error.status)) {
      // Nobody has read its body, and nobody will: what comes of it while the refusal waits is not kept.
      if (hasBody(request)) dropBody(request)
      const released = this.#options.holding?.(request)
      const release = await this.#options.pacing.hold(this.#options.clientAddressOf(request))
      released?.()
      isClosing = release === 'close'
    } else if (error.status === 429) {
      await queue?.pacer.pace({ alwaysDelayed: false })
    }
    sendError(response, error, { close: isClosing })
  }

  /** A look-up of an unknown token costs its client address a slot. */
  #gated(request: IncomingMessage, error: PostboteError): PostboteError {
    if (error.code !== 'UNKNOWN_TOKEN') return error
    const { clock, creationGate } = this.#options
    const address = this.#options.clientAddressOf(request)
    const slot = creationGate.takeCreationSlot(address, clock.nowMs())
    if (slot.ok) return error
    return new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: slot.retryAfterS, cause: error })
  }

  #expected(error: unknown): PostboteError {
    const expected = toPostboteError(error)
    if (expected.code === 'SHARD_BROKEN') {
      // What is damaged, and where, is the operator's business.
      const { retryAfterS = brokenShardRetryAfterS } = expected
      return new PostboteError('BOT_UNAVAILABLE', { retryAfterS, cause: expected })
    }
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
    // The one reader takes the query apart.
    routerOptions: { querystringParser: () => noQuery },
    // Fastify's own refusals (a url it cannot decode, say) go out in the envelope too.
    frameworkErrors: (_error, _request, reply) => {
      reply.hijack()
      sendError(reply.raw, new PostboteError('NOT_FOUND'))
    },
  })
  const { upstream } = options
  upstream?.addTo(app)
  // There are no routes, since Fastify calls them only where it can read the Content-Type: this hook comes before
  // whatever it does with a request. It waits for a third argument to be called, and so does nothing by itself.
  app.addHook('onRequest', (request, reply) => {
    if (upstream === undefined) {
      reply.hijack()
      handler.handle(request.raw, reply.raw)
    } else {
      // A hijacked reply cannot be handed to reply-from.
      handler.handle(request.raw, reply.raw, (target) => upstream.pass(reply, target))
    }
  })
  return {
    app,
    listener: (request, response) => {
      if (isPlain(request, upstream !== undefined)) {
        endEmptyRequest(request)
        handler.handle(request, response)
      } else {
        app.routing(request, response)
      }
    },
  }
}

/**
 * Whether the handler can answer it by itself: Fastify would only find the one route and hand it on, at the price of
 * its own request and reply. Its are rare verbs and what goes on to the upstream server.
 */
function isPlain(request: IncomingMessage, hasUpstream: boolean): boolean {
  return runsMethods(request) && !(hasUpstream && isForeign(request.url ?? '/'))
}
