/**
 * What an answer of a stranger may cost, whoever asked for it: the sizes of its pieces, its interim responses (1xx) and its
 * framing. Each of them can go on for ever while hardly a byte of a body arrives, so no limit on the size of a body ends it.
 * An answer that goes past a bound is given up, and its connection with it.
 *
 * A meter counts one answer at a time and is used again for the next one of its connection, so that a delivery creates none.
 */
import { kib, mib } from '../../kit/limits.ts'

/**
 * A piece of a body costs as much as this many bytes, whatever its size: chunks of one byte take a worker 10 ms for 64 KiB,
 * and a hundred times their size in memory if somebody keeps them.
 */
const pieceBytesMin = 64
/**
 * The pieces of a body may fall short of 64 bytes each by this much in all: 1,000 tiny ones, which is more than a server writes
 * that flushes each value by itself.
 */
const smallPiecesBytesMax = 64 * kib
/** An answer may have this many interim responses, one for each second that a webhook has. An endless row of them took half a worker. */
export const interimResponsesMax = 60
/**
 * What is no body may have this many bytes, as many as all interim responses and the headers with 16 KiB each: a chunk
 * extension, or the zeros before a chunk's size, may go on for ever, and took 0.7 to 1.0 of a core.
 */
const framingBytesMax = mib
/** It may have this part of the body beside: a chunk of `pieceBytesMin` bytes has six of framing. */
const framingPart = 1 / 8

/** Why an answer was given up. The message is the end of a sentence that names who answered. */
export class AnswerRefused extends Error {
  readonly code = 'ANSWER_REFUSED'

  constructor(message: string) {
    super(message)
    this.name = 'AnswerRefused'
  }
}

export const tooManyInterim = new AnswerRefused('too many interim responses')
export const piecesTooSmall = new AnswerRefused('a body in pieces that are too small')
export const notHttp = new AnswerRefused('what is not HTTP/1.1')
export const onlyHttp2 = new AnswerRefused('frames of HTTP/2, and HTTP/1.1 is needed')
export const tooMuchFraming = new AnswerRefused('too many bytes that are no body')

/** Counts what one answer costs. */
export class AnswerMeter {
  /** The bytes of its body, of which each piece counts as `pieceBytesMin` at least. */
  weight = 0
  #bodyBytes = 0
  #interimResponses = 0
  #rawBytesBefore = 0

  /**
   * Another answer begins.
   *
   * @param rawBytes - what its connection has received so far
   */
  begin(rawBytes: number): void {
    this.weight = 0
    this.#bodyBytes = 0
    this.#interimResponses = 0
    this.#rawBytesBefore = rawBytes
  }

  /** Counts a piece of the body. Returns why the answer must be given up. */
  addPiece(bytes: number): AnswerRefused | undefined {
    this.#bodyBytes += bytes
    this.weight += Math.max(bytes, pieceBytesMin)
    return this.weight - this.#bodyBytes > smallPiecesBytesMax ? piecesTooSmall : undefined
  }

  /** Counts an interim response. */
  addInterim(): AnswerRefused | undefined {
    this.#interimResponses++
    return this.#interimResponses > interimResponsesMax ? tooManyInterim : undefined
  }

  /** @param rawBytes - what its connection has received so far */
  framingOf(rawBytes: number): AnswerRefused | undefined {
    const framing = rawBytes - this.#rawBytesBefore - this.#bodyBytes
    return framing > framingBytesMax + this.#bodyBytes * framingPart ? tooMuchFraming : undefined
  }
}
