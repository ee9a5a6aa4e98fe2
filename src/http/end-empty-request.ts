/**
 * Ends the stream of a request that has no body at once, instead of letting node:http find out: for each request it
 * plans three events (readable, end, close) that nobody listens to, 2 us of the 13 that bare node:http takes.
 *
 * Node has the same as an option of its servers, `optimizeEmptyRequests`, since 24.12. Here it is for the requests
 * alone that the bot API answers by itself: Fastify and whoever sends a request on may listen. A client that goes is
 * noticed by its socket (once-closed.ts), which the request's stream has no part in.
 *
 * The price: the names of the stream's state are not documented. Where one of them is not as expected, or is not
 * there, the request is left as it is and takes the long way.
 */
import type { IncomingMessage } from 'node:http'
import { hasBody } from './body.ts'

interface StreamState {
  ended: unknown
  endEmitted: unknown
  destroyed: unknown
  closed: unknown
  closeEmitted: unknown
}

interface OpenRequest extends IncomingMessage {
  _dumped?: unknown
  _readableState?: StreamState
}

export function endEmptyRequest(request: OpenRequest): void {
  // oxlint-disable-next-line no-underscore-dangle -- node:stream has no other name for it
  const { _dumped: isDumped, _readableState: state } = request
  if (hasBody(request) || isDumped !== false || state === undefined || !isOpen(state)) return
  // oxlint-disable-next-line no-underscore-dangle -- as above
  request._dumped = true
  state.ended = true
  state.endEmitted = true
  state.destroyed = true
  state.closed = true
  state.closeEmitted = true
}

function isOpen(state: StreamState): boolean {
  return (
    state.ended === false &&
    state.endEmitted === false &&
    state.destroyed === false &&
    state.closed === false &&
    state.closeEmitted === false
  )
}
