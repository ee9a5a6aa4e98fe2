/**
 * Where a connection and a request really come from.
 *
 * A connection that the primary handed off is marked with its listener and client address. The requests of other workers
 * arrive on links (link/), whose frames say the same of each request.
 */
import type * as http from 'node:http'
import type * as net from 'node:net'
import type { ListenerKind } from './listener.ts'

export interface ConnectionOrigin {
  readonly listener: ListenerKind
  /** Empty for a client of a Unix socket. */
  readonly clientAddress: string
}

export interface RequestOrigin extends ConnectionOrigin {
  /** How often this request was forwarded between workers: 0 if it came straight from its client. */
  readonly hops: number
  /** The shard that a forwarded request is for, if it is for one. */
  readonly shard?: number | undefined
}

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

/** Records where a request of another worker comes from. */
export function setOrigin(request: http.IncomingMessage, origin: RequestOrigin): void {
  request[requestMark] = origin
}

/** Records where a client's request comes from. `listener` is the kind of the server. */
export function takeOrigin(request: http.IncomingMessage, listener: ListenerKind): RequestOrigin {
  const origin = request.socket[connectionMark] ?? { listener, clientAddress: '', hops: 0 }
  request[requestMark] = origin
  return origin
}
