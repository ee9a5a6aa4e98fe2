/** The frames that a process sends over a link, collected for each turn of the event loop. */
import assert from 'node:assert/strict'
import type { Clock } from '../../kit/clock.ts'
import { linkBufferBytes, linkPayloadBytesMax } from '../../process/limits.ts'
import { type Frame, frameHeadBytes, fin } from './frame.ts'
import { kib } from '../../kit/limits.ts'

/** The part of a socket that frames are written to. */
export interface FrameSink {
  readonly writableLength: number
  readonly writableNeedDrain: boolean
  /** `done` is called when the system has the bytes, or with an error if it will not get them. */
  write(bytes: Uint8Array, done?: () => void): boolean
}

const nothing = Buffer.alloc(0)
/** As many buffers are kept for a link whose other side reads slowly. */
const spareMax = 8

/** Longer bodies become several frames of this size, so that the memory for frames stays small. */
export const linkPieceBytes = 32 * kib

export class FrameWriter {
  readonly #sink: FrameSink
  readonly #clock: Pick<Clock, 'soon'>
  #buffer: Buffer = nothing
  #used = 0
  /** Buffers that the system has taken all bytes of. */
  readonly #spare: Buffer[] = []
  #onFlushed: (() => void)[] = []

  constructor(sink: FrameSink, clock: Pick<Clock, 'soon'>) {
    this.#sink = sink
    this.#clock = clock
  }

  /** Whether the other side reads more slowly than this side writes. */
  get isCongested(): boolean {
    return this.#sink.writableNeedDrain
  }

  /** Copies the payload. Long data become several frames, of which only the last has the flag `fin`. */
  write({ exchange, type }: Frame, payload: Uint8Array = nothing): void {
    let at = 0
    for (; payload.length - at > linkPieceBytes; at += linkPieceBytes) {
      this.#add({ exchange, type: type & ~fin }, payload.subarray(at, at + linkPieceBytes))
    }
    this.#add({ exchange, type }, at === 0 ? payload : payload.subarray(at))
  }

  /** The same for text. */
  writeText(frame: Frame, text: string, encoding: BufferEncoding): void {
    const bytes = encoding === 'latin1' ? text.length : Buffer.byteLength(text, encoding)
    if (bytes > linkPieceBytes) {
      this.write(frame, Buffer.from(text, encoding))
      return
    }
    const at = this.#begin(frame, bytes)
    this.#buffer.write(text, at, encoding)
  }

  /** Writes the head of a request, which is always one frame, as one byte per character. */
  writeHead(frame: Frame, text: string): void {
    assert(text.length <= linkPayloadBytesMax, 'a head fits into one frame')
    const at = this.#begin(frame, text.length)
    this.#buffer.write(text, at, 'latin1')
  }

  /** Calls back when the system has what was written in this turn. */
  whenFlushed(done: () => void): void {
    this.#onFlushed.push(done)
  }

  /** Sends what was written in this turn. */
  flush(): void {
    if (this.#used === 0) return
    const buffer = this.#buffer
    const onFlushed = this.#onFlushed
    const bytes = buffer.subarray(0, this.#used)
    this.#used = 0
    this.#onFlushed = []
    let isLeft = false
    this.#sink.write(bytes, () => {
      if (isLeft && this.#spare.length < spareMax) this.#spare.push(buffer)
      for (const done of onFlushed) done()
    })
    // The system usually takes all bytes at once; otherwise the buffer is left to the socket until it has.
    if (this.#sink.writableLength === 0) return
    isLeft = true
    this.#buffer = this.#spare.pop() ?? nothing
  }

  #add(frame: Frame, payload: Uint8Array): void {
    const at = this.#begin(frame, payload.length)
    this.#buffer.set(payload, at)
  }

  /** Returns where the payload goes. */
  #begin({ exchange, type }: Frame, payloadBytes: number): number {
    const needed = frameHeadBytes + payloadBytes
    if (this.#buffer.length - this.#used < needed) this.flush()
    if (this.#buffer.length < needed) {
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(needed, linkBufferBytes))
    }
    if (this.#used === 0) this.#clock.soon(() => this.flush())
    const at = this.#used
    this.#buffer.writeUInt32LE(payloadBytes, at)
    this.#buffer.writeUInt32LE(exchange, at + 4)
    this.#buffer[at + 8] = type
    this.#used = at + needed
    return at + frameHeadBytes
  }
}
