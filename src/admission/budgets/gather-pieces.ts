/**
 * Gathers the small pieces of a body, so that memory holds its bytes and not a Buffer for each of them: a chunk of one byte
 * takes 400 bytes, and a body that waits to be read would hold 64 Ki of them. The pieces of one read of the socket are passed
 * on together, before anything else happens, so nothing is delayed. All others are passed on as they are.
 */
import type { IncomingMessage } from 'node:http'
import { GrowingBody } from '../../http/growing-body.ts'
import { bodyPiecesPerCharge } from '../../http/limits.ts'

/**
 * A piece of a body below this size is gathered with the next ones and charged. Chosen: the same as for a refused body
 * (`refusedPieceBytesMin`); a pair of a stream, which some producers send as a piece, is larger.
 */
export const smallPieceBytes = 64

/**
 * Call this when the head of the request has arrived.
 *
 * @param onPieces - called each time that so many more small pieces have arrived
 */
export function gatherPieces(
  request: Pick<
    IncomingMessage,
    'push' | 'socket' | 'destroyed' | 'readableLength' | 'readableHighWaterMark'
  >,
  onPieces: (pieces: number) => void,
): void {
  const push = request.push.bind(request)
  let gathered: GrowingBody | undefined
  let bytes = 0
  let pieces = 0

  function flush(): boolean {
    const body = gathered
    gathered = undefined
    bytes = 0
    return body === undefined || request.destroyed || push(body.bytes())
  }

  // node:http passes each piece to `push`, and stops reading if the result is false.
  request.push = (piece: Buffer | null): boolean => {
    if (piece === null || piece.length >= smallPieceBytes) {
      flush()
      return push(piece)
    }
    if (gathered === undefined) {
      gathered = new GrowingBody(Infinity, () => true)
      queueMicrotask(() => {
        if (!flush()) request.socket.pause()
      })
    }
    gathered.add(piece)
    bytes += piece.length
    pieces += 1
    if (pieces % bodyPiecesPerCharge === 0) onPieces(bodyPiecesPerCharge)
    return request.readableLength + bytes < request.readableHighWaterMark
  }
}
