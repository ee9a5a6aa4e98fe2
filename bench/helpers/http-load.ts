/**
 * Load of HTTP servers: raw sockets and prepared requests, one in flight per connection. Only the status and the length
 * of responses are read, so that the load costs much less than what it measures.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import {
  type HttpConnection,
  type HttpQuestion,
  type HttpSample,
  numberMark,
} from '../http-sample.ts'
import { serveHelper } from './serve-helper.ts'

const headEnd = Buffer.from('\r\n\r\n')
const okStatus = 'HTTP/1.1 200'
const headBytesMax = 1_024
const contentLength = /\r\ncontent-length: *(\d+)\r\n/i

/** A number that no earlier run has used, in this process or another. */
let lastNumber = Date.now() * 1_000

class PreparedRequest {
  readonly #bytes: Buffer
  readonly #numberAt: number

  constructor(text: string) {
    this.#bytes = Buffer.from(text)
    this.#numberAt = this.#bytes.indexOf(numberMark)
  }

  next(): Buffer {
    if (this.#numberAt < 0) return this.#bytes
    lastNumber += 1
    const text = String(lastNumber).padStart(numberMark.length, '0')
    // The response to the request before has arrived, so its bytes can be overwritten.
    this.#bytes.write(text, this.#numberAt, 'latin1')
    return this.#bytes
  }
}

class Connection {
  readonly #plan: HttpConnection
  readonly #requests: readonly PreparedRequest[]
  #socket: Socket
  #next = 0
  /** The rest of the response that is being read; undefined before its head has arrived. */
  #bytesLeft: number | undefined
  #endMs = 0
  #sentMs = 0
  #settle: { resolve(): void; reject(error: Error): void } | undefined
  #isClosed = false
  answered = 0
  readonly delaysMs: number[] = []

  constructor(plan: HttpConnection) {
    this.#plan = plan
    this.#requests = plan.requests.map((request) => new PreparedRequest(request))
    this.#socket = this.#connect()
  }

  /** Resolves when the response that is in flight at the end has arrived. */
  run(endMs: number): Promise<void> {
    this.answered = 0
    this.delaysMs.length = 0
    this.#endMs = endMs
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#send()
    })
  }

  close(): void {
    this.#isClosed = true
    this.#settle = undefined
    this.#socket.destroy()
  }

  #connect(): Socket {
    const { port, isTls = false } = this.#plan
    const place = { host: '127.0.0.1', port, noDelay: true }
    const socket = isTls ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place)
    socket.on('data', (bytes) => this.#read(bytes))
    socket.on('error', (error) => this.#settle?.reject(error))
    socket.on('close', () => this.#closed())
    return socket
  }

  #closed(): void {
    if (this.#isClosed) return
    if (this.#plan.isOneShot !== true || this.#bytesLeft !== 0) {
      this.#settle?.reject(new Error('the server closed'))
      return
    }
    this.#bytesLeft = undefined
    this.#goOn()
  }

  #send(): void {
    if (this.#socket.destroyed) this.#socket = this.#connect()
    const request = this.#requests[this.#next]
    if (request === undefined) throw new Error('expected prepared requests')
    this.#next = (this.#next + 1) % this.#requests.length
    this.#sentMs = performance.now()
    this.#socket.write(request.next())
  }

  #read(bytes: Buffer): void {
    if (this.#bytesLeft === undefined) {
      this.#bytesLeft = this.#readHead(bytes)
    } else {
      this.#bytesLeft -= bytes.length
    }
    if (this.#bytesLeft > 0) return
    if (this.#bytesLeft < 0) return this.#fail(bytes, 'sent more than its content-length')
    // The server closes this connection; the next request is sent after that.
    if (this.#plan.isOneShot === true) return
    this.#bytesLeft = undefined
    this.#goOn()
  }

  #goOn(): void {
    const nowMs = performance.now()
    const { probeEveryMs } = this.#plan
    if (probeEveryMs === undefined) this.answered += 1
    else this.delaysMs.push(nowMs - this.#sentMs)
    if (nowMs >= this.#endMs) this.#settle?.resolve()
    else if (probeEveryMs === undefined) this.#send()
    else setTimeout(() => this.#send(), probeEveryMs)
  }

  /** Returns the length of the rest of the body. Here a head always arrives in one piece. */
  #readHead(bytes: Buffer): number {
    const end = bytes.indexOf(headEnd)
    const head = bytes.toString('latin1', 0, end < 0 ? headBytesMax : end + 2)
    const length = Number(contentLength.exec(head)?.[1])
    const { bodyBytesMin, bodyBytesMax } = this.#plan
    if (
      end < 0 ||
      !head.startsWith(okStatus) ||
      !(length >= bodyBytesMin && length <= bodyBytesMax)
    ) {
      this.#fail(bytes, 'answered what was not expected')
      return Number.MAX_SAFE_INTEGER
    }
    return length - (bytes.length - end - headEnd.length)
  }

  #fail(bytes: Buffer, why: string): void {
    this.#socket.destroy(new Error(`the server ${why}: ${bytes.toString('latin1', 0, 500)}`))
  }
}

let connections: Connection[] = []
let planned = ''

serveHelper(async (question: HttpQuestion): Promise<HttpSample> => {
  // Connections are kept from run to run, like those of a bot.
  const plan = JSON.stringify(question.connections)
  if (plan !== planned) {
    for (const connection of connections) connection.close()
    connections = question.connections.map((each) => new Connection(each))
    planned = plan
  }
  const startMs = performance.now()
  const endMs = startMs + question.durationMs
  await Promise.all(connections.map((connection) => connection.run(endMs)))
  return {
    operations: connections.reduce((sum, { answered }) => sum + answered, 0),
    seconds: (performance.now() - startMs) / 1_000,
    delaysMs: connections.flatMap(({ delaysMs }) => delaysMs).toSorted((a, b) => a - b),
  }
})
