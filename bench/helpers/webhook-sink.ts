/**
 * The endpoint of webhooks: a raw TCP or TLS server that reads just enough of a request to find its end, and sends the
 * same response to all. It can hold its responses back, so that a measurement begins with a full queue and all
 * connections open, and it can record the delays of updates.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createSecureServer } from 'node:tls'
import { DelayLog, type Delays } from '../delays.ts'
import type { SinkIdentity, SinkQuestion } from '../sink-messages.ts'
import { monotonicUs, readStamp } from '../time-stamp.ts'
import { serveHelper } from './serve-helper.ts'

const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
const headEnd = Buffer.from('\r\n\r\n')
const contentLength = /\r\ncontent-length: *(\d+)/i
const waitMsMax = 60_000
/** A thousand bots may connect at the same time. */
const backlog = 4_096

let isHolding = false
let held: Socket[] = []
let answered = 0
let expected = Number.POSITIVE_INFINITY
let onExpected: (() => void) | undefined
const delays = new DelayLog()

class Reader {
  readonly #socket: Socket
  #rest: Buffer | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('error', () => socket.destroy())
    socket.on('data', (bytes) => this.#read(bytes))
  }

  #read(bytes: Buffer): void {
    const all = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes])
    const end = all.indexOf(headEnd)
    const length = end < 0 ? undefined : contentLength.exec(all.toString('latin1', 0, end))?.[1]
    if (end >= 0 && length === undefined) {
      this.#socket.destroy()
    } else if (end < 0 || all.length < end + headEnd.length + Number(length)) {
      this.#rest = all
    } else {
      // A connection carries one request at a time.
      this.#rest = undefined
      if (delays.isWatching) noteDelay(all)
      if (isHolding) held.push(this.#socket)
      else reply(this.#socket)
    }
  }
}

function noteDelay(request: Buffer): void {
  const sentUs = readStamp(request)
  if (sentUs !== undefined) delays.note(monotonicUs() - sentUs)
}

function reply(socket: Socket): void {
  socket.write(answer)
  answered += 1
  if (answered === expected) onExpected?.()
}

function read(socket: Socket): void {
  void new Reader(socket)
}

function listen(identity: SinkIdentity | undefined): Promise<number> {
  const server = identity === undefined ? createServer(read) : createSecureServer(identity, read)
  // A failed handshake concerns only the client.
  server.on('tlsClientError', () => undefined)
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen({ port: 0, host: '127.0.0.1', backlog }, () => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
      resolve((server.address() as AddressInfo).port)
    })
  })
}

function hold(): void {
  isHolding = true
  held = []
  answered = 0
  expected = Number.POSITIVE_INFINITY
}

async function release(count: number): Promise<number> {
  const startMs = performance.now()
  expected = count
  isHolding = false
  for (const socket of held.splice(0)) reply(socket)
  await untilExpected()
  return (performance.now() - startMs) / 1_000
}

function watch(): void {
  isHolding = false
  delays.watch()
}

function untilExpected(): Promise<void> {
  if (answered >= expected) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`${answered} of ${expected} requests came in ${waitMsMax} ms`)),
      waitMsMax,
    )
    onExpected = () => {
      clearTimeout(late)
      resolve()
    }
  })
}

serveHelper(async (question: SinkQuestion): Promise<number | Delays | undefined> => {
  switch (question.kind) {
    case 'listen':
      return listen(question.identity)
    case 'hold':
      hold()
      return undefined
    case 'held':
      return held.filter((socket) => !socket.destroyed).length
    case 'release':
      return release(question.count)
    case 'watch':
      watch()
      return undefined
    case 'delays':
      return delays.take(question.count, waitMsMax)
    default:
      return undefined
  }
})
