/**
 * Load of HTTP servers: raw sockets, prepared requests, one in flight a connection, of the answers only the status and
 * the length are read. It is meant to cost much less than what it measures.
 */
import { connect, type Socket } from 'node:net'
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

/** Not used by a run before, be it by another process. */
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
    // The answer to the one before has come, so that its bytes are not needed any more.
    this.#bytes.write(text, this.#numberAt, 'latin1')
    return this.#bytes
  }
}

class Connection {
  readonly #plan: HttpConnection
  readonly #requests: readonly PreparedRequest[]
  #socket: Socket
  #next = 0
  /** Of the answer being read; undefined before its head is there. */
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

  /** Resolves when the answer that is in flight at the end has come. */
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
    const socket = connect({ host: '127.0.0.1', port: this.#plan.port, noDelay: true })
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
    // Of one that is closed now the next is sent after that.
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

  /** The bytes of the body that are still to come. A head always comes in one piece here. */
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
  // Connections last from run to run, as a bot's do.
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
