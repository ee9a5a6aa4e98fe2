/** Bots that poll as their frameworks do: one long poll after the other, each confirming the updates of the one before. */
import { connect, type Socket } from 'node:net'
import { DelayLog, type Delays } from '../delays.ts'
import type { LongPollerQuestion } from '../latency-messages.ts'
import { monotonicUs, readStamps } from '../time-stamp.ts'
import { serveHelper } from './serve-helper.ts'

const headEnd = Buffer.from('\r\n\r\n')
const contentLength = /\r\ncontent-length: *(\d+)/i
const idStart = Buffer.from('{"update_id":')
const idDigitsMax = 10
const waitMsMax = 60_000
const delays = new DelayLog()

class PollingBot {
  readonly #token: string
  readonly #socket: Socket
  #rest: Buffer | undefined
  #offset = 0

  constructor(port: number, token: string) {
    this.#token = token
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.#socket.on('data', (bytes) => this.#read(bytes))
    this.#socket.on('error', (error) => fail(error))
    this.#poll()
  }

  #poll(): void {
    this.#socket.write(
      `GET /bot${this.#token}/getUpdates?offset=${this.#offset}&timeout=50 HTTP/1.1\r\n` +
        'Host: localhost\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n',
    )
  }

  #read(bytes: Buffer): void {
    const all = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes])
    const end = all.indexOf(headEnd)
    const head = end < 0 ? '' : all.toString('latin1', 0, end)
    const bodyBytes = Number(contentLength.exec(head)?.[1] ?? Number.POSITIVE_INFINITY)
    if (all.length < end + headEnd.length + bodyBytes) {
      this.#rest = all
      return
    }
    this.#rest = undefined
    if (!head.startsWith('HTTP/1.1 200')) return fail(new Error(`a poll got ${all.toString()}`))
    if (delays.isWatching) {
      const nowUs = monotonicUs()
      for (const sentUs of readStamps(all)) delays.note(nowUs - sentUs)
    }
    const lastAt = all.lastIndexOf(idStart)
    if (lastAt >= 0) {
      const first = lastAt + idStart.length
      this.#offset = Number.parseInt(all.toString('latin1', first, first + idDigitsMax), 10) + 1
    }
    this.#poll()
  }
}

/** Ends the process: a bot that stops would show as delays that never arrive. */
function fail(error: Error): void {
  process.stderr.write(`${error.message.slice(0, 500)}\n`)
  process.exit(1)
}

const bots: PollingBot[] = []

serveHelper(async (question: LongPollerQuestion): Promise<Delays | undefined> => {
  switch (question.kind) {
    case 'start':
      bots.push(...question.tokens.map((token) => new PollingBot(question.port, token)))
      return undefined
    case 'watch':
      delays.watch()
      return undefined
    case 'delays':
      return delays.take(question.count, waitMsMax)
    default:
      return undefined
  }
})
