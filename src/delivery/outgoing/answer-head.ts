/**
 * Reads the bytes of an answer before undici's parser does, for two things that the parser refuses and that other clients take:
 * interim responses (1xx) that nobody asked for, which it never sees, and the status of an answer whose head or framing it
 * does not read to its end. A 2xx status line says that the endpoint has taken the update, whatever follows.
 *
 *     idle --begin--> line --status line--> final --end--> idle
 *                      ^  \--1xx--> interim
 *                      +----blank line----+
 *
 * Blank lines before a status line are skipped, as the parser does (RFC 9112, 2.2). It keeps no more than the beginning of a line.
 */
import type { Socket } from 'node:net'
import { kib } from '../../kit/limits.ts'
import { interimResponsesMax } from './answer-meter.ts'

/** `HTTP/1.1 200` and what follows it, with the versions that the parser reads. */
const statusBytes = 13
const statusLine = /^HTTP\/(?:0\.9|1\.[01]|2\.0) (\d{3})[ \r\n]/
/** What the beginning of a status line may be. */
const beginning = 'HTTP/'
/** The header of a frame with the settings of HTTP/2, or with its end, of which only the length differs (RFC 9113, 4.1). */
// oxlint-disable-next-line no-control-regex -- the frame has them
const http2Frame = /^\0[^]{2}[\x04\x07]\0{5}/

/** Chosen: usual heads are smaller, and the errors for what is left of a piece take 3 ms. */
const headersPieceBytes = kib

const newline = 10
const carriageReturn = 13
const nothing = Buffer.alloc(0)

/**
 * Has all that undici reads of a socket pass through a head. A stream in between would cost more than the rest.
 *
 * Where headers or trailers may come, undici gets small pieces. To each header past its limit it makes an error, until the end of
 * the piece: 64 KiB of short headers took 80 ms.
 */
export function readThrough(head: AnswerHead, socket: Socket): void {
  const read = socket.read.bind(socket)
  socket.read = (): unknown => {
    for (;;) {
      if (socket.destroyed) return null
      const bytes = head.mayHaveHeaders ? Math.min(socket.readableLength, headersPieceBytes) : 0
      const chunk: unknown = bytes === 0 ? read() : read(bytes)
      if (!(chunk instanceof Buffer)) return chunk
      const rest = head.pass(chunk)
      if (rest.length > 0) return rest
    }
  }
}

export class AnswerHead {
  #state: 'idle' | 'line' | 'interim' | 'final' = 'idle'
  /** The beginning of a status line. */
  #held: Buffer = nothing
  #isBlankLine = true
  #isLineComplete = false
  #status = 0
  /** Whether an answer has begun. */
  hasBytes = false
  isHttp2 = false
  /** Whether headers or trailers may come. */
  mayHaveHeaders = true
  /** So many interim responses came before. */
  interimResponses = 0

  /** Forgets the last answer, because another request begins. */
  reset(): void {
    this.end()
    this.hasBytes = false
    this.isHttp2 = false
    this.mayHaveHeaders = true
    this.interimResponses = 0
    this.#status = 0
    this.#isLineComplete = false
  }

  /** A request is about to be written. */
  begin(): void {
    this.#state = 'line'
  }

  /** Its headers have come. Only a body in chunks has trailers. */
  endHeaders(headers: Readonly<Record<string, unknown>>): void {
    this.mayHaveHeaders = headers['transfer-encoding'] !== undefined
  }

  /** The answer is complete, and what follows belongs to none. */
  end(): void {
    this.#state = 'idle'
    this.#held = nothing
  }

  get hasTooManyInterim(): boolean {
    return this.interimResponses > interimResponsesMax
  }

  /** The status if its line is complete; otherwise 0. */
  get status(): number {
    return this.#isLineComplete ? this.#status : 0
  }

  /** Takes what the endpoint has sent, and returns what the parser gets of it. */
  pass(chunk: Buffer): Buffer {
    if (this.#state === 'idle' || (this.#state === 'final' && this.#isLineComplete)) return chunk
    let rest = chunk
    while (rest.length > 0) {
      if (this.#state === 'interim') rest = this.#afterInterim(rest)
      else if (this.#state === 'line') rest = this.#readLine(rest)
      else break
    }
    if (this.#state === 'final') this.#isLineComplete ||= rest.includes(newline)
    return rest
  }

  /** Returns the status line and what follows, what follows the line of an interim response, or nothing if it is held. */
  #readLine(chunk: Buffer): Buffer {
    const all =
      this.#held.length === 0 ? withoutBlankLines(chunk) : Buffer.concat([this.#held, chunk])
    this.#held = nothing
    if (all.length === 0) return nothing
    this.hasBytes = true
    const text = all.toString('latin1', 0, statusBytes)
    const [, status] = statusLine.exec(text) ?? []
    const isBegun = beginning.startsWith(text.slice(0, beginning.length))
    if (status === undefined && isBegun && all.length < statusBytes && !all.includes(newline)) {
      this.#held = all
      return nothing
    }
    if (status?.startsWith('1') === true && status !== '101') {
      this.interimResponses++
      this.#isBlankLine = false
      this.#state = 'interim'
      return all
    }
    this.isHttp2 = http2Frame.test(text)
    this.#status = Number(status ?? 0)
    this.#state = 'final'
    return all
  }

  /** Skips an interim response. */
  #afterInterim(chunk: Buffer): Buffer {
    let from = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      const isBlank = this.#isBlankLine && isBlankIn(chunk, from, end)
      from = end + 1
      this.#isBlankLine = true
      if (!isBlank) continue
      this.#state = 'line'
      return chunk.subarray(from)
    }
    this.#isBlankLine &&= isBlankIn(chunk, from, chunk.length)
    return nothing
  }
}

function withoutBlankLines(chunk: Buffer): Buffer {
  let from = 0
  while (chunk[from] === newline || chunk[from] === carriageReturn) from++
  return from === 0 ? chunk : chunk.subarray(from)
}

/** Whether a part of a line is empty, or the first half of its end. */
function isBlankIn(chunk: Buffer, from: number, to: number): boolean {
  return from === to || (to - from === 1 && chunk[from] === carriageReturn)
}
