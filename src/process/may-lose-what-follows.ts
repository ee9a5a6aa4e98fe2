/**
 * A request that offers another protocol (`Connection: Upgrade`, as curl does for HTTP/2 in clear text) gets a response
 * like any other. But node:http drops the bytes after that request that it has read with it. The client of a pipelined
 * request would wait forever, or take the response to a later request for its own. So the connection must end with the
 * response to the offer.
 *
 * The connection stays open if nothing can have been lost: the bytes that are being read end with the request. Real
 * clients wait for the response to an offer, so that is the usual case. If the bytes may begin within a head, or hold
 * earlier requests, too, the connection ends without a closer check: a new connection costs the client little.
 */
import type { IncomingMessage } from 'node:http'
import { bytesBeingRead } from '../http/native-handle.ts'

const headEnd = '\r\n\r\n'

/** Call this while the head of the request is being parsed. */
export function mayLoseWhatFollows({ headers, socket }: IncomingMessage): boolean {
  // The parser stops only at an Upgrade header that Connection names.
  if (headers.upgrade === undefined || !offers.test(headers.connection ?? '')) return false
  const bytes = bytesBeingRead(socket)
  if (bytes === undefined || headers['transfer-encoding'] !== undefined) return true
  const beginsInLineEnd = bytes[0] === 13 || bytes[0] === 10
  const end = bytes.indexOf(headEnd)
  const bodyBytes = Number(headers['content-length'] ?? 0)
  return beginsInLineEnd || end < 0 || end + headEnd.length + bodyBytes !== bytes.length
}

const offers = /(?:^|[,\s])upgrade(?:$|[,\s])/i
