/**
 * Forwards a request that its owner only passes on to the upstream server. Such a request may have any size and must not
 * be sent twice, so its body is passed on as it arrives, and the request fails if the owner is lost. forward.ts handles
 * all other requests.
 */
import { hasBody } from '../../http/body.ts'
import { onceClosed } from '../../http/once-closed.ts'
import { PostboteError } from '../../errors.ts'
import type { RequestOrigin } from '../connection/connection-origin.ts'
import type { LinkCall, ResponseReceiver } from '../link/link-call.ts'
import { PeerUnreachable } from '../link/owner-link.ts'
import type { OwnerLinks } from '../link/owner-links.ts'
import type { ResponseHead } from '../link/response-head.ts'
import { forwardedRequestHeaders } from './forward-headers.ts'
import { type ForwardedExchange, forwardedOrigin } from './forwarded-exchange.ts'
import { ResponseRelay } from './response-relay.ts'

export interface StreamedForwardOptions {
  readonly exchange: ForwardedExchange
  /** Of the request as it arrived here. */
  readonly origin: RequestOrigin
  readonly links: OwnerLinks
}

export class StreamedForward implements ResponseReceiver {
  readonly #options: StreamedForwardOptions
  readonly #relay: ResponseRelay
  #call: LinkCall | undefined
  #unwatch: () => void = () => undefined
  #isDone = false

  constructor(options: StreamedForwardOptions) {
    this.#options = options
    this.#relay = new ResponseRelay(options.exchange.response)
  }

  start(): void {
    const { exchange, origin, links } = this.#options
    const { incoming, to } = exchange
    this.#unwatch = onceClosed(incoming.socket, () => this.#abandon())
    if (this.#isDone) return
    const { method = 'GET', url = '/' } = incoming
    const isSending = hasBody(incoming)
    const { headers } = incoming
    const declared = headers['content-length']
    const bodyBytes = !isSending ? 0 : declared === undefined ? undefined : Number(declared)
    const rawHeaders = forwardedRequestHeaders({
      method,
      rawHeaders: incoming.rawHeaders,
      bodyBytes,
    })
    const place = to.place()
    if (place === undefined) {
      this.lost(new PeerUnreachable(new Error('no node has the shard')))
      return
    }
    const fields = { method, url, rawHeaders, origin: forwardedOrigin(origin, to.shard) }
    const target = { place, isFresh: place === to.self }
    const call = links.call(target, { fields, hasBody: isSending }, this)
    this.#call = call
    if (!isSending) return
    incoming.on('data', (bytes: Buffer) => {
      if (!call.write(bytes)) incoming.pause()
    })
    incoming.once('end', () => call.end())
  }

  mayWrite(): void {
    this.#options.exchange.incoming.resume()
  }

  answered(head: ResponseHead, body: string | Buffer): void {
    if (this.#isDone) return
    const { response } = this.#options.exchange
    response.writeHead(head.status, head.message, head.headers)
    this.#finish()
    if (typeof body === 'string') response.end(body, 'latin1')
    else response.end(body)
  }

  begun({ status, message, headers }: ResponseHead): void {
    if (!this.#isDone) this.#options.exchange.response.writeHead(status, message, headers)
  }

  part(bytes: Buffer): boolean {
    return this.#isDone || this.#relay.write(bytes, () => this.#call?.resume())
  }

  ended(): void {
    if (this.#isDone) return
    this.#finish()
    this.#options.exchange.response.end()
  }

  lost(error: Error): void {
    if (this.#isDone) return
    const { exchange } = this.#options
    this.#finish()
    // The response may have to wait for earlier pipelined ones; destroying it waits for that.
    if (exchange.response.headersSent) exchange.response.destroy()
    else if (error instanceof PeerUnreachable) exchange.refuse('UNAVAILABLE')
    else {
      const detail = 'may have received the request, but its response was lost with a worker'
      exchange.answer(new PostboteError('UPSTREAM_FAILED', { detail, cause: error }))
    }
  }

  /** The client is gone: a request that is still under way at the owner is cut off. */
  #abandon(): void {
    if (this.#isDone) return
    this.#finish()
    this.#call?.destroy()
  }

  /** The rest of a request whose response came first is discarded, so that the next request can be parsed. */
  #finish(): void {
    this.#isDone = true
    this.#unwatch()
    this.#options.exchange.incoming.resume()
  }
}
