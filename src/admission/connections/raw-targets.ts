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
import { PostboteError } from '../../kit/errors.ts'
import { GrowingBody } from '../../http/growing-body.ts'
import { headerBytesMax } from '../../http/limits.ts'
import { lineEndIn, requestLineStart, withEncodedTarget } from './request-line-start.ts'
import { parseFrom, type ParserError } from '../../http/native-handle.ts'

export class RawTargets {
  /** The beginnings of lines whose ends have not arrived. */
  readonly #open = new WeakMap<Duplex, GrowingBody>()

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
      const line = this.#open.get(socket) ?? newLine()
      this.#open.set(socket, line)
      if (!line.add(packet.subarray(start, end))) return new PostboteError('HEADERS_TOO_LARGE')
      if (end === undefined) return undefined
      this.#open.delete(socket)
      packet = packet.subarray(end)
      const pieces = [withEncodedTarget(line.bytes()), packet]
      const next = parseFrom(server, { socket, pieces, headerBytesMax })
      // The line has no such byte any more: what is wrong with it is wrong in any spelling.
      if (next?.rawPacket !== packet) return next
      failure = next
    }
    return failure
  }
}

const noBytes: Buffer = Buffer.alloc(0)

/** Not a Buffer for each packet: one of a byte takes 400 bytes. */
function newLine(): GrowingBody {
  return new GrowingBody(headerBytesMax, (bytes) => bytes <= headerBytesMax)
}

const mustEncode =
  'the request line came in pieces: percent-encode the bytes above 0x7f in its address'

function failedAt({ bytesParsed }: ParserError): number {
  return typeof bytesParsed === 'number' ? bytesParsed : -1
}
