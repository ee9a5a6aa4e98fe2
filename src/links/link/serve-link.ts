/**
 * The owner's end of the links: each exchange becomes a request and a response of node:http, without the parsing of a
 * connection's bytes, and goes to the same listeners as those of clients.
 *
 *   request frame --> IncomingMessage --> listener
 *                     ServerResponse  --> LinkStream, its socket --> data frames
 *   cancel, or the end of the link --> the LinkStream is destroyed: to the listener, its client is gone
 *   leave, or data after the end of the request --> polls wait no more (http/once-closed.ts)
 *
 * Both classes are exported by node:http, and light-my-request builds the same pair for its injected requests. In
 * prototypes, many forwarded polls took 0.6 of the CPU of HTTP over connections of their own (docs/inside/decisions.md).
 */
import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../kit/clock.ts'
import { hurry } from '../../http/once-closed.ts'
import { setOrigin } from '../../http/connection-origin.ts'
import type { ListenerKind } from '../../http/listener.ts'
import { ExchangeTable } from './exchange-table.ts'
import { FrameWriter } from './frame-writer.ts'
import { FrameReader } from './frame-reader.ts'
import { BadFrameError, type Frame, frameType, fin } from './frame.ts'
import { LinkStream } from './link-stream.ts'
import { readRequestFields } from './request-fields.ts'

export interface ServeLinkOptions {
  readonly clock: Pick<Clock, 'soon'>
  /** Serves a request of this listener. */
  readonly serve: (listener: ListenerKind, ...pair: Parameters<RequestListener>) => void
  /** Called when the socket of exchanges is no longer used. */
  readonly streamClosed: (socket: Socket) => void
}

interface Exchange {
  readonly request: LinkedRequest
  readonly response: ServerResponse
  readonly stream: LinkStream
  /** The end of the response is in a frame. */
  isEndSent: boolean
}

export interface ServedLink {
  /** Tells the other side to open no more exchanges on this link, and to close it after the last one. */
  leave(): void
}

/** Serves the exchanges of one link until the link ends. */
export function serveLink(socket: Socket, options: ServeLinkOptions): ServedLink {
  const session = new LinkSession(socket, options)
  socket.on('data', (bytes: Buffer) => session.read(bytes))
  socket.on('error', () => socket.destroy())
  socket.on('close', () => session.close())
  return session
}

class LinkSession implements ServedLink {
  readonly #socket: Socket
  readonly #options: ServeLinkOptions
  readonly #writer: FrameWriter
  readonly #reader = new FrameReader((frame, payload) => this.#take(frame, payload))
  readonly #exchanges = new ExchangeTable<Exchange>()
  #isCallerLeaving = false

  constructor(socket: Socket, options: ServeLinkOptions) {
    this.#socket = socket
    this.#options = options
    this.#writer = new FrameWriter(socket, options.clock)
  }

  read(bytes: Buffer): void {
    try {
      this.#reader.read(bytes)
    } catch (error) {
      // A listener that throws is a bug, and ends the worker as with any other request.
      if (!(error instanceof BadFrameError)) throw error
      this.#socket.destroy()
    }
  }

  leave(): void {
    this.#send(0, frameType.leave)
  }

  close(): void {
    for (const { request, stream } of this.#exchanges.clear()) cutOff(request, stream)
  }

  #take({ exchange, type }: Frame, payload: Buffer): void {
    const isLast = (type & fin) !== 0
    if ((type & ~fin) === frameType.request) {
      this.#open(exchange, payload, isLast)
      return
    }
    if (type === frameType.leave) {
      this.#isCallerLeaving = true
      for (const { stream } of this.#exchanges.values()) hurry(stream.asSocket())
      return
    }
    const open = this.#exchanges.get(exchange)
    // It may be complete here while the other side still sends.
    if (open === undefined) return
    switch (type & ~fin) {
      case frameType.data:
        if (open.request.complete) hurry(open.stream.asSocket())
        else this.#receive(open, exchange, payload)
        if (isLast) this.#end(open, exchange)
        return
      case frameType.cancel:
        this.#exchanges.delete(exchange)
        cutOff(open.request, open.stream)
        return
      case frameType.pause:
        open.stream.isHeldBack = true
        return
      case frameType.resume:
        open.stream.goOn()
        return
      default:
        throw new BadFrameError('a known type of frame')
    }
  }

  #open(exchange: number, payload: Buffer, isLast: boolean): void {
    if (this.#exchanges.get(exchange) !== undefined) throw new BadFrameError('a new exchange')
    const { method, url, rawHeaders, origin } = readRequestFields(payload.toString('latin1'))
    const stream = this.#newStream(exchange)
    const socket = stream.asSocket()
    if (this.#isCallerLeaving) hurry(socket)
    const request = new LinkedRequest(socket)
    request.method = method
    request.url = url
    addHeaders(request, rawHeaders)
    request.httpVersion = '1.1'
    request.httpVersionMajor = 1
    request.httpVersionMinor = 1
    request.complete = isLast
    setOrigin(request, origin)
    const response = new LinkedResponse(request)
    const open = { request, response, stream, isEndSent: false }
    this.#exchanges.add(exchange, open)
    request.onWanted = () => this.#send(exchange, frameType.resume)
    // Without a length the body ends with the last frame.
    response.removeHeader('Transfer-Encoding')
    response.assignSocket(socket)
    // The end of the response goes out in one write with its last bytes, and the request is released after that.
    response.once('prefinish', () => this.#sendEnd(open, exchange))
    response.on('finish', () => this.#finish(open, exchange))
    this.#options.serve(origin.listener, request, response)
    // A listener that expects no body has ended its stream already (http/end-empty-request.ts).
    if (isLast && !request.destroyed) request.push(null)
  }

  #newStream(exchange: number): LinkStream {
    const stream = new LinkStream(exchange, this.#writer)
    const socket = stream.asSocket()
    socket.on('error', ignore)
    socket.on('drain', () => this.#exchanges.get(exchange)?.response.emit('drain'))
    socket.on('close', () => {
      this.#options.streamClosed(socket)
      this.#cancel(exchange)
    })
    return stream
  }

  /** This side breaks the exchange off: half a response is none. */
  #cancel(exchange: number): void {
    const open = this.#exchanges.get(exchange)
    if (open === undefined) return
    this.#exchanges.delete(exchange)
    this.#send(exchange, frameType.cancel)
    if (!open.request.complete) open.request.destroy()
  }

  #receive({ request }: Exchange, exchange: number, payload: Buffer): void {
    // A response that is out leaves the rest of its request unread.
    if (payload.length === 0 || request.destroyed || request.isAnswered) return
    if (request.push(Buffer.from(payload)) || request.isHeld) return
    request.isHeld = true
    this.#send(exchange, frameType.pause)
  }

  #end({ request, stream }: Exchange, exchange: number): void {
    request.complete = true
    if (!request.destroyed) request.push(null)
    if (request.isAnswered) this.#release(exchange, stream)
  }

  #sendEnd(open: Exchange, exchange: number): void {
    if (open.isEndSent || open.stream.isHolding) return
    open.isEndSent = true
    this.#send(exchange, frameType.data | fin)
  }

  #finish(open: Exchange, exchange: number): void {
    const { request, response, stream } = open
    request.isAnswered = true
    this.#sendEnd(open, exchange)
    response.detachSocket(stream.asSocket())
    process.nextTick(noteClosed, response)
    // Nobody reads what is left of the request.
    if (!request.destroyed) request.resume()
    if (request.complete) this.#release(exchange, stream)
  }

  #release(exchange: number, stream: LinkStream): void {
    this.#exchanges.delete(exchange)
    // A stream that is destroyed in the callback of its last write makes an error for those that wait, and nobody waits.
    process.nextTick(() => stream.destroy())
  }

  #send(exchange: number, type: number): void {
    if (!this.#socket.destroyed) this.#writer.write({ exchange, type })
  }
}

interface RequestWithHeaders extends IncomingMessage {
  _addHeaderLines(rawHeaders: string[], count: number): void
}

function hasHeaderLines(request: IncomingMessage): request is RequestWithHeaders {
  return '_addHeaderLines' in request
}

/** A request whose body arrives in frames. */
class LinkedRequest extends IncomingMessage {
  /** Called when more of the body is wanted, after `isHeld` was set. */
  onWanted: () => void = ignore
  /** The sender was asked to wait. */
  isHeld = false
  /** The response is complete. */
  isAnswered = false

  override _read(): void {
    if (!this.isHeld) return
    this.isHeld = false
    this.onWanted()
  }
}

/** As node:http's parser does it: the headers are put into an object only if somebody asks for them. */
function addHeaders(request: IncomingMessage, rawHeaders: string[]): void {
  if (!hasHeaderLines(request)) throw new Error('expected node:http to add headers to a request')
  // oxlint-disable-next-line no-underscore-dangle -- node:http has no other name for it
  request._addHeaderLines(rawHeaders, rawHeaders.length)
}

/** As an HTTP server does it after the last byte of a response. */
function noteClosed(response: ServerResponse): void {
  if (response.closed) return
  response.destroyed = true
  Reflect.set(response, '_closed', true)
  response.emit('close')
}

function cutOff(request: IncomingMessage, stream: LinkStream): void {
  if (!request.complete) request.destroy()
  stream.destroy()
}

/** A response whose socket is a LinkStream: only the sockets of an HTTP server tell their responses when they drain. */
class LinkedResponse extends ServerResponse {
  // @ts-expect-error -- node:http has an accessor, whatever its type says
  override get writableNeedDrain(): boolean {
    return this.socket?.writableNeedDrain === true
  }
}

function ignore(): void {
  // Nothing to do.
}
