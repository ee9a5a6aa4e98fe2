/**
 * Forwards one request to the worker that owns its bot, and the response back to the client.
 *
 *   reading -> sent -> relaying -> done
 *      |        |         +--> the owner dies: the client's connection is destroyed, since half a response is none
 *      |        +--> no node has the shard, or the one that was asked has it no more and did nothing (421): sent again
 *      |        +--> the owner dies before it responds: sent once more, to its successor, or refused; also refused
 *      |             if the owner hung, since this request may be the cause, or if this worker ends
 *      +--> the client is gone, in any state: the request to the owner is destroyed immediately
 *
 * The body is read to its end before anything is sent. It is small (about 4 MiB at most; NDJSON takes another way) and is
 * kept anyway, because it may be sent again. So its length is known, and a client that is slow or breaks off costs the
 * owner nothing. Bodies pass unchanged, gzip included. Bodies of any size are streamed (streamed-forward.ts).
 */
import type { IncomingMessage } from 'node:http'
import type { Clock } from '../../kit/clock.ts'
import { isPush, isSinglePush } from '../../api/operation.ts'
import { endWithText } from '../../http/end-with-list.ts'
import { PostboteError } from '../../kit/errors.ts'
import { forwardHopsMax, peerConnectWaitMs, peerRepeatDelayMs } from '../../process/limits.ts'
import {
  dropBody,
  gotText,
  hasBody,
  mustClose,
  receiveBody,
  type BodyReservation,
} from '../../http/body.ts'
import { requestIdHeader, requestIdOf } from '../../http/request-id.ts'
import { onceClosed } from '../../http/once-closed.ts'
import type { RequestOrigin } from '../../http/connection-origin.ts'
import { type ForwardedExchange, forwardedOrigin, type ForwardTo } from './forwarded-exchange.ts'
import { ownRequestHeaders } from './forward-headers.ts'
import { isMisdirected, OwnerSearch } from './owner-search.ts'
import { ResponseRelay } from './response-relay.ts'
import type { LinkCall, ResponseReceiver } from '../link/link-call.ts'
import { CallGivenUp, PeerUnreachable } from '../link/owner-link.ts'
import type { LinkSet } from '../link/link-set.ts'
import type { ResponseHead } from '../link/response-head.ts'
import { certificateRequestBytesMax, kib } from '../../kit/limits.ts'

export interface ForwardOptions {
  readonly exchange: ForwardedExchange
  /** Of the request as it arrived here. */
  readonly origin: RequestOrigin
  readonly clock: Clock
  readonly links: LinkSet
}

const noBody = Buffer.alloc(0)

/** All of the server's own bot API methods are idempotent; of the private calls, reads and pushes with a key are. */
function isIdempotent({ kind, call }: ForwardTo, incoming: IncomingMessage): boolean {
  const { method, headers } = incoming
  if (kind === 'bot' || method === 'GET' || method === 'HEAD') return true
  // No other call uses the key.
  return headers['idempotency-key'] !== undefined && isSinglePush(call)
}

/** Returns the id that this worker gives to a call without one, so that it is the same wherever it is sent to; pushes get none. */
function madeRequestId({ kind, call }: ForwardTo, incoming: IncomingMessage): string | undefined {
  if (kind === 'bot' || incoming.headers['x-request-id'] !== undefined) return undefined
  return isPush(call) ? undefined : requestIdOf(incoming)
}

/**
 * A forwarded body, which is held to be sent again, may have this many bytes: the largest is a setWebhook with its
 * certificate.
 */
const forwardedBodyBytesMax = certificateRequestBytesMax + 64 * kib

export class Forward implements ResponseReceiver {
  readonly #options: ForwardOptions
  readonly #exchange: ForwardedExchange
  readonly #relay: ResponseRelay
  #body: Buffer = noBody
  #reservation: BodyReservation | undefined
  #call: LinkCall | undefined
  #unwatch: () => void = () => undefined
  readonly #firstGeneration: number | undefined
  #sentToGeneration: number | undefined
  #hangsWhenSent = 0
  #repeatUntilMs: number | undefined
  #search: OwnerSearch | undefined
  #isHurried = false
  #isDone = false

  constructor(options: ForwardOptions) {
    this.#options = options
    this.#exchange = options.exchange
    this.#relay = new ResponseRelay(options.exchange.response)
    this.#firstGeneration = options.exchange.to.generation()
  }

  start(): void {
    const { incoming } = this.#exchange
    this.#unwatch = onceClosed(
      incoming.socket,
      () => this.#abandon(),
      () => this.#hurry(),
    )
    if (this.#options.origin.hops >= forwardHopsMax) this.#refuse('UNAVAILABLE')
    else if (!hasBody(incoming)) this.#send()
    else if (this.#exchange.to.dropsBody === true) this.#sendBodiless()
    else void this.#receiveBody()
  }

  answered(head: ResponseHead, body: string | Buffer): void {
    if (this.#isDone) return
    if (isMisdirected(head)) {
      this.#search?.misdirected(head, this.#exchange.to.learn)
      this.#lookAgain()
      return
    }
    // This throws if node:http would not send the head; `lost` then refuses the request.
    this.#writeHead(head)
    this.#finish()
    const { response } = this.#exchange
    if (typeof body === 'string') endWithText(response, body, 'latin1')
    else response.end(body)
  }

  begun(head: ResponseHead): void {
    if (this.#isDone) return
    this.#writeHead(head)
    this.#freeBody()
  }

  part(bytes: Buffer): boolean {
    return this.#isDone || this.#relay.write(bytes, () => this.#call?.resume())
  }

  ended(): void {
    if (this.#isDone) return
    this.#finish()
    this.#exchange.response.end()
  }

  lost(error: Error): void {
    if (this.#isDone) return
    this.#call = undefined
    if (this.#exchange.response.headersSent) {
      this.#finish()
      // The response may have to wait for earlier pipelined ones; destroying it waits for that.
      this.#exchange.response.destroy()
    } else if (error instanceof PeerUnreachable) {
      this.#lookAgain()
    } else if (!(error instanceof CallGivenUp) && this.#mayRepeat()) {
      this.#search = undefined
      this.#options.clock.after(peerRepeatDelayMs, () => this.#send())
    } else {
      this.#refuse('OUTCOME_UNKNOWN')
    }
  }

  #writeHead({ status, message, headers }: ResponseHead): void {
    this.#exchange.response.writeHead(status, message, headers)
  }

  #sendBodiless(): void {
    dropBody(this.#exchange.incoming)
    this.#send()
  }

  async #receiveBody(): Promise<void> {
    const { incoming, to } = this.#exchange
    const reservation = to.bodies?.reservationFor(incoming)
    this.#reservation = reservation
    const deadline =
      to.bodyWithinMs === undefined
        ? undefined
        : this.#options.clock.after(to.bodyWithinMs, () => this.#refuseLate())
    try {
      this.#body = await receiveBody(incoming, { bytesMax: forwardedBodyBytesMax, reservation })
      // A body that arrived in one piece is also kept until the response is there, so it is counted now.
      if (reservation?.hold(this.#body.length) === false) throw new PostboteError('TOO_MANY_BODIES')
    } catch (error) {
      if (!(error instanceof PostboteError)) throw error
      this.#refuseBody(error)
      return
    } finally {
      deadline?.cancel()
    }
    if (this.#isDone) reservation?.end()
    this.#send()
  }

  #send(): void {
    if (this.#isDone) return
    const { clock, origin, links } = this.#options
    const { incoming, to } = this.#exchange
    this.#search ??= new OwnerSearch(clock)
    const place = to.place()
    if (place === undefined) {
      this.#lookAgain()
      return
    }
    this.#search.asks(place)
    const { method = 'GET', url = '/' } = incoming
    const body = this.#body
    const rawHeaders = ownRequestHeaders({
      method,
      rawHeaders: incoming.rawHeaders,
      bodyBytes: body.length,
    })
    const id = madeRequestId(to, incoming)
    if (id !== undefined) rawHeaders.push(requestIdHeader, id)
    this.#sentToGeneration = to.generation()
    this.#hangsWhenSent = to.hangs()
    const fields = { method, url, rawHeaders, origin: forwardedOrigin(origin, to.shard) }
    const request = { fields, hasBody: body.length > 0 }
    const call = links.call({ place, isFresh: place === to.self }, request, this)
    this.#call = call
    if (request.hasBody) call.end(body)
    if (this.#isHurried) call.hurry()
  }

  /** Nobody has done anything for this attempt: asks for the owner again, which may be another one by then. */
  #lookAgain(): void {
    this.#call = undefined
    const mayLook = !this.#options.links.hasGivenUp
    if (mayLook && this.#search?.again(() => this.#send()) === true) return
    // An owner that was lost before may have carried out the request.
    this.#refuse(this.#repeatUntilMs === undefined ? 'UNAVAILABLE' : 'OUTCOME_UNKNOWN')
  }

  /**
   * A lost request is repeated once, on the successor: a request that has ended two processes must not end a third. It is
   * not repeated if the owner was killed because it hung, which cost its bots half a minute: the successor would hang,
   * too. A killed process still accepts connections, and resets them, while the kernel tears it down: a repetition that
   * reached that process does not count.
   */
  #mayRepeat(): boolean {
    const { to, incoming } = this.#exchange
    if (!isIdempotent(to, incoming) || this.#sentToGeneration !== this.#firstGeneration)
      return false
    if (to.hangs() !== this.#hangsWhenSent) return false
    const nowMs = this.#options.clock.monotonicMs()
    this.#repeatUntilMs ??= nowMs + peerConnectWaitMs
    return nowMs < this.#repeatUntilMs
  }

  #refuse(code: 'UNAVAILABLE' | 'OUTCOME_UNKNOWN'): void {
    this.#finish()
    this.#exchange.refuse(code)
  }

  #refuseBody(error: PostboteError): void {
    // The client may be gone.
    if (this.#isDone) return
    const { incoming, response, to } = this.#exchange
    if (mustClose(incoming)) response.shouldKeepAlive = false
    const isTooLarge = error.code === 'REQUEST_TOO_LARGE' && to.kind === 'private'
    const detail = `expected at most ${forwardedBodyBytesMax} bytes${gotText(incoming)}`
    this.#finish()
    this.#exchange.answer(isTooLarge ? new PostboteError('UPDATE_TOO_LARGE', { detail }) : error)
  }

  #refuseLate(): void {
    // Bytes that the client still sends of this request would be parsed as the next one.
    this.#exchange.response.shouldKeepAlive = false
    this.#refuseBody(new PostboteError('REQUEST_TIMEOUT'))
  }

  /** The client is gone: the request to the owner is cut off. */
  #abandon(): void {
    if (this.#isDone) return
    this.#finish()
    this.#call?.destroy()
  }

  /** The client has ended its side, and may wait for the response. */
  #hurry(): void {
    this.#isHurried = true
    this.#call?.hurry()
  }

  #finish(): void {
    this.#isDone = true
    this.#unwatch()
    this.#freeBody()
  }

  /** The body is not needed again. */
  #freeBody(): void {
    this.#body = noBody
    this.#reservation?.end()
  }
}
