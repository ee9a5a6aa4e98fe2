/**
 * The undocumented parts of Node's sockets that the hand-off and TLS rely on, in one place: `_handle` (the native TCP or Pipe
 * object, whose `reading` says whether node:net has started to read from it), `_parent` (the connection below one of TLS),
 * `_httpMessage` (the response that is being written), `parser.incoming` (the request that is being read),
 * `parser.getCurrentBuffer` (the bytes it is read from), `parser.onIncoming` (called for each head; its result steers
 * the parser), and `parser.remove`, `initialize`, `execute` and `kOnExecute` (how node:http itself uses a parser again).
 */
import { IncomingMessage, type Server as HttpServer, ServerResponse } from 'node:http'
import { type Server, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'

export interface NativeHandle {
  /** The descriptor; negative once the handle is closed. */
  readonly fd: number
  readStop(): number
  readStart(): number
}

/** Returns undefined once the socket, or the server that listens, is closed. */
export function nativeHandleOf(socket: Duplex | Server): NativeHandle | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  return isNativeHandle(handle) ? handle : undefined
}

/** Stops reading from a connection before its first byte. The socket of TLS that takes it over begins again by itself. */
export function leaveUnread(socket: Duplex): void {
  const handle = nativeHandleOf(socket)
  if (handle === undefined) return
  handle.readStop()
  Reflect.set(handle, 'reading', false)
}

/** Returns the connection that a server of TLS was given. It still has its address when a handshake has failed. */
export function connectionBelow(socket: TLSSocket): Socket {
  const below: unknown = Reflect.get(socket, '_parent')
  if (below instanceof Socket) return below
  throw new Error('expected node:tls to know the connection below its socket')
}

/** Returns whether this connection has sent the head of a response that is not finished. */
export function isAnswering(socket: Duplex): boolean {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return (
    typeof message === 'object' &&
    message !== null &&
    'headersSent' in message &&
    message.headersSent === true
  )
}

/** Returns the first response of this connection that is not fully sent: it has the socket, later ones wait for it. */
export function responseBeingWritten(socket: Duplex): ServerResponse | undefined {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return message instanceof ServerResponse ? message : undefined
}

/** Returns the request that is being read on this connection, or the last one that was. */
export function incomingOf(socket: Duplex): IncomingMessage | undefined {
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser !== 'object' || parser === null || !('incoming' in parser)) return undefined
  return parser.incoming instanceof IncomingMessage ? parser.incoming : undefined
}

/** Returns a copy of the bytes that the parser is reading. Call this within a listener that the parser calls. */
export function bytesBeingRead(socket: Duplex): Buffer | undefined {
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser !== 'object' || parser === null || !('getCurrentBuffer' in parser))
    return undefined
  if (typeof parser.getCurrentBuffer !== 'function') return undefined
  const bytes: unknown = parser.getCurrentBuffer()
  return Buffer.isBuffer(bytes) ? bytes : undefined
}

/**
 * Stops the parsing of requests on this connection. Call this in a request listener or later. For each further head the
 * parser is told that another protocol follows, and it drops the rest of the bytes that were read with it.
 */
export function stopParsing(socket: Duplex): void {
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser === 'object' && parser !== null) Reflect.set(parser, 'onIncoming', notHttp)
}

/** llhttp's `on_headers_complete` may return 2: no body follows, and nothing that is HTTP. */
function notHttp(): number {
  return 2
}

/** What node:http adds to the errors of its parser. */
export interface ParserError extends NodeJS.ErrnoException {
  readonly reason?: unknown
  readonly rawPacket?: unknown
  readonly bytesParsed?: unknown
}

/** What the parser of a connection is given after a failure. */
export interface BytesToParse {
  readonly socket: Duplex
  readonly pieces: readonly Buffer[]
  readonly headerBytesMax: number
}

/**
 * Begins to parse again on a connection whose parser has failed before the head of a request was complete. What node:http
 * knows of the connection stays, such as the responses to earlier requests.
 *
 * @returns the next failure, whose `rawPacket` is the piece that it is in
 */
export function parseFrom(
  server: HttpServer,
  { socket, pieces, headerBytesMax }: BytesToParse,
): ParserError | undefined {
  const parser = restartableParserOf(socket)
  const open = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'http.server.connections',
  )
  if (parser === undefined || open === undefined) throw new Error('expected a parser of node:http')
  // In this order: the list of connections finds one by the time at which its request began, which `initialize` sets.
  parser.remove()
  parser.initialize(requestType, {}, headerBytesMax, noLeniency, Reflect.get(server, open))
  let result: unknown
  for (const piece of pieces) {
    result = parser.execute(piece)
    if (result instanceof Error) return Object.assign(result, { rawPacket: piece })
  }
  const onExecute: unknown = Reflect.get(parser, parser.constructor.kOnExecute)
  // Pauses the parser while responses wait, and releases the connection after CONNECT.
  if (typeof onExecute === 'function') onExecute(result)
  return undefined
}

interface RestartableParser {
  readonly constructor: { readonly kOnExecute: number }
  remove(): void
  initialize(...settings: readonly unknown[]): void
  execute(bytes: Buffer): unknown
}

/** `HTTPParser.REQUEST` and `kLenientNone`. */
const requestType = 1
const noLeniency = 0

function restartableParserOf(socket: Duplex): RestartableParser | undefined {
  const parser: unknown = Reflect.get(socket, 'parser')
  return isRestartable(parser) ? parser : undefined
}

function isRestartable(parser: unknown): parser is RestartableParser {
  return (
    typeof parser === 'object' &&
    parser !== null &&
    ['remove', 'initialize', 'execute'].every((name) => name in parser) &&
    'kOnExecute' in parser.constructor
  )
}

/** Returns whether no response is being written on this connection. */
export function isAnswered(socket: Duplex): boolean {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return message === undefined || message === null
}

/** Returns whether the response to the request that is being read was finished before the end of that request. */
export function isAnsweredEarly(socket: Duplex): boolean {
  return incomingOf(socket)?.complete === false && isAnswered(socket)
}

function isNativeHandle(handle: unknown): handle is NativeHandle {
  return (
    typeof handle === 'object' &&
    handle !== null &&
    'readStop' in handle &&
    'readStart' in handle &&
    'fd' in handle
  )
}
