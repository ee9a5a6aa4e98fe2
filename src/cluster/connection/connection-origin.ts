/**
 * Where a connection and a request really come from.
 *
 * A connection that the primary handed off is marked with its listener and client address. A connection without a mark
 * was accepted on the worker's own Unix socket, so it belongs to another worker. Only such a connection may carry the
 * forwarding headers below; on all others these headers are removed, so that no client can forge them.
 */
import type * as http from 'node:http'
import type * as net from 'node:net'
import type { ListenerKind } from '../listener.ts'

export interface ConnectionOrigin {
  readonly listener: ListenerKind
  /** Empty for a client of a Unix socket. */
  readonly clientAddress: string
}

export interface RequestOrigin extends ConnectionOrigin {
  /** How often this request was forwarded between workers: 0 if it came straight from its client. */
  readonly hops: number
}

export const clientAddressHeader = 'x-postbote-client-address'
export const hopsHeader = 'x-postbote-hops'

const connectionMark: unique symbol = Symbol('connection origin')
const requestMark: unique symbol = Symbol('request origin')

declare module 'net' {
  interface Socket {
    [connectionMark]?: RequestOrigin
  }
}

declare module 'http' {
  interface IncomingMessage {
    [requestMark]?: RequestOrigin
  }
}

export function markConnection(
  socket: net.Socket,
  { listener, clientAddress }: ConnectionOrigin,
): void {
  // The object is written out and not spread: a spread object gets its own hidden class, 170 bytes per connection.
  socket[connectionMark] = { listener, clientAddress, hops: 0 }
}

/** Returns the origin that `takeOrigin` recorded; undefined only for a request that it has not seen. */
export function requestOrigin(request: http.IncomingMessage): RequestOrigin | undefined {
  return request[requestMark]
}

/** Records where the request comes from and removes all forwarding headers. `listener` is the kind of the server. */
export function takeOrigin(request: http.IncomingMessage, listener: ListenerKind): RequestOrigin {
  const origin = request.socket[connectionMark] ?? {
    listener,
    clientAddress: headerText(request, clientAddressHeader),
    hops: Number(headerText(request, hopsHeader)) || 1,
  }
  request[requestMark] = origin
  stripForwardingHeaders(request)
  return origin
}

function headerText(request: http.IncomingMessage, name: string): string {
  const value = request.headers[name]
  return typeof value === 'string' ? value : ''
}

/** This runs for every request: usually it costs two look-ups. */
function stripForwardingHeaders(request: http.IncomingMessage): void {
  const { headers, rawHeaders } = request
  if (headers[clientAddressHeader] === undefined && headers[hopsHeader] === undefined) return
  delete headers[clientAddressHeader]
  delete headers[hopsHeader]
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    const name = rawHeaders[at]?.toLowerCase()
    if (name === clientAddressHeader || name === hopsHeader) rawHeaders.splice(at, 2)
  }
}
