/**
 * Where a connection and a request really come from.
 *
 * A connection handed over by the primary is marked with its listener and peer address. One that is not marked
 * was accepted on the worker's own Unix socket, so it is another worker's, and only there the forwarding
 * headers below are believed. Everywhere else they are removed, so that no client can forge them.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { ListenerKind } from './listener.ts'

export interface ConnectionOrigin {
  readonly listener: ListenerKind
  /** '' for a client of a Unix socket. */
  readonly peerAddress: string
}

export interface RequestOrigin extends ConnectionOrigin {
  /** How often this request was forwarded between workers: 0 for one that came straight from its client. */
  readonly hops: number
}

export const forwardingHeaderPrefix = 'x-postbote-'
export const peerAddressHeader = 'x-postbote-peer-address'
export const hopsHeader = 'x-postbote-hops'

const connectionMark = Symbol('connection origin')
const requestMark = Symbol('request origin')

interface MarkedSocket {
  [connectionMark]?: ConnectionOrigin
}

interface MarkedRequest {
  [requestMark]?: RequestOrigin
}

export function markConnection(socket: Socket, origin: ConnectionOrigin): void {
  ;(socket as MarkedSocket)[connectionMark] = origin
}

/** Undefined for a connection of another worker. */
export function connectionOrigin(socket: Socket): ConnectionOrigin | undefined {
  return (socket as MarkedSocket)[connectionMark]
}

/** Undefined only where `takeOrigin` has not seen the request. */
export function requestOrigin(request: IncomingMessage): RequestOrigin | undefined {
  return (request as MarkedRequest)[requestMark]
}

/** Notes where the request comes from and removes all forwarding headers. `listener` is the server's kind. */
export function takeOrigin(request: IncomingMessage, listener: ListenerKind): RequestOrigin {
  const connection = connectionOrigin(request.socket)
  const origin =
    connection === undefined
      ? {
          listener,
          peerAddress: headerText(request, peerAddressHeader),
          hops: Number(headerText(request, hopsHeader)) || 1,
        }
      : { ...connection, hops: 0 }
  ;(request as MarkedRequest)[requestMark] = origin
  stripForwardingHeaders(request)
  return origin
}

function headerText(request: IncomingMessage, name: string): string {
  const value = request.headers[name]
  return typeof value === 'string' ? value : ''
}

/** Looks at the raw list first: it is flat and short, and usually there is nothing to remove. */
function stripForwardingHeaders(request: IncomingMessage): void {
  const { rawHeaders } = request
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    const name = rawHeaders[at]
    if (name === undefined || name.length <= forwardingHeaderPrefix.length) continue
    const lower = name.toLowerCase()
    if (!lower.startsWith(forwardingHeaderPrefix)) continue
    rawHeaders.splice(at, 2)
    delete request.headers[lower]
  }
}
