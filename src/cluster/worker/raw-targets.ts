/**
 * Lets requests pass whose target has bytes above 0x7f (request-line-start.ts). The parser refuses such a byte, so this
 * begins only where it fails: other requests cost nothing. The parser begins again with the same request line in its
 * encoded spelling, and goes on with the bytes that follow it.
 *
 *   parser fails --> line complete? --yes--> restart, encoded line, the bytes after it --> next failure ...
 *                      ^       | no
 *                      +-------+ the next packet (a failed parser gives back what it gets, without a look at it)
 *
 * Where the line began is known for certain only if that was in the packet that fails (the primary waits for whole lines, so
 * it is for the first request of a connection without TLS). Otherwise the request is refused.
 */
import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { PostboteError } from '../../errors.ts'
import { headerBytesMax } from '../limits.ts'
import { lineEndIn, requestLineStart, withEncodedTarget } from '../connection/request-line-start.ts'
import { parseFrom } from '../connection/native-handle.ts'

/** What node:http adds to the errors of its parser. */
export interface ParserError extends NodeJS.ErrnoException {
  readonly reason?: unknown
  readonly rawPacket?: unknown
  readonly bytesParsed?: unknown
}

/** The beginning of a line whose end has not arrived. */
interface OpenLine {
  readonly pieces: Buffer[]
  bytes: number
}

export class RawTargets {
  readonly #open = new WeakMap<Duplex, OpenLine>()

  /**
   * Goes on after an error of the parser if such a byte is its reason.
   *
   * @returns the error with which the connection must be refused, if any
   */
  goOn(
    server: Server,
    socket: Duplex,
    error: ParserError,
  ): ParserError | PostboteError | undefined {
    let failure = error
    let packet = Buffer.isBuffer(error.rawPacket) ? error.rawPacket : noBytes
    while (failure.code === 'HPE_INVALID_URL') {
      const start = this.#open.has(socket) ? 0 : requestLineStart(packet, failedAt(failure))
      if (start === 'not raw') return failure
      if (start === 'unknown') return new PostboteError('BAD_REQUEST', { detail: mustEncode })
      const end = lineEndIn(packet, start)
      const line = this.#add(socket, packet.subarray(start, end))
      if (line.bytes > headerBytesMax) return new PostboteError('HEADERS_TOO_LARGE')
      if (end === undefined) return undefined
      this.#open.delete(socket)
      packet = packet.subarray(end)
      const pieces = [withEncodedTarget(Buffer.concat(line.pieces)), packet]
      // The first piece has no such byte any more, so that each failure is nearer to the end.
      const next = parseFrom(server, { socket, pieces, headerBytesMax })
      if (next === undefined) return undefined
      failure = next
    }
    return failure
  }

  #add(socket: Duplex, piece: Buffer): OpenLine {
    const line = this.#open.get(socket) ?? { pieces: [], bytes: 0 }
    line.pieces.push(piece)
    line.bytes += piece.length
    this.#open.set(socket, line)
    return line
  }
}

const noBytes: Buffer = Buffer.alloc(0)
const mustEncode =
  'the request line came in pieces: percent-encode the bytes above 0x7f in its address'

function failedAt({ bytesParsed }: ParserError): number {
  return typeof bytesParsed === 'number' ? bytesParsed : -1
}
