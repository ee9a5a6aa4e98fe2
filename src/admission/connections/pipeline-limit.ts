/**
 * Bounds what one connection can make a worker do in one turn of the event loop. Only requests to the private listener
 * with a valid key have no such bound.
 *
 * Node reads 64 KiB at a time, up to 32 times in a turn, and handles each request in it before anything else: thousands
 * of pipelined requests for unknown paths held a worker for longer than a second. No bot, proxy or load balancer
 * pipelines. A client that does gets `pipelinedPerTurnMax` responses in a turn, or one if it has used up its budget of
 * event-loop time. The last one ends the connection, and what follows is not parsed. Requests that are sent one after the other, in any number, are not counted.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../kit/clock.ts'
import { bytesBeingRead } from '../../http/native-handle.ts'

export class PipelineLimit {
  readonly #clock: Pick<Clock, 'soon'>
  readonly #perTurnMaxOf: (request: IncomingMessage) => number
  /** The counts of this turn. */
  readonly #counts = new Map<Socket, number>()

  /** @param perTurnMaxOf - returns how many pipelined requests this client may send in a turn */
  constructor(clock: Pick<Clock, 'soon'>, perTurnMaxOf: (request: IncomingMessage) => number) {
    this.#clock = clock
    this.#perTurnMaxOf = perTurnMaxOf
  }

  /** Counts a request; returns true if its response must be the last one of its connection. */
  isReached(response: ServerResponse): boolean {
    // The response has the socket, so no earlier one is unfinished.
    if (response.socket !== null) return false
    const { socket } = response.req
    if (this.#counts.size === 0) this.#clock.soon(() => this.#counts.clear())
    const count = (this.#counts.get(socket) ?? 0) + 1
    this.#counts.set(socket, count)
    return count >= this.#perTurnMaxOf(response.req)
  }
}

const headEnd = '\r\n\r\n'

/**
 * Returns whether the response to a request must be the last one of its connection, because it offers another protocol
 * (`Connection: Upgrade`, as curl does for HTTP/2 in clear text). It gets a response like any other, but node:http drops the
 * bytes after that request that it has read with it. The client of a pipelined request would wait forever, or take the
 * response to a later request for its own.
 *
 * The connection stays open if nothing can have been lost: the bytes that are being read end with the request. Real
 * clients wait for the response to an offer, so that is the usual case. If the bytes may begin within a head, or hold
 * earlier requests, too, the connection ends without a closer check: a new connection costs the client little.
 *
 * Call this while the head of the request is being parsed.
 */
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
