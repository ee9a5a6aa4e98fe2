/**
 * The two HTTP servers of a worker, one a listener kind. Each really listens, on the Unix socket where the other
 * workers reach it: a server that never listens enforces no timeouts at all. Connections handed over by
 * the primary are put in by emitting 'connection'.
 *
 * The socket file is made under a temporary name and renamed into place. That replaces the file of a killed
 * predecessor atomically, and libuv, which unlinks the name it bound when a server closes, cannot remove the
 * successor's file at a reload: a worker that leaves takes its own name back before the successor renames its file.
 */
import { chmodSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { PostboteError } from '../errors.ts'
import {
  connectionsCheckMs,
  headerBytesMax,
  headersTimeoutMs,
  keepAliveTimeoutMs,
  listenBacklog,
  requestTimeoutMs,
  socketPathBytesMax,
} from '../limits.ts'
import type { ConnectionMessage } from './channel-message.ts'
import { markConnection, takeOrigin } from './connection-origin.ts'
import { type ListenerKind, listenerKinds } from './listener.ts'
import { isAnswering } from './native-handle.ts'
import { OpenAnswers } from './open-answers.ts'
import { OpenConnections } from './open-connections.ts'
import { rawAnswer } from './raw-answer.ts'

export interface WorkerServersOptions {
  readonly runDir: string
  readonly worker: number
  /** How long a request to the bot API may take to arrive. */
  readonly botRequestTimeoutMs?: number | undefined
  /** Answers requests once their origin is known (connection-origin.ts). */
  readonly handlers: Handlers
}

type Handlers = Readonly<Record<ListenerKind, RequestListener>>

export class WorkerServers {
  readonly #options: WorkerServersOptions
  readonly #servers: Readonly<Record<ListenerKind, Server>>
  readonly #answers = new OpenAnswers()
  readonly #connections = new OpenConnections()
  #handlers: Handlers
  #endsConnections = false

  constructor(options: WorkerServersOptions) {
    this.#options = options
    this.#handlers = options.handlers
    this.#servers = { bot: this.#createServer('bot'), private: this.#createServer('private') }
  }

  /** Listens, but nobody finds it before `show`. */
  async listen(): Promise<void> {
    mkdirSync(this.#options.runDir, { recursive: true, mode: 0o700 })
    chmodSync(this.#options.runDir, 0o700)
    for (const kind of listenerKinds) await listenAt(this.#servers[kind], this.#ownPath(kind))
  }

  /** From now on the other workers reach this one, and none before it in this place. */
  show(): void {
    for (const kind of listenerKinds) renameSync(this.#ownPath(kind), this.#path(kind))
  }

  /** New connections of other workers wait for the next `show`, here or in the successor. */
  hide(): void {
    for (const kind of listenerKinds) renameSync(this.#path(kind), this.#ownPath(kind))
  }

  /** Answers by other handlers from now on, and keeps connections again. */
  goOn(handlers: Handlers): void {
    this.#handlers = handlers
    this.#endsConnections = false
  }

  /** Puts a connection in as if it had been accepted here. `handle` is what the primary sent. */
  accept(message: ConnectionMessage, handle: object): void {
    // The types know no `handle` option; net.Server makes its own sockets in just this way.
    const socket = new Socket({ handle, allowHalfOpen: true } as object)
    markConnection(socket, { listener: message.listener, peerAddress: message.peerAddress })
    socket.setNoDelay(true)
    socket.unshift(asBuffer(message.bytes))
    this.#servers[message.listener].emit('connection', socket)
  }

  /** From now on every answer ends its connection. */
  endConnections(): void {
    this.#endsConnections = true
    for (const answer of this.#answers) this.#connections.endAfter(answer)
  }

  /** The same, and idle connections are closed. */
  startDraining(): void {
    this.endConnections()
    for (const kind of listenerKinds) this.#servers[kind].closeIdleConnections()
  }

  /** The answers that are not out yet, those that another process gives among them. */
  answers(): readonly ServerResponse[] {
    return [...this.#answers]
  }

  /** Resolves when no connection is left. */
  empty(): Promise<void> {
    return this.#connections.empty()
  }

  /** How many requests are being answered. */
  get open(): number {
    return this.#answers.count
  }

  /** Resolves when no request is being answered. */
  idle(): Promise<void> {
    return this.#answers.idle()
  }

  close(): void {
    for (const kind of listenerKinds) {
      this.#servers[kind].close()
      this.#servers[kind].closeAllConnections()
    }
  }

  #createServer(kind: ListenerKind): Server {
    const answer: RequestListener = (request, response) => {
      takeOrigin(request, kind)
      if (this.#endsConnections && !this.#connections.endAfter(response)) return
      this.#answers.track(response)
      this.#handlers[kind](request, response)
    }
    const server = createServer(
      {
        headersTimeout: headersTimeoutMs,
        keepAliveTimeout: keepAliveTimeoutMs,
        // An NDJSON stream may last for days; uploads to the bot API may not.
        requestTimeout:
          kind === 'bot' ? (this.#options.botRequestTimeoutMs ?? requestTimeoutMs) : 0,
        connectionsCheckingInterval: connectionsCheckMs,
        maxHeaderSize: headerBytesMax,
        noDelay: true,
        // Node's own refusal has no body; whoever needs a Host asks for it in the listener's form.
        requireHostHeader: false,
      },
      answer,
    )
    server.on('connection', (socket) => this.#connections.track(socket))
    // As with the Host: an expectation nobody knows is no reason for an answer without a body.
    server.on('checkExpectation', answer)
    server.on('connect', (_request, socket) => {
      socket.end(rawAnswer(kind, new PostboteError('NOT_FOUND')))
    })
    // A producer may end its side behind its request; a bot that does is gone, and its poll with it.
    if (kind === 'private') Object.assign(server, { httpAllowHalfOpen: true })
    server.on('clientError', (error, socket) => refuseBytes(kind, error, socket))
    return server
  }

  #path(kind: ListenerKind): string {
    const { runDir, worker } = this.#options
    return peerSocketPath({ runDir, worker, kind })
  }

  /** What the kernel knows the socket by, and libuv removes in the end. */
  #ownPath(kind: ListenerKind): string {
    return `${this.#path(kind)}.${process.pid}`
  }
}

/** Where the other workers reach a worker; the place, not the process: a successor has the same path. */
export function peerSocketPath(place: {
  readonly runDir: string
  readonly worker: number
  readonly kind: ListenerKind
}): string {
  return join(place.runDir, `w${place.worker}-${place.kind}.sock`)
}

async function listenAt(server: Server, path: string): Promise<void> {
  if (Buffer.byteLength(path) >= socketPathBytesMax) {
    throw new Error(
      `the path of the socket ${path} must be shorter than ${socketPathBytesMax} bytes: choose a shorter directory`,
    )
  }
  rmSync(path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // Without `exclusive` node:cluster would ask the primary to listen.
    server.listen({ path, exclusive: true, backlog: listenBacklog }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', () => undefined) // EMFILE: libuv has closed what it could not take.
}

/** Answers bytes that are no request, and requests that took too long, in the form of the listener. */
export function refuseBytes(
  kind: ListenerKind,
  error: NodeJS.ErrnoException,
  socket: Duplex,
): void {
  // Nothing may be written behind the first bytes of an answer that is already on its way.
  if (!socket.writable || error.code === 'ECONNRESET' || isAnswering(socket)) {
    socket.destroy()
    return
  }
  socket.end(rawAnswer(kind, parserError(error)), () => void socket.destroy())
}

function parserError(error: NodeJS.ErrnoException & { readonly reason?: unknown }): PostboteError {
  if (error.code === 'HPE_HEADER_OVERFLOW') return new PostboteError('HEADERS_TOO_LARGE')
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return new PostboteError('REQUEST_TIMEOUT')
  const reason = typeof error.reason === 'string' ? error.reason : 'the request is not HTTP/1.1'
  return new PostboteError('BAD_REQUEST', { detail: reason })
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
