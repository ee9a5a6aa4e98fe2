/** What a response of a link writes to in place of a socket: its bytes go out in frames of its exchange. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { linkBufferBytes } from '../../process/limits.ts'
import type { FrameWriter } from './frame-writer.ts'
import { frameType } from './frame.ts'

interface Written {
  readonly chunk: string | Uint8Array
  readonly encoding: BufferEncoding
}

interface Held {
  readonly written: readonly Written[]
  readonly done: () => void
}

export class LinkStream extends Duplex {
  readonly #exchange: number
  readonly #writer: FrameWriter
  #held: Held | undefined
  /** How many bytes are in frames that the system does not have. */
  #framedBytes = 0
  /** The other side wants no more for now. */
  isHeldBack = false

  constructor(exchange: number, writer: FrameWriter) {
    super({ decodeStrings: false, readableHighWaterMark: linkBufferBytes })
    this.#exchange = exchange
    this.#writer = writer
  }

  /** Whether bytes were written to it that are not in frames yet. */
  get isHolding(): boolean {
    return this.writableLength > this.#framedBytes
  }

  /** node:http and its users treat any Duplex as a socket. */
  asSocket(): Socket {
    const duplex = this as Duplex
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an HTTP server takes any Duplex as a connection
    return duplex as Socket
  }

  /** node:http sets time limits of its sockets; here the other side's connection with the client has them. */
  setTimeout(): this {
    return this
  }

  /** The other side wants more. */
  goOn(): void {
    this.isHeldBack = false
    const held = this.#held
    this.#held = undefined
    if (held !== undefined) this.#send(held)
  }

  override _read(): void {
    // Nothing arrives here: the request has its body.
  }

  override _write(chunk: string | Uint8Array, encoding: BufferEncoding, done: () => void): void {
    this.#take([{ chunk, encoding }], done)
  }

  override _writev(written: readonly Written[], done: () => void): void {
    this.#take(written, done)
  }

  #take(written: readonly Written[], done: () => void): void {
    // node:http ends a response with an empty write, which nothing may hold back.
    if (written.every(({ chunk }) => chunk.length === 0)) done()
    else if (this.isHeldBack) {
      assert(this.#held === undefined, 'a stream writes once at a time')
      this.#held = { written, done }
    } else this.#send({ written, done })
  }

  #send({ written, done }: Held): void {
    const frame = { exchange: this.#exchange, type: frameType.data }
    for (const { chunk, encoding } of written) {
      if (chunk.length === 0) continue
      this.#framedBytes += chunk.length
      if (typeof chunk === 'string') this.#writer.writeText(frame, chunk, encoding)
      else this.#writer.write(frame, chunk)
    }
    this.#writer.whenFlushed(() => {
      this.#framedBytes = 0
      done()
    })
  }
}
