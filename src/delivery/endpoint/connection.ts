/**
 * One kept-alive connection to an endpoint, with one delivery on it at a time. It is an undici `Client` around a socket
 * that the dispatcher has opened, so that the flood gates decide about connections instead of a pool: when the socket is
 * lost, undici's request for another one fails and the connection ends.
 *
 * The object is its own undici handler and keeps the state of the delivery in fields, so a delivery creates no closure
 * and no promise here. (undici's older handler interface, without an object of headers, saves 1 us of 19 and will be
 * removed.)
 *
 *     idle --send--> busy --response, connection usable again--> idle
 *                     +--other response, failure, not sent--> ended
 */
import type { Socket } from 'node:net'
import { Client, type Dispatcher as Undici } from 'undici'
import type { Clock, Timer } from '../../kit/clock.ts'
import type { Lease } from '../../kit/lease.ts'
import { AnswerHead, readThrough } from '../outgoing/answer-head.ts'
import { AnswerMeter, tooManyInterim } from '../outgoing/answer-meter.ts'
import { isSuccess } from '../attempts/classify-response.ts'
import { webhookReplyBytesMax } from '../limits.ts'
import { failureOf, WebhookFailure } from '../attempts/failure.ts'
import type { Lane } from '../lanes/lane.ts'
import { type ReplyIntake, ReplyReader } from '../attempts/reply-reader.ts'
import type { ResponseHeaders } from '../attempts/response-headers.ts'
import { ResponseText, type ResponseTextOptions } from '../attempts/response-text.ts'
import { kib } from '../../kit/limits.ts'

/** Receives the result of each delivery. The connection is idle again when one of these methods is called. */
export interface ConnectionOwner {
  /** A complete response, or the status of a response that this server cut short. */
  answered(connection: Connection, lane: Lane): void
  failed(connection: Connection, lane: Lane, failure: WebhookFailure): void
  /** The socket was lost before anything was written, so this was not an attempt. */
  notSent(connection: Connection, lane: Lane): void
  /** The socket of an idle connection was closed. */
  lost(connection: Connection): void
}

export interface ConnectionOptions {
  readonly socket: Socket
  readonly address: string
  readonly origin: string
  readonly path: string
  readonly headers: string[]
  readonly responseTimeoutMs: number
  readonly keepAliveMs: number
  readonly clock: Clock
  readonly owner: ConnectionOwner
  /** Nothing is written while this is not valid. */
  readonly lease: Lease
  /** If absent, the bodies of responses are not read. */
  readonly replies?: ReplyIntake | undefined
  /** If absent, what the endpoint says in responses that are no success is not kept. */
  readonly responseText?: ResponseTextOptions | undefined
}

const onlyHttp2 =
  'Wrong response from the webhook: the endpoint speaks HTTP/2 only, and deliveries need HTTP/1.1'
const notHttp = 'Wrong response from the webhook: not HTTP/1.1'
const wrongInterim = `Wrong response from the webhook: ${tooManyInterim.message}`
/** The error that undici gets when it asks for a second socket. */
const socketIsLost = new WebhookFailure('Webhook connection closed')
const isNotHttp = new WebhookFailure(notHttp, 'rejected')
const responseIsCut = new WebhookFailure('Response cut short')
const leaseIsOver = new WebhookFailure('Lease of the server is over')
const isAborted = new WebhookFailure('Delivery aborted')
const notSentCodes: ReadonlySet<unknown> = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED'])

/**
 * This many bytes of a response's body are read before the connection is closed instead: the body is not used, and a
 * short one keeps the connection usable.
 */
const webhookResponseBytesMax = 64 * kib
/**
 * When its status line has come, the rest of a response is waited for this long, because only a method in it matters. An endpoint
 * may never complete the head, say neither how long the body is nor close the connection, or send less than it says.
 * Chosen: a response comes mostly at once, and an ordering key is held up for so long.
 */
const webhookRestWaitMs = 2_000

export class Connection {
  readonly address: string
  /** If true, the connection closes after the current response. */
  isRetired = false
  status = 0
  /** The Retry-After header as received. */
  retryAfter: string | undefined
  /** The Webhook-Delivery header as received. */
  deliveryOrder: string | undefined
  /** When the present or the last delivery began, monotonic. */
  startedMs = 0
  /** The place in its trace that the endpoint gets with the present or the last delivery. */
  traceparent: string | undefined
  /** Called when the next delivery is written. */
  onWritten: (() => void) | undefined

  readonly #options: ConnectionOptions
  readonly #client: Client
  readonly #request: Undici.DispatchOptions
  readonly #reply: ReplyReader | undefined
  readonly #text: ResponseText | undefined
  #lane: Lane | undefined
  /** How many deliveries it has had an answer for. */
  #answers = 0
  /** For example a TLS alert. undici drops it in favor of the end of the connection that follows. */
  #socketError: Error | undefined
  readonly #head = new AnswerHead()
  readonly #meter = new AnswerMeter()
  #restWait: Timer | undefined
  /** Whether the body ends with its connection. */
  #isUnframed = false
  #controller: Undici.DispatchController | undefined
  #isCounting = false
  #isClosing = false

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.address = options.address
    let unused: Socket | undefined = options.socket
    this.#client = new Client(options.origin, {
      pipelining: 1,
      keepAliveTimeout: options.keepAliveMs,
      headersTimeout: options.responseTimeoutMs,
      bodyTimeout: options.responseTimeoutMs,
      connect: (_target, callback) => {
        const socket = unused
        unused = undefined
        // The callback must come later: undici does not check its queue again for a callback within its own call.
        queueMicrotask(() => {
          if (socket === undefined || socket.destroyed) callback(socketIsLost, null)
          else callback(null, socket)
        })
      },
    })
    this.#request = { method: 'POST', path: options.path, headers: options.headers, body: null }
    if (options.replies !== undefined) this.#reply = new ReplyReader(options.replies)
    if (options.responseText !== undefined) this.#text = new ResponseText(options.responseText)
    readThrough(this.#head, options.socket)
    options.socket.once('error', (error) => {
      this.#socketError = error
    })
    options.socket.once('close', () => this.#onClose())
  }

  get isIdle(): boolean {
    return this.#lane === undefined
  }

  /** The beginning of the body of the last response if it was no success, without secrets of the request. */
  get responseBody(): string | undefined {
    return this.#text?.read(this.#options)
  }

  /** The headers of the last response if it was no success (response-headers.ts). */
  get responseHeaders(): string | undefined {
    return this.#text?.readHeaders(this.#options)
  }

  /** True if another delivery can be sent on it. */
  get isUsable(): boolean {
    return !this.#isClosing && !this.isRetired && !this.#options.socket.destroyed
  }

  /**
   * Whether it has had answers before, and none to the last delivery: the endpoint has ended it, and perhaps before it saw
   * the delivery. Any client repeats such a request on a new connection (RFC 9112, 9.3.1).
   */
  get hasEndedUnanswered(): boolean {
    return this.#answers > 0 && this.#isClosing && !this.#head.hasBytes
  }

  /** Sends a delivery. `headers` replace the usual headers. */
  send(lane: Lane, body: Buffer, headers: string[] = this.#options.headers): void {
    this.#lane = lane
    this.status = 0
    this.retryAfter = undefined
    this.deliveryOrder = undefined
    this.#head.reset()
    this.startedMs = this.#options.clock.monotonicMs()
    this.#request.body = body
    this.#request.headers = headers
    this.#client.dispatch(this.#request, this)
  }

  /** Destroys the socket without reporting a delivery in flight. Resolves when the socket is closed. */
  destroy(): Promise<void> {
    this.#lane = undefined
    this.#restWait?.cancel()
    this.#reply?.abandon()
    this.#isClosing = true
    const { socket } = this.#options
    // Without an error, undici would end a response without a length as if the other side had closed it, even an aborted
    // one, and would throw out of the socket's event.
    socket.destroy(isAborted)
    // Its promise is not used: if the socket is just emitting 'close', undici waits for another 'close'.
    void this.#client.destroy(isAborted)
    if (socket.closed) return Promise.resolve()
    return new Promise((resolve) => void socket.once('close', () => resolve()))
  }

  /** undici recognizes this handler interface by the presence of this method. */
  onRequestStart(controller: Undici.DispatchController): void {
    const { lease, socket } = this.#options
    this.#controller = controller
    this.#head.begin()
    this.#meter.begin(socket.bytesRead)
    if (!this.#isCounting) {
      this.#isCounting = true
      // Registered after undici's own listener, because undici has the socket by now.
      socket.on('readable', () => this.#watchResponse())
    }
    // undici writes on a used connection one turn of the event loop after `send`, and a server may be frozen in between.
    if (!lease.isValid()) controller.abort(leaseIsOver)
    // What follows a former answer would be taken for the answer to this request.
    else if (this.#answers > 0 && socket.readableLength > 0) controller.abort(socketIsLost)
    else this.onWritten?.()
  }

  onResponseStart(
    controller: Undici.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    // undici's parser also reads answers of other protocols, such as `RTSP/1.0 200 OK`.
    if (status !== this.#head.status) return controller.abort(isNotHttp)
    this.status = status
    this.#head.endHeaders(headers)
    const retryAfter = headers['retry-after']
    if (retryAfter !== undefined) this.retryAfter = String(retryAfter)
    const deliveryOrder = headers['webhook-delivery']
    if (deliveryOrder !== undefined) this.deliveryOrder = String(deliveryOrder)
    if (headers['connection'] === 'close') this.#isClosing = true
    this.#reply?.begin(status, headers)
    this.#text?.begin(status, headers)
    this.#isUnframed = isUnframed(headers)
  }

  onResponseData(controller: Undici.DispatchController, chunk: Buffer): void {
    const refused = this.#meter.addPiece(chunk.length)
    this.#reply?.add(chunk)
    this.#text?.add(chunk)
    const isReading = this.#reply?.isReading === true
    const bytesMax = isReading ? webhookReplyBytesMax : webhookResponseBytesMax
    const isTooDear = refused !== undefined || this.#meter.weight > bytesMax
    if (isTooDear || this.#isLate()) controller.abort(responseIsCut)
  }

  onResponseEnd(): void {
    const lane = this.#finish()
    if (lane === undefined) return
    this.#answers++
    // This must happen before the dispatcher releases the update.
    if (lane.first !== undefined) this.#reply?.end(lane.first.orderingKey)
    this.#options.owner.answered(this, lane)
    this.#text?.clear()
  }

  onResponseError(_controller: Undici.DispatchController | undefined, error: Error): void {
    this.#reply?.abandon()
    const lane = this.#finish()
    if (lane === undefined) return
    this.#isClosing = true
    if (this.status === 0) this.status = this.#head.status
    const { owner } = this.#options
    const isAnswer = this.status > 0 && error === responseIsCut
    // Its status line says that the endpoint has taken the update, whatever is wrong with the rest.
    if (isNotSent(error)) owner.notSent(this, lane)
    else if (isAnswer || isSuccess(this.status)) owner.answered(this, lane)
    else owner.failed(this, lane, this.#failureOf(error))
    this.#text?.clear()
  }

  #failureOf(error: Error): WebhookFailure {
    if (this.#head.isHttp2) return new WebhookFailure(onlyHttp2, 'rejected', error)
    if (error === responseIsCut) return isNotHttp
    return failureOf(this.#socketError ?? error)
  }

  /** A method in the body is waited for as long as undici does, if its length is known; otherwise, as long as more comes. */
  #awaitRest(): Timer {
    const bytes = this.#meter.weight
    return this.#options.clock.after(webhookRestWaitMs, () => {
      const mayCome = !this.#isUnframed || this.#meter.weight > bytes
      if (this.#reply?.isReading === true && mayCome) this.#restWait = this.#awaitRest()
      else this.#controller?.abort(responseIsCut)
    })
  }

  /**
   * Looks at a response after undici has read all that has come of it. undici does not report the framing of a body and
   * accepts any amount of framing, so bytes are counted at the socket.
   */
  #watchResponse(): void {
    if (this.#lane === undefined) return
    const refused = this.#meter.framingOf(this.#options.socket.bytesRead)
    if (refused !== undefined) this.#controller?.abort(responseIsCut)
    else if (this.#head.hasTooManyInterim) {
      this.#controller?.abort(new WebhookFailure(wrongInterim, 'rejected'))
    } else if (Math.max(this.status, this.#head.status) > 0) this.#restWait ??= this.#awaitRest()
  }

  #finish(): Lane | undefined {
    const lane = this.#lane
    this.#lane = undefined
    this.#head.end()
    this.#restWait?.cancel()
    this.#restWait = undefined
    // From here on the update's memory may be reused or freed.
    this.#request.body = null
    return lane
  }

  #isLate(): boolean {
    const { clock, responseTimeoutMs } = this.#options
    return clock.monotonicMs() - this.startedMs > responseTimeoutMs
  }

  /** undici reports the end of a busy connection by an error that says whether anything was sent. */
  #onClose(): void {
    if (this.#isClosing || this.#lane !== undefined) return
    this.#isClosing = true
    this.#options.owner.lost(this)
  }
}

function isNotSent(error: Error): boolean {
  if (error === socketIsLost || error === leaseIsOver) return true
  return 'code' in error && notSentCodes.has(error.code)
}

/** Whether nothing says where the body of a response ends but the end of its connection. */
function isUnframed(headers: ResponseHeaders): boolean {
  if (headers['content-length'] !== undefined) return false
  return !/chunked\s*$/i.test(String(headers['transfer-encoding'] ?? ''))
}
