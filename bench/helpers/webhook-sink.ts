/**
 * Where webhooks go: a raw TCP or TLS server that reads just enough of a request to know where it ends and answers
 * every one with the same bytes. It can hold its answers back, so that a measurement begins with a full queue and all
 * connections open, and it can note how long updates were on their way.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createServer as createSecureServer } from 'node:tls'
import type { Delays, SinkIdentity, SinkQuestion } from '../sink-messages.ts'
import { monotonicUs, readStamp } from '../time-stamp.ts'
import { serveHelper } from './serve-helper.ts'

const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
const headEnd = Buffer.from('\r\n\r\n')
const contentLength = /\r\ncontent-length: *(\d+)/i
const waitMsMax = 60_000
/** A thousand bots may connect at once. */
const backlog = 4_096

let isHolding = false
let held: Socket[] = []
let answered = 0
let expected = Number.POSITIVE_INFINITY
let onExpected: (() => void) | undefined
/** Undefined while nobody watches. */
let delaysUs: number[] | undefined
let expectedDelays = Number.POSITIVE_INFINITY

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
      // One request at a time comes on a connection.
      this.#rest = undefined
      if (delaysUs !== undefined) noteDelay(all, delaysUs)
      if (isHolding) held.push(this.#socket)
      else reply(this.#socket)
    }
  }
}

function noteDelay(request: Buffer, into: number[]): void {
  const sentUs = readStamp(request)
  if (sentUs === undefined) return
  into.push(monotonicUs() - sentUs)
  if (into.length === expectedDelays) onExpected?.()
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
  // A handshake that is given up is the client's business.
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
  await untilExpected(
    () => answered,
    () => expected,
  )
  return (performance.now() - startMs) / 1_000
}

function watch(): void {
  isHolding = false
  delaysUs = []
  expectedDelays = Number.POSITIVE_INFINITY
}

async function delays(count: number): Promise<Delays> {
  const noted = delaysUs ?? []
  expectedDelays = count
  await untilExpected(
    () => noted.length,
    () => expectedDelays,
  )
  delaysUs = undefined
  const sorted = Float64Array.from(noted).toSorted()
  return { p50Ms: partMs(sorted, 0.5), p99Ms: partMs(sorted, 0.99), maxMs: partMs(sorted, 1) }
}

/** The smallest delay that this part of all does not exceed. */
function partMs(sorted: Float64Array, part: number): number {
  return (sorted[Math.ceil(sorted.length * part) - 1] ?? Number.NaN) / 1_000
}

function untilExpected(have: () => number, want: () => number): Promise<void> {
  if (have() >= want()) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`${have()} of ${want()} requests came in ${waitMsMax} ms`)),
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
      return delays(question.count)
    default:
      return undefined
  }
})
