/**
 * Serves `/bot<TOKEN>/METHOD` and `/file/bot<TOKEN>/PATH`, from the request line to the response envelope.
 *
 *   target -> verb -> token's shape (protocol.md §2, steps 1-3) -> the bot (step 4) -> method -> parameters -> the method's file
 *                                                                      \--a file, or not a method here--> upstream, or 404
 *
 * Bodies are read by params.ts, because stock parsers reject what real frameworks send. Responses are written as slices of
 * memory, without a serializer.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { BotQueue } from '../bots/bot-queue.ts'
import type { BotRegistry } from '../bots/registry.ts'
import type { ClientPresence } from '../bots/poller.ts'
import { type TokenFilter, readToken } from '../api/token.ts'
import { PostboteError, toPostboteError } from '../kit/errors.ts'
import { certificateRequestBytesMax, parameterBytesMax, requestTimeoutMs } from '../kit/limits.ts'
import type { BodyBudget } from '../admission/budgets/body-budget.ts'
import { dropBody, hasBody } from '../http/body.ts'
import type { BudgetGate } from '../admission/budgets/budget-gate.ts'
import { type CloseWatcher, unwatchClose, watchClose } from '../http/once-closed.ts'
import type { MethodReply, Method } from './method-call.ts'
import { makeOwnMethods, type OwnMethodsOptions } from './own-methods.ts'
import { type Params, paramsOfQuery, readParams } from './params.ts'
import type { TokenRefusals } from '../admission/token-refusals.ts'
import { sendError, sendResult } from '../http/reply.ts'
import {
  addressHint,
  type FileTarget,
  isFilePath,
  isMethodName,
  type MethodTarget,
  targetOf,
  runsMethods,
} from '../http/target.ts'
import type { UpdatesReply } from './get-updates.ts'
import type { Client } from '../http/client.ts'
import type { Log, Surroundings } from '../kit/surroundings.ts'

/** Limits how often a client address may look up unknown tokens (protocol.md §2). */
export interface CreationGate {
  takeCreationSlot(
    address: string,
    nowMs: number,
  ): { readonly ok: true } | { readonly ok: false; readonly retryAfterS: number }
}

/** Forwards calls to the upstream server and sends its responses to the client. */
export interface Upstream {
  /** Registers with the Fastify application what forwarding needs. */
  addTo(app: FastifyInstance): void
  pass(reply: FastifyReply, target: MethodTarget | FileTarget): void
}

export interface BotApiHandlerOptions
  extends OwnMethodsOptions,
    Pick<Surroundings, 'clock' | 'counters'> {
  readonly bots: BotRegistry
  readonly pacing: TokenRefusals
  readonly creationGate: CreationGate
  readonly updatesReply: UpdatesReply
  readonly filter: TokenFilter | undefined
  /**
   * Serves the methods that this server does not have, and files. With an upstream, the HTTP server gives requests more
   * time to arrive than own methods have.
   */
  readonly upstream?: Upstream | undefined
  readonly log: Pick<Log, 'error'>
  /** The budget for bodies of own methods. */
  readonly bodies: BodyBudget<IncomingMessage>
  clientOf(request: IncomingMessage): Pick<Client, 'address'>
  /** Charges a bot and its client for the work that a call with a body causes. */
  readonly budget?: Pick<BudgetGate, 'turn' | 'begin' | 'spent' | 'noteNoToken'> | undefined
  /** Called when the refusal of this request is delayed. The returned function is called when the refusal goes out. */
  holding?(request: IncomingMessage): () => void
}

type PassOn = (target: MethodTarget | FileTarget) => void

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Forwards the call to the upstream server, which responds to it. */
  readonly passOn?: PassOn | undefined
  /** The queue that the valid token belongs to. */
  readonly queue?: BotQueue
}

interface AuthorizedExchange extends Exchange {
  readonly queue: BotQueue
  readonly target: MethodTarget | FileTarget
}

/** A call of a method that this server implements. */
interface OwnCall {
  readonly exchange: AuthorizedExchange
  readonly method: Method
  /** A valid token. */
  readonly token: string
}

/** Whether the client of one call still waits. */
class Presence implements ClientPresence, CloseWatcher {
  isGone = false
  onGone: (() => void) | undefined

  closed(): void {
    this.isGone = true
    this.onGone?.()
  }

  /** The poll ends in the same way, and its response reaches the client. */
  hurried(): void {
    this.closed()
  }
}

export class BotApiHandler {
  readonly #options: BotApiHandlerOptions
  readonly #methods: ReadonlyMap<string, Method>

  constructor(options: BotApiHandlerOptions) {
    this.#options = options
    this.#methods = makeOwnMethods(options)
  }

  /**
   * Serves one request and responds in every case.
   *
   * Nothing is deferred without need: a request without a body for a bot in memory runs in the turn of the event loop
   * in which it arrived.
   */
  handle(request: IncomingMessage, response: ServerResponse, passOn?: PassOn): void {
    this.#options.counters.add('requests_bot', 1)
    try {
      const target = targetOf(request)
      const isFile = target.kind === 'file'
      if (target.kind === 'unknown' || (isFile && passOn === undefined)) {
        const detail = addressHint(request.url ?? '/')
        throw new PostboteError('NOT_FOUND', detail === undefined ? {} : { detail })
      }
      // The verb is checked before the token, so that the response does not reveal anything about the token.
      if (!isFile && !runsMethods(request))
        throw new PostboteError('VERB_NOT_ALLOWED', { detail: 'GET or POST' })
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

  /** Creates no promise if there is nothing to wait for. */
  #call(exchange: AuthorizedExchange): void {
    try {
      const handling = this.#handle(exchange)
      if (handling !== undefined) {
        handling.catch((error: unknown) => this.#refuse(exchange, error))
      }
    } catch (error) {
      void this.#refuse(exchange, error)
    }
  }

  #handle(exchange: AuthorizedExchange): void | Promise<void> {
    const { request, target, passOn } = exchange
    if (target.kind === 'file') {
      if (passOn === undefined || !isFilePath(target.path)) throw new PostboteError('NOT_FOUND')
      passOn(target)
      return undefined
    }
    const method = this.#methods.get(target.method)
    if (method === undefined) {
      if (!isMethodName(target.method)) throw new PostboteError('METHOD_NOT_FOUND')
      if (passOn === undefined) throw this.#notServed(exchange.queue, target.methodName)
      passOn(target)
      return undefined
    }
    const call = { exchange, method, token: target.token }
    return hasBody(request)
      ? this.#runWithBody(call, target)
      : this.#run(call, paramsOfQuery(target.query))
  }

  #runWithBody(call: OwnCall, target: MethodTarget): Promise<void> {
    const { request, queue } = call.exchange
    const { bodies, budget } = this.#options
    let sinceMs: number | undefined
    const reading = readParams(request, {
      onBody: (bodyBytes) => {
        const begin = (): void => {
          sinceMs = budget?.begin()
        }
        const turn = budget?.turn(request, { botId: queue.bot.botId, bodyBytes })
        if (turn === undefined) begin()
        return turn?.then(begin)
      },
      query: target.query,
      bytesMax: parameterBytesMax,
      certificateBytesMax: target.method === 'setwebhook' ? certificateRequestBytesMax : undefined,
      reservation: bodies.reservationFor(request),
    })
    const { bot } = queue
    const { record } = bot
    const charge = (): void => {
      if (sinceMs !== undefined) budget?.spent(request, bot.botId, sinceMs)
    }
    return this.#inTime(reading).then(
      (params) => {
        // The body may have taken a while to arrive.
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

  /** An unmodified bot of the public service ends here, at its first reply. */
  #notServed(queue: BotQueue, method: string): PostboteError {
    this.#options.counters.add('methods_not_served', 1)
    queue.notes.unserved(method)
    const detail = `: ${method} is not served here: the server has no --upstream`
    return new PostboteError('METHOD_NOT_FOUND', { detail })
  }

  /** Checks the token again: it was renewed, or the bot was removed, while the body arrived. */
  async #runStill({ exchange, method, token }: OwnCall, params: Params): Promise<void> {
    const { bots, filter } = this.#options
    const { target } = exchange
    const isTest = target.kind === 'method' && target.isTest
    const queue = await bots.authorize(readToken(token, filter), isTest)
    await this.#run({ exchange: { ...exchange, queue }, method, token }, params)
  }

  #run({ exchange, method, token }: OwnCall, params: Params): void | Promise<void> {
    const presence = new Presence()
    const { queue, request } = exchange
    const reply = method({ queue, request, params, token, presence })
    if (!(reply instanceof Promise)) return this.#send(exchange, reply)
    this.#sendLater(exchange, reply, presence)
    return undefined
  }

  /**
   * Limits the time that the parameters of an own method may take to arrive.
   *
   * With an upstream, the HTTP server gives requests the time that uploads take. Own methods keep the shorter limit,
   * because a bot stays in memory only for `botIdleMs` after its last use.
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
   * Sends the response when the method has its result. A poll ends if its client disconnects before that.
   *
   * Thousands of calls wait here at a time, so only what the response needs is kept of each.
   */
  #sendLater(
    { request, response, queue }: AuthorizedExchange,
    reply: Promise<MethodReply>,
    presence: Presence,
  ): void {
    const { socket } = request
    watchClose(socket, presence)
    reply.then(
      (methodReply) => {
        unwatchClose(socket, presence)
        return this.#sendSafely({ request, response, queue }, methodReply)
      },
      (error: unknown) => {
        unwatchClose(socket, presence)
        void this.#refuse({ request, response, queue }, error)
      },
    )
  }

  #sendSafely(exchange: Exchange, reply: MethodReply): void {
    try {
      this.#send(exchange, reply)?.catch((error: unknown) => this.#refuse(exchange, error))
    } catch (error) {
      void this.#refuse(exchange, error)
    }
  }

  #send({ request, response }: Exchange, reply: MethodReply): void | Promise<void> {
    if ('result' in reply) {
      sendResult(response, reply.result, reply.description)
      return undefined
    }
    return this.#options.updatesReply.send(response, reply, request.headers['accept-encoding'])
  }

  /** Sends an error. Refusals of tokens are paced per client address, a 429 for a valid token per bot. */
  async #refuse(exchange: Exchange, cause: unknown): Promise<void> {
    const { request, response, queue } = exchange
    if (queue === undefined) this.#options.budget?.noteNoToken(request)
    const expected = this.#expected(cause)
    // A token that was valid when the call arrived costs no slot of the creation gate.
    const error = queue === undefined ? this.#gated(request, expected) : expected
    // The rest of this request would be read as the next request.
    let isClosing = error.code === 'REQUEST_TIMEOUT'
    if (queue === undefined && [401, 421, 429].includes(error.status)) {
      // Nothing reads this body, so what arrives of it while the refusal waits is discarded.
      if (hasBody(request)) dropBody(request)
      const released = this.#options.holding?.(request)
      const release = await this.#options.pacing.hold(this.#options.clientOf(request).address)
      released?.()
      isClosing = release === 'close'
    } else if (error.status === 429) {
      await queue?.pacer.pace({ alwaysDelayed: false })
    }
    sendError(response, error, { close: isClosing })
  }

  /** Charges the client address a slot for looking up an unknown token. */
  #gated(request: IncomingMessage, error: PostboteError): PostboteError {
    if (error.code !== 'UNKNOWN_TOKEN') return error
    const { clock, creationGate } = this.#options
    const { address } = this.#options.clientOf(request)
    const slot = creationGate.takeCreationSlot(address, clock.nowMs())
    if (slot.ok) return error
    return new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: slot.retryAfterS, cause: error })
  }

  #expected(error: unknown): PostboteError {
    const expected = toPostboteError(error)
    if (expected.code === 'SHARD_BROKEN') {
      // What is damaged, and where, concerns the operator only.
      return new PostboteError('BOT_UNAVAILABLE', { cause: expected })
    }
    if (expected.code === 'INTERNAL') {
      const cause = error instanceof Error ? error.stack : String(error)
      this.#options.log.error({ cause }, 'a request failed because of a bug')
    }
    return expected
  }
}
