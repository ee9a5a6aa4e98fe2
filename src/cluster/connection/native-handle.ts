/**
 * The parts of Node's sockets that are not documented and that the hand-off stands on, in one place:
 * `_handle` (the native TCP or Pipe object), `_httpMessage` (the answer that is being written),
 * `parser.incoming` (the request that is being read), `parser.getCurrentBuffer` (the bytes it is being read from) and
 * `parser.onIncoming` (called for each head, with an answer to the parser).
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

export interface NativeHandle {
  /** Its descriptor, negative once it is closed. */
  readonly fd: number
  readStop(): number
  readStart(): number
}

/** Undefined once the socket is closed. */
export function nativeHandleOf(socket: Duplex): NativeHandle | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  return isNativeHandle(handle) ? handle : undefined
}

/** Whether the head of an answer has gone out on this connection and the answer is not finished. */
export function isAnswering(socket: Duplex): boolean {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return (
    typeof message === 'object' &&
    message !== null &&
    'headersSent' in message &&
    message.headersSent === true
  )
}

/** The first answer of this connection that is not out yet: it has the socket, the others wait for it. */
export function answerBeingWritten(socket: Duplex): ServerResponse | undefined {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return message instanceof ServerResponse ? message : undefined
}

/** The request that is being read on this connection, or the last one that was. */
export function incomingOf(socket: Duplex): IncomingMessage | undefined {
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser !== 'object' || parser === null || !('incoming' in parser)) return undefined
  return parser.incoming instanceof IncomingMessage ? parser.incoming : undefined
}

/** A copy of what the parser is at, from within a listener that it calls. */
export function bytesBeingRead(socket: Duplex): Buffer | undefined {
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser !== 'object' || parser === null || !('getCurrentBuffer' in parser))
    return undefined
  if (typeof parser.getCurrentBuffer !== 'function') return undefined
  const bytes: unknown = parser.getCurrentBuffer()
  return Buffer.isBuffer(bytes) ? bytes : undefined
}

/**
 * Nothing more is read as a request on this connection, from within a listener of one or later. The parser is told that
 * what follows each head is another protocol: it drops the rest of what was read then.
 */
export function stopParsing(socket: Duplex): void {
  const parser: unknown = Reflect.get(socket, 'parser')
  if (typeof parser === 'object' && parser !== null) Reflect.set(parser, 'onIncoming', notHttp)
}

/** llhttp's `on_headers_complete` may answer 2: no body follows, and nothing that is HTTP. */
function notHttp(): number {
  return 2
}

/** Whether no answer is being written on this connection. */
export function isAnswered(socket: Duplex): boolean {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return message === undefined || message === null
}

/** Whether the request that is being read was answered before its end. */
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
