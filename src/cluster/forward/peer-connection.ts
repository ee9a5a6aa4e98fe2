/**
 * One connection to another worker's Unix socket. It carries one request at a time and passes the response on as it
 * arrives.
 *
 * node:http's client took more CPU per request than all of the owner's work for it. This class speaks only as much HTTP
 * as our own servers send: HTTP/1.1 with a Content-Length. All connections read into one shared buffer, because each read
 * is processed before the next one begins; what is passed on is a copy.
 *
 * The connection belongs to its request: its end tells the owner that the client is gone, and back-pressure is that of
 * the socket.
 */
import { connect, type Socket } from 'node:net'
import { headerBytesMax, peerReadBytes, shortResponseBytesMax } from '../limits.ts'
import { type ResponseHead, readResponseHead } from './response-head.ts'

export interface PeerRequest {
  readonly method: string
  /** Up to and including the empty line, one byte per character. */
  readonly head: string
  readonly body: Buffer
}

export interface ResponseReceiver {
  /** The complete response; a string has one byte per character. */
  answered(head: ResponseHead, body: string | Buffer): void
  /** Otherwise the head, the parts (false: stop until `resume`) and the end arrive one by one. */
  begun(head: ResponseHead): void
  part(bytes: Buffer): boolean
  ended(): void
  /** The connection broke, or the bytes are no response. No other call follows. */
  lost(error: Error): void
}

export interface ConnectionUser {
  /** The response is complete, and the next request may be sent. */
  released(connection: PeerConnection): void
  closed(connection: PeerConnection): void
}

const sharedBuffer = Buffer.allocUnsafeSlow(peerReadBytes)
const headEnd = Buffer.from('\r\n\r\n')

export class PeerConnection {
  readonly path: string
  readonly socket: Socket
  readonly #user: ConnectionUser
  #receiver: ResponseReceiver | undefined
  #isHeadRequest = false
  /** The beginning of a head that arrived in pieces. */
  #partial: Buffer | undefined
  #head: ResponseHead | undefined
  #bytesLeft = 0
  /** When the connection was last released. */
  idleSinceMs = 0

  constructor(path: string, user: ConnectionUser) {
    this.path = path
    this.#user = user
    const callback = (bytesRead: number): boolean => this.#read(bytesRead)
    this.socket = connect({ path, onread: { buffer: sharedBuffer, callback } })
    let error = new Error('the connection to the owner was closed')
    this.socket.on('error', (cause) => (error = cause))
    this.socket.once('close', () => {
      this.#user.closed(this)
      this.#lose(error)
    })
  }

  send({ method, head, body }: PeerRequest, receiver: ResponseReceiver): void {
    const { socket } = this
    this.#receiver = receiver
    this.#isHeadRequest = method === 'HEAD'
    if (body.length === 0) socket.write(head, 'latin1')
    else if (body.length <= shortResponseBytesMax) {
      socket.write(head + body.toString('latin1'), 'latin1')
    } else {
      socket.cork()
      socket.write(head, 'latin1')
      socket.write(body)
      socket.uncork()
    }
  }

  resume(): void {
    this.socket.resume()
  }

  /** Gives up the request; the receiver gets no further calls. */
  destroy(): void {
    this.#receiver = undefined
    this.socket.destroy()
  }

  /** Returns false to stop reading until `resume`. */
  #read(bytesRead: number): boolean {
    const receiver = this.#receiver
    const bytes = sharedBuffer.subarray(0, bytesRead)
    try {
      if (receiver === undefined) throw new Error('expected nothing')
      if (this.#head === undefined) return this.#readHead(bytes, receiver)
      return this.#readPart(bytes, receiver)
    } catch (error) {
      this.#lose(error instanceof Error ? error : new Error(String(error)))
      this.socket.destroy()
      return false
    }
  }

  #readHead(bytes: Buffer, receiver: ResponseReceiver): boolean {
    const all = this.#partial === undefined ? bytes : Buffer.concat([this.#partial, bytes])
    const end = all.indexOf(headEnd)
    if (end < 0) {
      if (all.length > headerBytesMax) throw new Error('expected a shorter head')
      this.#partial = Buffer.from(all)
      return true
    }
    this.#partial = undefined
    const head = readResponseHead(all.toString('latin1', 0, end))
    const start = end + headEnd.length
    const isInterim = head.status < 200
    if (isInterim) return start === all.length || this.#readHead(all.subarray(start), receiver)
    const bodyBytes = this.#bodyBytesOf(head)
    if (all.length - start < bodyBytes) {
      this.#head = head
      this.#bytesLeft = bodyBytes
      receiver.begun(head)
      return start === all.length || this.#readPart(all.subarray(start), receiver)
    }
    if (all.length - start > bodyBytes) throw new Error('expected no more than its length')
    const isShort = bodyBytes <= shortResponseBytesMax
    receiver.answered(
      head,
      isShort ? all.toString('latin1', start) : Buffer.from(all.subarray(start)),
    )
    this.#complete(head)
    return true
  }

  #readPart(bytes: Buffer, receiver: ResponseReceiver): boolean {
    if (bytes.length > this.#bytesLeft) throw new Error('expected no more than its length')
    this.#bytesLeft -= bytes.length
    const mayGoOn = receiver.part(Buffer.from(bytes))
    if (this.#bytesLeft > 0) return mayGoOn
    const head = this.#head
    this.#head = undefined
    receiver.ended()
    if (head !== undefined) this.#complete(head)
    return true
  }

  #bodyBytesOf({ status, bodyBytes }: ResponseHead): number {
    if (this.#isHeadRequest || status === 204 || status === 304) return 0
    if (bodyBytes === undefined) throw new Error('expected a response with its length')
    return bodyBytes
  }

  /** The response may be complete before all of the request was sent: such a connection cannot be used again. */
  #complete({ isLast }: ResponseHead): void {
    this.#receiver = undefined
    if (isLast || this.socket.writableLength > 0) this.socket.destroy()
    else this.#user.released(this)
  }

  #lose(error: Error): void {
    const receiver = this.#receiver
    this.#receiver = undefined
    receiver?.lost(error)
  }
}
