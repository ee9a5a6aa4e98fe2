/**
 * Load of HTTP servers: raw sockets, prepared requests, one in flight a connection, of the answers only the status and
 * the length are read. It is meant to cost much less than what it measures.
 */
import { connect, type Socket } from 'node:net'
import type { HttpConnection, HttpQuestion, HttpSample } from '../http-sample.ts'
import { serveHelper } from './serve-helper.ts'

const headEnd = Buffer.from('\r\n\r\n')
const okStatus = 'HTTP/1.1 200'
const headBytesMax = 1_024
const contentLength = /\r\ncontent-length: *(\d+)\r\n/i

class Connection {
  readonly #plan: HttpConnection
  readonly #requests: readonly Buffer[]
  readonly #socket: Socket
  #next = 0
  /** Of the answer being read; undefined before its head is there. */
  #bytesLeft: number | undefined
  #endMs = 0
  #settle: { resolve(): void; reject(error: Error): void } | undefined
  answered = 0

  constructor(plan: HttpConnection) {
    this.#plan = plan
    this.#requests = plan.requests.map((request) => Buffer.from(request))
    this.#socket = connect({ host: '127.0.0.1', port: plan.port, noDelay: true })
    this.#socket.on('data', (bytes) => this.#read(bytes))
    this.#socket.on('error', (error) => this.#settle?.reject(error))
    this.#socket.on('close', () => this.#settle?.reject(new Error('the server closed')))
  }

  /** Resolves when the answer that is in flight at the end has come. */
  run(endMs: number): Promise<void> {
    this.answered = 0
    this.#endMs = endMs
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      this.#send()
    })
  }

  close(): void {
    this.#settle = undefined
    this.#socket.destroy()
  }

  #send(): void {
    const request = this.#requests[this.#next]
    if (request === undefined) throw new Error('expected prepared requests')
    this.#next = (this.#next + 1) % this.#requests.length
    this.#socket.write(request)
  }

  #read(bytes: Buffer): void {
    if (this.#bytesLeft === undefined) {
      this.#bytesLeft = this.#readHead(bytes)
    } else {
      this.#bytesLeft -= bytes.length
    }
    if (this.#bytesLeft > 0) return
    if (this.#bytesLeft < 0) return this.#fail(bytes, 'sent more than its content-length')
    this.#bytesLeft = undefined
    this.answered += 1
    if (performance.now() < this.#endMs) this.#send()
    else this.#settle?.resolve()
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
  }
})
