/**
 * The two HTTP servers of a worker, one a listener kind. Each really listens, on the Unix socket where the other
 * workers reach it: a server that never listens enforces no timeouts at all. Connections handed over by
 * the primary are put in by emitting 'connection'.
 *
 * The socket file is made under a temporary name and renamed into place. That replaces the file of a killed
 * predecessor atomically, and libuv, which unlinks the name it bound when a server closes, cannot remove the
 * successor's file at a reload.
 */
import { chmodSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
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
import { rawAnswer } from './raw-answer.ts'

export interface WorkerServersOptions {
  readonly runDir: string
  readonly worker: number
  /** How long a request to the bot API may take to arrive. */
  readonly botRequestTimeoutMs?: number | undefined
  /** Answers requests once their origin is known (connection-origin.ts). */
  readonly handlers: Readonly<Record<ListenerKind, RequestListener>>
}

export class WorkerServers {
  readonly #options: WorkerServersOptions
  readonly #servers: Readonly<Record<ListenerKind, Server>>
  readonly #answers = new OpenAnswers()
  #isDraining = false

  constructor(options: WorkerServersOptions) {
    this.#options = options
    this.#servers = { bot: this.#createServer('bot'), private: this.#createServer('private') }
  }

  async listen(): Promise<void> {
    const { runDir, worker } = this.#options
    mkdirSync(runDir, { recursive: true, mode: 0o700 })
    chmodSync(runDir, 0o700)
    for (const kind of listenerKinds) {
      await listenAt(this.#servers[kind], peerSocketPath({ runDir, worker, kind }))
    }
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

  /** From now on every answer ends its connection, and idle connections are closed. */
  startDraining(): void {
    this.#isDraining = true
    for (const answer of this.#answers) answer.shouldKeepAlive = false
    for (const kind of listenerKinds) this.#servers[kind].closeIdleConnections()
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
      this.#answers.track(response)
      if (this.#isDraining) response.shouldKeepAlive = false
      this.#options.handlers[kind](request, response)
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
  const temporary = `${path}.${process.pid}`
  if (Buffer.byteLength(temporary) >= socketPathBytesMax) {
    throw new Error(
      `the path of the socket ${temporary} must be shorter than ${socketPathBytesMax} bytes: choose a shorter directory`,
    )
  }
  rmSync(temporary, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    // Without `exclusive` node:cluster would ask the primary to listen.
    server.listen({ path: temporary, exclusive: true, backlog: listenBacklog }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  server.on('error', () => undefined) // EMFILE: libuv has closed what it could not take.
  renameSync(temporary, path)
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
