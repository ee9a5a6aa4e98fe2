/**
 * Ends the stream of a request without a body immediately. Otherwise node:http schedules three events per request
 * (readable, end, close) that nobody listens to: 2 us of the 13 us that bare node:http takes.
 *
 * Node has the same as a server option, `optimizeEmptyRequests`, since 24.12. This function is only for requests that the
 * bot API answers itself: Fastify, and code that forwards a request, may listen to the events. The end of a client is
 * noticed by its socket (once-closed.ts), which does not involve the stream of the request.
 *
 * The names of the stream's state are undocumented. If one of them is missing or has an unexpected value, the request is
 * left unchanged and takes the slower way.
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
