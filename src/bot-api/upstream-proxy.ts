/**
 * Forwards methods that this server does not have, and downloads of files, to the upstream bot API server, after the
 * token was checked.
 *
 * It uses @fastify/reply-from. Bodies and responses are streamed, so an upload of 50 MB is never in memory. Nothing is
 * retried, because sending a message twice would be worse than an error.
 *
 * The body passes through a separate stream, because undici destroys a body that it could not send. If that were the
 * request itself, the client's connection would be lost and the response with it.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { IncomingHttpHeaders as Http2Headers } from 'node:http2'
import { PassThrough } from 'node:stream'
import replyFrom from '@fastify/reply-from'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Dispatcher, Pool } from 'undici'
import type { Surroundings } from '../kit/surroundings.ts'
import { PostboteError } from '../kit/errors.ts'
import { AnswerRefused } from '../delivery/outgoing/answer-meter.ts'
import { meteredPool } from '../delivery/outgoing/metered-pool.ts'
import { upstreamConnectTimeoutMs } from './limits.ts'
import { answerFaultOf } from '../delivery/attempts/failure.ts'
import { hasBody } from '../http/body.ts'
import { onceClosed } from '../http/once-closed.ts'
import { sendError } from '../http/reply.ts'
import type { FileTarget, MethodTarget } from '../http/target.ts'
import { KeyedSemaphore } from '../kit/semaphore.ts'
import { upstreamFilePath, upstreamPath, type UpstreamUrl } from '../http/server-origin.ts'

/** Headers that belong to one connection and not to the message. undici and reply-from add what they need. */
const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** A worker passes on this many calls to the upstream server at a time; further ones wait. */
export const upstreamConnectionsMax = 256
/**
 * One bot may have this many of these calls, an eighth, so that its hanging calls leave room for others: enough for
 * hundreds of calls a second.
 */
export const upstreamCallsPerBotMax = 32
/**
 * The upstream server may take this long between the last byte of a call and its response, because it processes files in
 * that time, and as long within the response.
 */
const upstreamResponseTimeoutMs = 300_000
/**
 * A call that is passed on may take this long in all, because a response that brings a byte now and then never times out.
 * Chosen: enough for the largest file of the reference, 2 GB, at 1.2 Mbit/s.
 */
export const upstreamCallTimeoutMs = 4 * 3_600_000

export class UpstreamProxy {
  readonly #upstream: UpstreamUrl
  readonly #surroundings: Pick<Surroundings, 'clock' | 'counters'>
  readonly #pool: Pool
  /** A bot whose calls hang must not hold all connections to the upstream server. */
  readonly #callsOfBot = new KeyedSemaphore(upstreamCallsPerBotMax)
  /** The signal of the request that is being handed to reply-from, which has no field for it. */
  #signal: AbortSignal | undefined

  constructor(upstream: UpstreamUrl, surroundings: Pick<Surroundings, 'clock' | 'counters'>) {
    this.#upstream = upstream
    this.#surroundings = surroundings
    this.#pool = meteredPool(upstream.origin, {
      connections: upstreamConnectionsMax,
      connect: { timeout: upstreamConnectTimeoutMs },
      // This timeout starts after the last byte of the upload.
      headersTimeout: upstreamResponseTimeoutMs,
      bodyTimeout: upstreamResponseTimeoutMs,
    })
  }

  addTo(app: FastifyInstance): void {
    const { origin } = this.#upstream
    const request = (options: Dispatcher.RequestOptions, done: RequestCallback): void => {
      this.#pool.request({ ...options, signal: this.#signal }, done)
    }
    // The upstream's response broke off before the first byte of its body, so its head has not been sent yet.
    app.setErrorHandler((error: Error, _request, reply) => {
      reply.hijack()
      for (const name of reply.raw.getHeaderNames()) reply.raw.removeHeader(name)
      this.#fail(reply, error)
    })
    void app.register(replyFrom, {
      base: origin,
      // The cache would keep the paths of calls, which contain tokens.
      disableCache: true,
      disableRequestLogging: true,
      // reply-from uses only this form; undici's type has all of them.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      undici: { request: request as unknown as Dispatcher['request'] },
    })
  }

  /** Forwards a call and sends a response in every case. */
  pass(reply: FastifyReply, target: MethodTarget | FileTarget): void {
    const { socket } = reply.request.raw
    const response = reply.raw
    this.#surroundings.counters.add('requests_proxied', 1)
    const aborter = new AbortController()
    const endTurn = this.#callsOfBot.enter(botIdOf(target.token), () => {
      this.#send(reply, target, aborter.signal)
    })
    const timer = this.#surroundings.clock.after(upstreamCallTimeoutMs, () =>
      aborter.abort(tooLate),
    )
    // A response to a pipelined call that waits for its turn is never closed if the connection breaks.
    const unwatch = onceClosed(socket, () => {
      endTurn()
      timer.cancel()
      aborter.abort()
    })
    response.once('close', () => {
      endTurn()
      timer.cancel()
      unwatch()
      if (!response.writableFinished) aborter.abort()
    })
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  #send(reply: FastifyReply, target: MethodTarget | FileTarget, signal: AbortSignal): void {
    const { raw: request } = reply.request
    const response = reply.raw
    const isSending = hasBody(request)
    reply.request.body = isSending ? bodyOf(request, response) : undefined
    this.#signal = signal
    reply.from(this.#pathOf(target), {
      // A GET with a body is a call with parameters here. Other servers may treat it differently, so it is sent as POST.
      ...(isSending ? { method: 'POST' } : {}),
      retryDelay: () => null,
      rewriteRequestHeaders: (_request, headers) => endToEnd(headers),
      rewriteHeaders: endToEnd,
      onResponse: (_request, answer, { stream }) => {
        // reply-from would close the connection of a client that is still sending, and the client would lose the
        // response. Instead, the rest of the request is read and discarded. Node's own header must stay, because it
        // says whether the connection will be closed.
        if (response.shouldKeepAlive && answer.hasHeader('connection')) {
          answer.removeHeader('connection')
        }
        answer.send(stream)
      },
      onError: (_reply, { error }) => this.#fail(reply, error),
    })
    this.#signal = undefined
  }

  #fail(reply: FastifyReply, error: Error): void {
    this.#surroundings.counters.add('upstream_failures', 1)
    sendError(reply.raw, upstreamError(error))
  }

  #pathOf(target: MethodTarget | FileTarget): string {
    const upstream = this.#upstream
    if (target.kind === 'file') return upstreamFilePath(upstream, target)
    // With its original case: the reference accepts any case, other servers may not.
    return upstreamPath(upstream, { ...target, method: target.methodName })
  }
}

/** Returns the bot id of a checked token. */
function botIdOf(token: string): string {
  return token.slice(0, token.indexOf(':'))
}

type RequestCallback = (error: Error | null, data: Dispatcher.ResponseData) => void

/**
 * Returns the body as a separate stream. After the response, the rest of the request is read and discarded, so that the
 * next request can follow.
 */
function bodyOf(request: IncomingMessage, response: ServerResponse): PassThrough {
  const body = new PassThrough()
  body.on('error', () => undefined)
  request.pipe(body)
  response.once('close', () => {
    request.unpipe(body)
    body.destroy()
    request.resume()
  })
  return body
}

type AnyHeaders = IncomingHttpHeaders | Http2Headers

function endToEnd(headers: AnyHeaders): Record<string, string | string[]> {
  const named = [headers['connection'] ?? ''].flat().join(',').toLowerCase()
  const dropped = new Set(named.split(',').map((name) => name.trim()))
  const kept: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !hopByHop.has(name) && !dropped.has(name)) kept[name] = value
  }
  return kept
}

const tooLate = new AnswerRefused('no complete response in time')

/** Reports what went wrong but not where, because the upstream's address concerns the operator only. */
function upstreamError(error: Error): PostboteError {
  const cause = error.cause instanceof Error ? error.cause : error
  const code = 'code' in cause ? String(cause.code) : ''
  const detail = textOfAnswer(cause) ?? failureText(code)
  return new PostboteError('UPSTREAM_FAILED', { detail, cause })
}

function textOfAnswer(cause: Error): string | undefined {
  if (cause instanceof AnswerRefused) return `sent ${cause.message}`
  const fault = answerFaultOf(cause)
  return fault === undefined ? undefined : `sent what is no response: ${fault}`
}

function failureText(code: string): string {
  switch (code) {
    case 'ECONNREFUSED':
      return 'refused the connection'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'could not be found'
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return 'could not be reached'
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_BODY_TIMEOUT':
      return 'did not respond in time'
    case 'FST_ERR_BAD_STATUS_CODE':
      return 'sent what is no response: its status is none'
    default:
      return 'closed the connection; it may have received the request'
  }
}
