/**
 * Forwards a request that its owner only passes on to the upstream server. Such a request may have any size and must not
 * be carried out twice, so its body is passed on as it arrives, and the request fails if the owner is lost. forward.ts
 * handles all other requests.
 *
 * An owner that could not be reached, or that does not have the shard any more and says so (421), has done nothing. The
 * request then looks for the next owner, and the beginning of the body is kept for that. If more than that was sent, it is
 * refused, and the client may repeat it.
 */
import type { Clock } from '../../kit/clock.ts'
import { hasBody } from '../../http/body.ts'
import { onceClosed } from '../../http/once-closed.ts'
import { PostboteError } from '../../kit/errors.ts'
import type { RequestOrigin } from '../../http/connection-origin.ts'
import type { LinkCall, ResponseReceiver } from '../link/link-call.ts'
import { PeerUnreachable } from '../link/owner-link.ts'
import type { LinkSet } from '../link/link-set.ts'
import type { ResponseHead } from '../link/response-head.ts'
import { forwardedRequestHeaders } from './forward-headers.ts'
import { type ForwardedExchange, forwardedOrigin } from './forwarded-exchange.ts'
import { isMisdirected, OwnerSearch } from './owner-search.ts'
import { ResponseRelay } from './response-relay.ts'
import { kib } from '../../kit/limits.ts'

export interface StreamedForwardOptions {
  readonly exchange: ForwardedExchange
  /** Of the request as it arrived here. */
  readonly origin: RequestOrigin
  readonly clock: Clock
  readonly links: LinkSet
}

/**
 * Up to this many bytes of the body of a streamed request are kept until its response begins, so that it can be sent to
 * another owner. Chosen: what one read of a socket brings at most, which is more than any call without a file has.
 */
export const streamedBytesKeptMax = 64 * kib

export class StreamedForward implements ResponseReceiver {
  readonly #options: StreamedForwardOptions
  readonly #relay: ResponseRelay
  readonly #search: OwnerSearch
  #call: LinkCall | undefined
  /** The body so far, for another owner; undefined once it is too large to be kept. */
  #kept: Buffer[] | undefined = []
  #keptBytes = 0
  #hasEnded = false
  #unwatch: () => void = () => undefined
  #isDone = false

  constructor(options: StreamedForwardOptions) {
    this.#options = options
    this.#relay = new ResponseRelay(options.exchange.response)
    this.#search = new OwnerSearch(options.clock)
  }

  start(): void {
    const { incoming } = this.#options.exchange
    this.#unwatch = onceClosed(incoming.socket, () => this.#abandon())
    if (this.#isDone) return
    if (hasBody(incoming)) {
      incoming.on('data', (bytes: Buffer) => this.#take(bytes))
      incoming.once('end', () => {
        this.#hasEnded = true
        this.#call?.end()
      })
      incoming.pause()
    }
    this.#send()
  }

  mayWrite(): void {
    this.#options.exchange.incoming.resume()
  }

  #send(): void {
    if (this.#isDone) return
    const { exchange, origin, links } = this.#options
    const { incoming, to } = exchange
    const place = to.place()
    if (place === undefined) {
      this.#lookAgain()
      return
    }
    this.#search.asks(place)
    const { method = 'GET', url = '/' } = incoming
    const isSending = hasBody(incoming)
    const declared = incoming.headers['content-length']
    const bodyBytes = !isSending ? 0 : declared === undefined ? undefined : Number(declared)
    const rawHeaders = forwardedRequestHeaders({
      method,
      rawHeaders: incoming.rawHeaders,
      bodyBytes,
    })
    const fields = { method, url, rawHeaders, origin: forwardedOrigin(origin, to.shard) }
    const target = { place, isFresh: place === to.self }
    const call = links.call(target, { fields, hasBody: isSending }, this)
    this.#call = call
    if (isSending) this.#sendBody(call)
  }

  /** Sends what has arrived so far, and goes on with what arrives. */
  #sendBody(call: LinkCall): void {
    let mayGoOn = true
    for (const bytes of this.#kept ?? []) mayGoOn = call.write(bytes)
    if (this.#hasEnded) call.end()
    else if (mayGoOn) this.#options.exchange.incoming.resume()
  }

  #take(bytes: Buffer): void {
    this.#keptBytes += bytes.length
    if (this.#keptBytes > streamedBytesKeptMax) this.#kept = undefined
    this.#kept?.push(bytes)
    if (this.#call?.write(bytes) !== true) this.#options.exchange.incoming.pause()
  }

  /** Nobody has done anything for this attempt: asks for the owner again, which may be another one by then. */
  #lookAgain(): void {
    this.#call = undefined
    const { exchange, links } = this.#options
    const mayLook = this.#kept !== undefined && !links.hasGivenUp
    if (mayLook && this.#search.again(() => this.#send())) exchange.incoming.pause()
    else this.#refuse()
  }

  #refuse(): void {
    this.#finish()
    this.#options.exchange.refuse('UNAVAILABLE')
  }

  answered(head: ResponseHead, body: string | Buffer): void {
    if (this.#isDone) return
    if (isMisdirected(head)) {
      this.#search.misdirected(head, this.#options.exchange.to.learn)
      this.#lookAgain()
      return
    }
    const { response } = this.#options.exchange
    response.writeHead(head.status, head.message, head.headers)
    this.#finish()
    if (typeof body === 'string') response.end(body, 'latin1')
    else response.end(body)
  }

  begun({ status, message, headers }: ResponseHead): void {
    if (this.#isDone) return
    this.#kept = undefined
    this.#options.exchange.response.writeHead(status, message, headers)
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
    if (error instanceof PeerUnreachable && !exchange.response.headersSent) {
      this.#lookAgain()
      return
    }
    this.#finish()
    // The response may have to wait for earlier pipelined ones; destroying it waits for that.
    if (exchange.response.headersSent) exchange.response.destroy()
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
    this.#kept = undefined
    this.#unwatch()
    this.#options.exchange.incoming.resume()
  }
}
