/**
 * A request that offers another protocol (`Connection: Upgrade`, as curl does for HTTP/2 in the clear) is answered like
 * any other, but node:http forgets what it has read together with it and behind it. The client of a pipelined request
 * there would wait for ever, or take the answer to a later one for its own, so the connection must end with the answer
 * to the offer.
 *
 * It stays wherever nothing can have been lost, since real clients wait for the answer to an offer: the bytes that are
 * being read end with the request. Where they may begin within a head, or hold earlier requests too, it is not tried to
 * find out: to connect again costs such a client little.
 */
import type { IncomingMessage } from 'node:http'
import { bytesBeingRead } from './native-handle.ts'

const headEnd = '\r\n\r\n'

/** Asked while its head is being read. */
export function mayLoseWhatFollows({ headers, socket }: IncomingMessage): boolean {
  // The parser stops at nothing else.
  if (headers.upgrade === undefined || !offers.test(headers.connection ?? '')) return false
  const bytes = bytesBeingRead(socket)
  if (bytes === undefined || headers['transfer-encoding'] !== undefined) return true
  const beginsInLineEnd = bytes[0] === 13 || bytes[0] === 10
  const end = bytes.indexOf(headEnd)
  const bodyBytes = Number(headers['content-length'] ?? 0)
  return beginsInLineEnd || end < 0 || end + headEnd.length + bodyBytes !== bytes.length
}

const offers = /(?:^|[,\s])upgrade(?:$|[,\s])/i
