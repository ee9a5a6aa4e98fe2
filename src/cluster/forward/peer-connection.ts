/**
 * One connection to another worker's Unix socket: one request on it at a time, whose answer is handed on as it comes.
 *
 * node:http's client cost more for each request than all that the owner did for it. This speaks just as much of HTTP as
 * our own servers answer with: HTTP/1.1 and a Content-Length. Bytes are read into one buffer that all connections
 * share, since each read is over before the next begins; what is handed on is a copy.
 *
 * The connection is the request's: its end means that the client has gone, and back-pressure is the socket's.
 */
import { connect, type Socket } from 'node:net'
import { headerBytesMax, peerReadBytes, shortAnswerBytesMax } from '../../limits.ts'
import { type AnswerHead, readAnswerHead } from './answer-head.ts'

export interface PeerRequest {
  readonly method: string
  /** Up to and with the empty line, a byte a character. */
  readonly head: string
  readonly body: Buffer
}

export interface AnswerReceiver {
  /** The whole answer at once; a text has a byte a character. */
  answered(head: AnswerHead, body: string | Buffer): void
  /** Else its head, its parts (false: wait until `resume`) and its end. */
  begun(head: AnswerHead): void
  part(bytes: Buffer): boolean
  ended(): void
  /** The connection broke, or what came is no answer. Nothing else comes after it. */
  lost(error: Error): void
}

export interface ConnectionUser {
  /** The answer is complete, and the next request may be sent. */
  released(connection: PeerConnection): void
  closed(connection: PeerConnection): void
}

const sharedBuffer = Buffer.allocUnsafeSlow(peerReadBytes)
const headEnd = Buffer.from('\r\n\r\n')

export class PeerConnection {
  readonly path: string
  readonly socket: Socket
  readonly #user: ConnectionUser
  #receiver: AnswerReceiver | undefined
  #isHeadRequest = false
  /** Of a head that came in pieces. */
  #partial: Buffer | undefined
  #head: AnswerHead | undefined
  #bytesLeft = 0
  /** When it was last released. */
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

  send({ method, head, body }: PeerRequest, receiver: AnswerReceiver): void {
    const { socket } = this
    this.#receiver = receiver
    this.#isHeadRequest = method === 'HEAD'
    if (body.length === 0) socket.write(head, 'latin1')
    else if (body.length <= shortAnswerBytesMax) {
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

  /** The request is given up; its receiver hears nothing more. */
  destroy(): void {
    this.#receiver = undefined
    this.socket.destroy()
  }

  /** False stops reading until `resume`. */
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

  #readHead(bytes: Buffer, receiver: AnswerReceiver): boolean {
    const all = this.#partial === undefined ? bytes : Buffer.concat([this.#partial, bytes])
    const end = all.indexOf(headEnd)
    if (end < 0) {
      if (all.length > headerBytesMax) throw new Error('expected a shorter head')
      this.#partial = Buffer.from(all)
      return true
    }
    this.#partial = undefined
    const head = readAnswerHead(all.toString('latin1', 0, end))
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
    const isShort = bodyBytes <= shortAnswerBytesMax
    receiver.answered(
      head,
      isShort ? all.toString('latin1', start) : Buffer.from(all.subarray(start)),
    )
    this.#complete(head)
    return true
  }

  #readPart(bytes: Buffer, receiver: AnswerReceiver): boolean {
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

  #bodyBytesOf({ status, bodyBytes }: AnswerHead): number {
    if (this.#isHeadRequest || status === 204 || status === 304) return 0
    if (bodyBytes === undefined) throw new Error('expected an answer with its length')
    return bodyBytes
  }

  /** An answer may come before all of the request was sent: then the connection is of no more use. */
  #complete({ isLast }: AnswerHead): void {
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
