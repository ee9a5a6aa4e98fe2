/**
 * Where webhooks go: a raw TCP server that reads just enough of a request to know where it ends and answers every one
 * with the same bytes. It can hold its answers back, so that a measurement begins with a full queue and all
 * connections open.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { SinkQuestion } from '../sink-messages.ts'
import { serveHelper } from './serve-helper.ts'

const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
const headEnd = Buffer.from('\r\n\r\n')
const contentLength = /\r\ncontent-length: *(\d+)/i
const releaseMsMax = 60_000

let isHolding = false
let held: Socket[] = []
let answered = 0
let expected = Number.POSITIVE_INFINITY
let onExpected: (() => void) | undefined

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
      if (isHolding) held.push(this.#socket)
      else reply(this.#socket)
    }
  }
}

function reply(socket: Socket): void {
  socket.write(answer)
  answered += 1
  if (answered === expected) onExpected?.()
}

function listen(): Promise<number> {
  const server = createServer((socket) => new Reader(socket))
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
      resolve((server.address() as AddressInfo).port)
    })
  })
}

function release(count: number): Promise<number> {
  const startMs = performance.now()
  return new Promise((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`${answered} of ${count} requests came in ${releaseMsMax} ms`)),
      releaseMsMax,
    )
    expected = count
    onExpected = () => {
      clearTimeout(late)
      resolve((performance.now() - startMs) / 1_000)
    }
    isHolding = false
    for (const socket of held.splice(0)) reply(socket)
  })
}

function hold(): void {
  isHolding = true
  held = []
  answered = 0
  expected = Number.POSITIVE_INFINITY
}

serveHelper(async (question: SinkQuestion): Promise<number | undefined> => {
  switch (question.kind) {
    case 'listen':
      return listen()
    case 'hold':
      hold()
      return undefined
    case 'held':
      return held.filter((socket) => !socket.destroyed).length
    case 'release':
      return release(question.count)
    default:
      return undefined
  }
})
