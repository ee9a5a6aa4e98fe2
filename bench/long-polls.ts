/** One bot over its own connection: one long poll after the other, each confirming the updates of the one before. */
import { connect, type Socket } from 'node:net'

const headEnd = Buffer.from('\r\n\r\n')
const contentLength = /\r\ncontent-length: *(\d+)/i

export interface LongPollsOptions {
  readonly port: number
  readonly token: string
  /** Takes the body of a response. Returns the offset of the next poll; undefined keeps the last one. */
  received(body: Buffer): number | undefined
  /** Called for a response other than 200, and for an error of the connection. */
  failed(error: Error): void
}

export class LongPolls {
  readonly #options: LongPollsOptions
  readonly #socket: Socket
  #rest: Buffer | undefined
  #offset = 0

  constructor(options: LongPollsOptions) {
    this.#options = options
    this.#socket = connect({ host: '127.0.0.1', port: options.port, noDelay: true })
    this.#socket.on('data', (bytes) => this.#read(bytes))
    this.#socket.on('error', (error) => options.failed(error))
    this.#poll()
  }

  #poll(): void {
    this.#socket.write(
      `GET /bot${this.#options.token}/getUpdates?offset=${this.#offset}&timeout=50 HTTP/1.1\r\n` +
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
    if (!head.startsWith('HTTP/1.1 200')) {
      this.#options.failed(new Error(`a poll got ${all.toString()}`))
      return
    }
    this.#offset = this.#options.received(all.subarray(end + headEnd.length)) ?? this.#offset
    this.#poll()
  }
}
