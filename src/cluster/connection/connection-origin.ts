/**
 * Where a connection and a request really come from.
 *
 * A connection handed over by the primary is marked with its listener and client address. One that is not marked
 * was accepted on the worker's own Unix socket, so it is another worker's, and only there the forwarding
 * headers below are believed. Everywhere else they are removed, so that no client can forge them.
 */
import type * as http from 'node:http'
import type * as net from 'node:net'
import type { ListenerKind } from '../listener.ts'

export interface ConnectionOrigin {
  readonly listener: ListenerKind
  /** '' for a client of a Unix socket. */
  readonly clientAddress: string
}

export interface RequestOrigin extends ConnectionOrigin {
  /** How often this request was forwarded between workers: 0 for one that came straight from its client. */
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
  // Not spread: each would have a hidden class of its own, 170 bytes a connection.
  socket[connectionMark] = { listener, clientAddress, hops: 0 }
}

/** Undefined only where `takeOrigin` has not seen the request. */
export function requestOrigin(request: http.IncomingMessage): RequestOrigin | undefined {
  return request[requestMark]
}

/** Notes where the request comes from and removes all forwarding headers. `listener` is the server's kind. */
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

/** Runs for every request: two look-ups, and the rest only where one of the headers is there. */
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
