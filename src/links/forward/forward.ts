/**
 * A request of a client that another worker answers. Its body is read here, its way to the owner is owner-call.ts, and the response
 * goes back to the client as it arrives.
 *
 *   reading -> under way at its owner -> over
 *      |            |        +--> only a part of the response arrives: the client's connection is destroyed
 *      |            +--> there is no response: the request is refused
 *      +--> the client is gone, in any state: the request to the owner is cut off immediately
 *
 * Usually the body is read to its end before anything is sent. It is small (about 4 MiB at most; NDJSON takes another way) and is
 * kept anyway, because it may be sent again. So its length is known, and a client that is slow or breaks off costs the
 * owner nothing. Bodies pass unchanged, gzip included.
 *
 * A request that its owner only passes on to the upstream server is streamed: it may have any size and must not be carried out
 * twice. Its body is passed on as it arrives, and only the beginning is kept for another owner.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isPush, isSinglePush, type Operation } from '../../api/operation.ts'
import { endWithText } from '../../http/end-with-list.ts'
import { type ErrorCode, PostboteError } from '../../kit/errors.ts'
import { forwardHopsMax } from '../../process/limits.ts'
import {
  dropBody,
  gotText,
  hasBody,
  mustClose,
  receiveBody,
  type BodyReservation,
} from '../../http/body.ts'
import { errorBody } from '../../http/reply.ts'
import { requestIdHeader, requestIdOf } from '../../http/request-id.ts'
import { onceClosed } from '../../http/once-closed.ts'
import { requestOrigin } from '../../http/connection-origin.ts'
import type { BodyBudget } from '../../admission/budgets/body-budget.ts'
import type { ListenerKind } from '../../http/listener.ts'
import type { RareWarning } from '../../process/rare-warning.ts'
import { forwardedRequestHeaders, ownRequestHeaders } from './forward-headers.ts'
import {
  type OwnerAnswer,
  OwnerCall,
  type OwnerFailure,
  type OwnerTarget,
  type OwnerWays,
} from './owner-call.ts'
import type { ResponseHead } from '../link/response-head.ts'
import { certificateRequestBytesMax, kib } from '../../kit/limits.ts'

export interface ForwardTo extends OwnerTarget {
  readonly shard: number | undefined
  readonly kind: ListenerKind
  /** The call of the private API that it is. */
  readonly call: Operation | undefined
  /** The body is passed on as it arrives, and the request is never carried out twice. */
  readonly isStreamed?: boolean
  /** The owner does not read the body (body-filter.ts), so it is dropped here and the request is forwarded without it. */
  readonly dropsBody?: boolean
  /** How long the body may take to arrive; without it, as long as the server allows any request. */
  readonly bodyWithinMs?: number | undefined
  /** Called for a request that gets an error here; undefined if nobody counts that. */
  readonly refused?: ((code: ErrorCode) => void) | undefined
  /** Counts the body while it is held here; without it, the body is not counted. */
  readonly bodies?: BodyBudget<IncomingMessage>
}

export interface ForwardWays extends OwnerWays {
  /** Counts the requests that are refused. */
  readonly failures: RareWarning
}

/**
 * A forwarded body, which is held to be sent again, may have this many bytes: the largest is a setWebhook with its
 * certificate.
 */
const forwardedBodyBytesMax = certificateRequestBytesMax + 64 * kib

/**
 * Up to this many bytes of the body of a streamed request are kept until its response begins, so that it can be sent to
 * another owner. Chosen: what one read of a socket brings at most, which is more than any call without a file has.
 */
export const streamedBytesKeptMax = 64 * kib

export class Forward implements OwnerAnswer {
  readonly #ways: ForwardWays
  readonly #incoming: IncomingMessage
  readonly #response: ServerResponse
  readonly #to: ForwardTo
  #call: OwnerCall | undefined
  #reservation: BodyReservation | undefined
  #unwatch: () => void = () => undefined
  #isHurried = false
  #isOver = false
  /** The client reads more slowly than the owner sends. */
  #isFull = false

  constructor(
    ways: ForwardWays,
    incoming: IncomingMessage,
    response: ServerResponse,
    to: ForwardTo,
  ) {
    this.#ways = ways
    this.#incoming = incoming
    this.#response = response
    this.#to = to
  }

  start(): void {
    const incoming = this.#incoming
    this.#unwatch = onceClosed(
      incoming.socket,
      () => this.#abandon(),
      () => this.#hurry(),
    )
    if (this.#isOver) return
    if ((requestOrigin(incoming)?.hops ?? 0) >= forwardHopsMax) this.#refuse('UNAVAILABLE')
    else if (this.#to.isStreamed === true) this.#stream()
    else if (!hasBody(incoming)) this.#send()
    else if (this.#to.dropsBody === true) {
      dropBody(incoming)
      this.#send()
    } else void this.#receiveBody()
  }

  answered(head: ResponseHead, body: string | Buffer): void {
    this.begun(head)
    this.#finish()
    if (typeof body === 'string') endWithText(this.#response, body, 'latin1')
    else this.#response.end(body)
  }

  /** Throws if node:http would not send the head. */
  begun({ status, message, headers }: ResponseHead): void {
    this.#response.writeHead(status, message, headers)
    // The body is not needed again.
    this.#reservation?.end()
  }

  part(bytes: Buffer): boolean {
    if (this.#response.write(bytes)) return true
    if (!this.#isFull) {
      this.#isFull = true
      this.#response.once('drain', () => {
        this.#isFull = false
        this.#call?.resume()
      })
    }
    return false
  }

  ended(): void {
    this.#finish()
    this.#response.end()
  }

  mayWrite(): void {
    if (this.#to.isStreamed === true) this.#incoming.resume()
  }

  failed(how: OwnerFailure, cause: Error): void {
    if (how === 'broken') {
      this.#finish()
      // The response may have to wait for earlier pipelined ones; destroying it waits for that.
      this.#response.destroy()
    } else if (how === 'unknown' && this.#to.isStreamed === true) {
      this.#finish()
      const detail = 'may have received the request, but its response was lost with a worker'
      this.#answer(new PostboteError('UPSTREAM_FAILED', { detail, cause }))
    } else this.#refuse(how === 'nowhere' ? 'UNAVAILABLE' : 'OUTCOME_UNKNOWN')
  }

  async #receiveBody(): Promise<void> {
    const { bodies, bodyWithinMs } = this.#to
    const reservation = bodies?.reservationFor(this.#incoming)
    this.#reservation = reservation
    const deadline =
      bodyWithinMs === undefined
        ? undefined
        : this.#ways.clock.after(bodyWithinMs, () => this.#refuseLate())
    try {
      const bytesMax = forwardedBodyBytesMax
      const body = await receiveBody(this.#incoming, { bytesMax, reservation })
      // A body that arrived in one piece is also kept until the response is there, so it is counted now.
      if (reservation?.hold(body.length) === false) throw new PostboteError('TOO_MANY_BODIES')
      if (this.#isOver) reservation?.end()
      else this.#send(body)
    } catch (error) {
      if (!(error instanceof PostboteError)) throw error
      this.#refuseBody(error)
    } finally {
      deadline?.cancel()
    }
  }

  /** Sends a request of which all has arrived. */
  #send(body?: Buffer): void {
    const incoming = this.#incoming
    const { method = 'GET', rawHeaders } = incoming
    const bodyBytes = body?.length ?? 0
    const headers = ownRequestHeaders({ method, rawHeaders, bodyBytes })
    const call = this.#begin(headers, bodyBytes > 0)
    if (body !== undefined && bodyBytes > 0) {
      call.write(body)
      call.end()
    }
    if (this.#isHurried) call.hurry()
    call.start()
  }

  /** Sends a request while its body arrives. */
  #stream(): void {
    const incoming = this.#incoming
    const { method = 'GET', rawHeaders } = incoming
    const hasParts = hasBody(incoming)
    const declared = incoming.headers['content-length']
    const bodyBytes = !hasParts ? 0 : declared === undefined ? undefined : Number(declared)
    const headers = forwardedRequestHeaders({ method, rawHeaders, bodyBytes })
    const call = this.#begin(headers, hasParts)
    if (hasParts) {
      incoming.on('data', (bytes: Buffer) => {
        if (!call.write(bytes)) incoming.pause()
      })
      incoming.once('end', () => call.end())
      incoming.pause()
    }
    call.start()
  }

  #begin(rawHeaders: string[], withBody: boolean): OwnerCall {
    const incoming = this.#incoming
    const { method = 'GET', url = '/' } = incoming
    const { shard, isStreamed = false, kind } = this.#to
    const id = madeRequestId(this.#to, incoming)
    if (id !== undefined) rawHeaders.push(requestIdHeader, id)
    const { listener, clientAddress, hops } = requestOrigin(incoming) ?? {
      listener: kind,
      clientAddress: '',
      hops: 0,
    }
    // The origin of the request as its owner sees it: one hop more.
    const origin = { listener, clientAddress, hops: hops + 1, shard }
    const request = {
      fields: { method, url, rawHeaders, origin },
      hasBody: withBody,
      keptBytesMax: isStreamed ? streamedBytesKeptMax : forwardedBodyBytesMax,
      isIdempotent: !isStreamed && isIdempotent(this.#to, incoming),
    }
    this.#call = new OwnerCall(this.#ways, this.#to, request, this)
    return this.#call
  }

  /** Refuses the request. `UNAVAILABLE` is for a request that did nothing; one that may be repeated safely gets it, too. */
  #refuse(code: 'UNAVAILABLE' | 'OUTCOME_UNKNOWN'): void {
    this.#finish()
    const { kind, shard } = this.#to
    const { method } = this.#incoming
    const isSafe = kind === 'bot' || method === 'GET' || method === 'HEAD'
    const certain = kind === 'bot' ? 'UNAVAILABLE' : 'STORE_UNAVAILABLE'
    const id = kind === 'private' ? { requestId: requestIdOf(this.#incoming) } : {}
    this.#ways.failures.note({ shard, code, ...id })
    this.#answer(new PostboteError(isSafe || code === 'UNAVAILABLE' ? certain : code))
  }

  #refuseBody(error: PostboteError): void {
    // The client may be gone.
    if (this.#isOver) return
    if (mustClose(this.#incoming)) this.#response.shouldKeepAlive = false
    const isTooLarge = error.code === 'REQUEST_TOO_LARGE' && this.#to.kind === 'private'
    const detail = `expected at most ${forwardedBodyBytesMax} bytes${gotText(this.#incoming)}`
    this.#finish()
    this.#answer(isTooLarge ? new PostboteError('UPDATE_TOO_LARGE', { detail }) : error)
  }

  #refuseLate(): void {
    // Bytes that the client still sends of this request would be parsed as the next one.
    this.#response.shouldKeepAlive = false
    this.#refuseBody(new PostboteError('REQUEST_TIMEOUT'))
  }

  #answer(error: PostboteError): void {
    const { kind, refused } = this.#to
    refused?.(error.code)
    const body = errorBody(kind, error)
    const { retryAfterS } = error
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      ...(kind === 'private' ? { [requestIdHeader]: requestIdOf(this.#incoming) } : {}),
      ...(retryAfterS === undefined ? {} : { 'Retry-After': retryAfterS }),
    }
    this.#response.writeHead(error.status, headers).end(body)
  }

  /** The client is gone: the request to the owner is cut off. */
  #abandon(): void {
    if (this.#isOver) return
    this.#finish()
    this.#call?.destroy()
  }

  /** The client has ended its side, and may wait for the response. */
  #hurry(): void {
    if (this.#to.isStreamed === true) return
    this.#isHurried = true
    this.#call?.hurry()
  }

  #finish(): void {
    this.#isOver = true
    this.#unwatch()
    this.#reservation?.end()
    // The rest of a streamed request whose response came first is discarded, so that the next request can be parsed.
    if (this.#to.isStreamed === true) this.#incoming.resume()
  }
}

/** All of the server's own bot API methods are idempotent; of the private calls, reads and pushes with a key are. */
function isIdempotent({ kind, call }: ForwardTo, { method, headers }: IncomingMessage): boolean {
  if (kind === 'bot' || method === 'GET' || method === 'HEAD') return true
  // No other call uses the key.
  return headers['idempotency-key'] !== undefined && isSinglePush(call)
}

/** Returns the id that this worker gives to a call without one, so that it is the same wherever it is sent to; pushes get none. */
function madeRequestId({ kind, call }: ForwardTo, incoming: IncomingMessage): string | undefined {
  if (kind === 'bot' || incoming.headers['x-request-id'] !== undefined) return undefined
  return isPush(call) ? undefined : requestIdOf(incoming)
}
