/**
 * Forwards a request that its owner only passes on to the upstream server. Such a request may have any size and must not
 * be sent twice, so its body is passed on as it arrives, and the request fails if the owner is lost. forward.ts handles
 * all other requests.
 */
import { type Agent, type ClientRequest, type IncomingMessage, request } from 'node:http'
import { hasBody } from '../../http/body.ts'
import { onceClosed } from '../../http/once-closed.ts'
import { PostboteError } from '../../errors.ts'
import { PeerUnreachable } from './connect-to-peer.ts'
import type { RequestOrigin } from '../connection/connection-origin.ts'
import type { ForwardedExchange } from './forwarded-exchange.ts'
import { forwardedRequestHeaders, forwardedResponseHeaders } from './forward-headers.ts'

export interface StreamedForwardOptions {
  readonly exchange: ForwardedExchange
  readonly origin: RequestOrigin
  readonly socketPath: string
  readonly agent: Agent
}

export class StreamedForward {
  readonly #options: StreamedForwardOptions
  #upstream: ClientRequest | undefined
  #unwatch: () => void = () => undefined
  #isDone = false

  constructor(options: StreamedForwardOptions) {
    this.#options = options
  }

  start(): void {
    const { incoming, response } = this.#options.exchange
    this.#unwatch = onceClosed(incoming.socket, () => this.#finish())
    response.once('close', () => this.#finish())
    if (this.#isDone) return
    try {
      this.#request()
    } catch (cause) {
      // node:http is stricter about what it sends than about what it accepts.
      const detail = 'the request cannot be forwarded to the worker of its bot'
      this.#answer(new PostboteError('BAD_REQUEST', { detail, cause }))
    }
  }

  #request(): void {
    const { exchange, origin, socketPath, agent } = this.#options
    const { incoming } = exchange
    const { method = 'GET', url = '/', rawHeaders } = incoming
    const isEmpty = !hasBody(incoming)
    const bodyBytes = isEmpty ? 0 : declaredBytes(incoming)
    const upstream = request({
      agent,
      socketPath,
      method,
      path: url,
      headers: forwardedRequestHeaders({ method, rawHeaders, origin, bodyBytes }),
    })
    this.#upstream = upstream
    upstream.once('response', (answer) => this.#relay(answer))
    upstream.on('error', (error) => this.#lost(error))
    if (isEmpty) upstream.end()
    else incoming.pipe(upstream)
  }

  #relay(answer: IncomingMessage): void {
    const { response, to } = this.#options.exchange
    if (this.#isDone) return
    const { statusCode = 502, statusMessage = '', rawHeaders } = answer
    response.writeHead(statusCode, statusMessage, forwardedResponseHeaders(rawHeaders, to))
    // The response may have to wait for earlier pipelined ones; destroying it waits for that.
    answer.once('error', () => response.destroy())
    answer.pipe(response)
  }

  #lost(error: Error): void {
    const { exchange } = this.#options
    if (this.#isDone || exchange.response.headersSent) return
    if (error instanceof PeerUnreachable) {
      exchange.refuse('UNAVAILABLE')
      this.#finish()
    } else {
      const detail = 'may have received the request, but its response was lost with a worker'
      this.#answer(new PostboteError('UPSTREAM_FAILED', { detail, cause: error }))
    }
  }

  #answer(error: PostboteError): void {
    this.#options.exchange.answer(error)
    this.#finish()
  }

  /** The response is out or the client is gone: a request that is still under way at the owner is cut off. */
  #finish(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#unwatch()
    const { incoming, response } = this.#options.exchange
    const upstream = this.#upstream
    if (upstream === undefined) return
    if (!response.writableFinished) {
      upstream.destroy()
    } else if (!upstream.writableEnded) {
      // The response came before all of the request did. The rest is discarded, so that the next request can be parsed.
      incoming.unpipe(upstream)
      incoming.resume()
      upstream.destroy()
    }
  }
}

function declaredBytes({ headers }: IncomingMessage): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}
