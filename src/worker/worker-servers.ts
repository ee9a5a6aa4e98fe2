/**
 * The two HTTP servers of a worker, one per listener kind, and its end of the links of other workers (worker-links.ts).
 * Connections that the primary hands off are added by emitting 'connection'. The servers listen nevertheless, on sockets
 * without a name, because a server that never listens enforces no timeouts.
 *
 * A connection of a listener with TLS is added after its handshake (tls-handshakes.ts).
 *
 * At the limit of connections, a client's connection without a request in progress gives way to a new one
 * (client-connections.ts). If there is none, the new one is refused with 503. Other workers are never refused: their links
 * carry requests of clients.
 */
import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { PostboteError } from '../kit/errors.ts'
import { hasBody } from '../http/body.ts'
import { gatherPieces } from '../admission/budgets/gather-pieces.ts'
import { errorResponse, refusePrivate } from '../http/reply.ts'
import { connectionsCheckMs, headerBytesMax, pipelinedPerTurnMax } from '../http/limits.ts'
import { hurry } from '../http/once-closed.ts'
import { plainTarget } from '../http/plain-target.ts'
import { type Client, type ClientOf, clientsBy } from '../http/client.ts'
import { requestTimeoutMs, streamIdleMs, unavailableRetryAfterS } from '../kit/limits.ts'
import { BodyDeadline } from '../admission/connections/body-deadline.ts'
import { CallTurns } from '../admission/budgets/call-turns.ts'
import { ClientConnections } from '../admission/connections/client-connections.ts'
import type { ReceivedConnection } from '../process/channel/connection-inbox.ts'
import { workerConnectionLimit } from '../process/connection-limit.ts'
import { type ConnectionOrigin, markConnection, takeOrigin } from '../http/connection-origin.ts'
import { LastResponses } from '../admission/connections/last-responses.ts'
import { type ListenerCertificates, type ListenerKind, listenerKinds } from '../http/listener.ts'
import {
  incomingOf,
  isAnswered,
  isAnsweredEarly,
  isAnswering,
  type ParserError,
  stopParsing,
} from '../http/native-handle.ts'
import { OpenResponses } from '../process/open-responses.ts'
import { OpenConnections } from '../process/open-connections.ts'
import { mayLoseWhatFollows, PipelineLimit } from '../admission/connections/pipeline-limit.ts'
import { listenAt } from '../links/link/link-listener.ts'
import { RareWarning } from '../process/rare-warning.ts'
import { RawTargets } from '../admission/connections/raw-targets.ts'
import { TlsHandshakes } from '../admission/connections/tls-handshakes.ts'
import { WorkerLinks, type WorkerLinksOptions } from './worker-links.ts'

type OfLinks = Pick<WorkerLinksOptions, 'clock' | 'log' | 'runDir' | 'worker' | 'tcpLinks'>

export interface WorkerServersOptions extends OfLinks {
  readonly times?: Partial<ConnectionTimes>
  /** How many connections may be open at a time; by default, as many as the descriptors allow. */
  readonly connectionsMax?: number | undefined
  readonly app: ServedApp
}

/** What the servers need of the application. */
export interface ServedApp {
  /** The handlers of requests whose origin is known (connection-origin.ts). */
  readonly handlers: Readonly<Record<ListenerKind, RequestListener>>
  /** The certificates of the listeners with TLS; read once, as they stay the same until the process ends. */
  readonly certificates?: ListenerCertificates
  /** Called when a handshake of TLS has ended. */
  onHandshake?(isSecured: boolean): void
  /** How long a request to the bot API may take to arrive. By default `requestTimeoutMs`. */
  readonly botRequestTimeoutMs?: number | undefined
  /** Whether this request to the private listener may take any time to arrive. */
  mayLast?(request: IncomingMessage): boolean
  /** Returns how many pipelined requests of this client one turn of the event loop serves (pipeline-limit.ts). */
  pipelinedPerTurnMax?(request: IncomingMessage): number
  /** Without it, no key is known. */
  readonly clientOf?: ClientOf
  /** Returns how long the calls of this holder of a key must wait, in milliseconds. */
  holderWaitMs?(holder: string): number
  /** Called for the small pieces in which the body of a request to the private listener arrives. */
  onPieces?(request: IncomingMessage, pieces: number): void
  /** Called when a client's connection was closed or refused because there were too many. */
  onRefused?(): void
}

/** Tests use shorter times. */
export interface ConnectionTimes {
  readonly headersMs: number
  readonly requestMs: number
  readonly keepAliveMs: number
  /** How long no byte may move while a request is in progress. */
  readonly silentMs: Readonly<Record<ListenerKind, number>>
}

/**
 * The head of a request may take this long to arrive. Chosen: 64 KiB in 10 s is 52 kbit/s; a longer time lets slow
 * clients hold more connections.
 */
const headersTimeoutMs = 10_000
/**
 * An idle connection is kept this long. HTTP clients keep theirs for up to 75 s, and many do not repeat a POST on a
 * connection that the server has closed.
 */
export const keepAliveTimeoutMs = 80_000
/**
 * A connection without traffic for this long during a request is cut, for example because its client does not read a
 * response: 4 MB would be held for it. It is longer than any response takes (`upstreamResponseTimeoutMs`), by 30 s.
 */
const silentBotConnectionMs = 330_000
/** The same for the private listener: a minute longer than `streamIdleMs`, so that idle streams end in order first. */
const silentPrivateConnectionMs = streamIdleMs + 60_000

const usualTimes: ConnectionTimes = {
  headersMs: headersTimeoutMs,
  requestMs: requestTimeoutMs,
  keepAliveMs: keepAliveTimeoutMs,
  silentMs: { bot: silentBotConnectionMs, private: silentPrivateConnectionMs },
}

const withoutKeys = clientsBy(() => undefined)

export class WorkerServers {
  readonly #options: WorkerServersOptions
  readonly #times: ConnectionTimes
  readonly #servers: Readonly<Record<ListenerKind, Server>>
  readonly #links: WorkerLinks
  readonly #clients: ClientConnections
  readonly #handshakes: TlsHandshakes
  readonly #responses: OpenResponses
  readonly #connections = new OpenConnections()
  readonly #lastResponses: LastResponses
  readonly #bodies: BodyDeadline
  readonly #pipelines: PipelineLimit
  readonly #turns: CallTurns
  readonly #rawTargets = new RawTargets()
  readonly #crowded: RareWarning
  #app: ServedApp
  #endsConnections = false
  #isNodeLeaving = false

  constructor(options: WorkerServersOptions) {
    this.#options = options
    this.#app = options.app
    this.#times = { ...usualTimes, ...options.times }
    const connectionsMax = options.connectionsMax ?? workerConnectionLimit()
    this.#lastResponses = new LastResponses(options.clock, connectionsMax)
    const mayLast = (request: IncomingMessage): boolean => this.#app.mayLast?.(request) ?? true
    const clients = new ClientConnections({
      clock: options.clock,
      connectionsMax,
      mayLast,
      clientOf: (request) => this.#clientOf(request),
      late: refuseLate,
      bound: (socket) => this.#lastResponses.bound(socket),
    })
    this.#clients = clients
    this.#responses = new OpenResponses((socket) => clients.answered(socket))
    this.#crowded = new RareWarning(
      options,
      'connections were refused or closed: clients have too many',
    )
    this.#pipelines = new PipelineLimit(
      options.clock,
      (request) => this.#app.pipelinedPerTurnMax?.(request) ?? pipelinedPerTurnMax,
    )
    this.#turns = new CallTurns(
      options.clock,
      (holder) => this.#app.holderWaitMs?.(holder) ?? 0,
      (request, response) => this.#app.handlers.private(request, response),
    )
    this.#bodies = new BodyDeadline(options.clock, this.#times.requestMs, mayLast, refuseLate)
    this.#servers = { bot: this.#createServer('bot'), private: this.#createServer('private') }
    this.#links = this.#createLinks()
    this.#handshakes = new TlsHandshakes({
      clock: options.clock,
      certificates: options.app.certificates ?? {},
      secured: (socket, secured, origin) => this.#secured(socket, secured, origin),
      displaced: (listener) => this.#noteCrowd(listener),
      ended: (isSecured) => this.#app.onHandshake?.(isSecured),
    })
  }

  /** Listens under a temporary name, which nobody uses before `show`. */
  async listen(): Promise<void> {
    mkdirSync(this.#options.runDir, { recursive: true, mode: 0o700 })
    chmodSync(this.#options.runDir, 0o700)
    for (const kind of listenerKinds) {
      const path = join(this.#options.runDir, `w${this.#options.worker}-${kind}.${process.pid}`)
      await listenAt(this.#servers[kind], path)
      rmSync(path)
    }
    await this.#links.listen()
  }

  /** From now on the other workers reach this process, and no longer an earlier one. Rejects if they cannot. */
  show(): Promise<void> {
    return this.#links.show()
  }

  /** New links of other workers wait for the next `show`, of this process or the successor. */
  hide(): void {
    this.#links.hide()
  }

  /** The successor serves: other workers take new links, and close those to this process after the last response. */
  leaveLinks(): void {
    this.#links.leave()
  }

  /** Serves another application from now on, and keeps connections alive again. */
  goOn(app: ServedApp): void {
    this.#app = app
    this.#endsConnections = false
  }

  /** Adds a connection as if it had been accepted here. */
  accept({ descriptor, listener, clientAddress, bytes }: ReceivedConnection): void {
    const socket = new Socket({ fd: descriptor, allowHalfOpen: true })
    const origin = { listener, clientAddress }
    const isTls = this.#handshakes.isFor(listener)
    if (!this.#makeRoom(origin)) {
      // The client could not read a response before its handshake.
      if (isTls) {
        socket.destroy()
        return
      }
      socket.resume()
      socket.on('error', () => socket.destroy())
      const error = new PostboteError('TOO_MANY_CONNECTIONS')
      this.#lastResponses.send(socket, errorResponse(listener, error))
      return
    }
    socket.setNoDelay(true)
    if (isTls) {
      this.#connections.opened()
      this.#clients.handshaking(socket, origin)
      socket.once('close', () => this.#connections.closed())
      this.#handshakes.accept(socket, origin)
      return
    }
    markConnection(socket, origin)
    this.#clients.accepted(socket, origin)
    // In one piece: between two, node:http could read what arrives after them.
    socket.unshift(bytes)
    this.#servers[listener].emit('connection', socket)
  }

  /** `#connections` counts it twice until it is closed: as the connection that was accepted, and as the one of TLS above it. */
  #secured(socket: Socket, secured: Socket, origin: ConnectionOrigin): void {
    this.#clients.closed(socket)
    markConnection(secured, origin)
    this.#clients.accepted(secured, origin)
    this.#servers[origin.listener].emit('connection', secured)
    readThroughStream(secured)
  }

  /** From now on every response ends its connection. */
  endConnections(): void {
    this.#endsConnections = true
    this.#endOpen()
  }

  /**
   * While another node takes the shards of this one, every response ends its connection, so that clients find the other node
   * before this one has to close connections that they may be using.
   */
  nodeLeaves(isLeaving: boolean): void {
    const isNew = isLeaving && !this.#isNodeLeaving
    this.#isNodeLeaving = isLeaving
    if (isNew) this.#endOpen()
  }

  #endOpen(): void {
    // The links of other workers go on: their clients have connections there.
    for (const response of this.#responses) {
      if (response.req.socket instanceof Socket) this.#connections.endAfter(response)
    }
  }

  /** The same; also closes idle connections. */
  startDraining(): void {
    this.endConnections()
    for (const kind of listenerKinds) this.#servers[kind].closeIdleConnections()
  }

  /** The responses that are not finished, including those that another process generates. */
  responses(): readonly ServerResponse[] {
    return [...this.#responses]
  }

  /** Resolves when no connection is left. */
  empty(): Promise<void> {
    return this.#connections.empty()
  }

  /** The number of requests in progress. */
  get open(): number {
    return this.#responses.count
  }

  /** Resolves when no request is in progress. */
  idle(): Promise<void> {
    return this.#responses.idle()
  }

  close(): void {
    this.#bodies.close()
    this.#links.close()
    this.#handshakes.close()
    for (const kind of listenerKinds) {
      this.#servers[kind].close()
      this.#servers[kind].closeAllConnections()
    }
  }

  #makeRoom(newcomer: ConnectionOrigin): boolean {
    const { listener } = newcomer
    if (this.#clients.hasRoom(listener)) return true
    this.#noteCrowd(listener)
    return this.#clients.makeWay(newcomer)
  }

  #noteCrowd(listener: ListenerKind): void {
    this.#crowded.note({ listener, connections: this.#clients.count })
    this.#app.onRefused?.()
  }

  #start(kind: ListenerKind, request: IncomingMessage, response: ServerResponse): void {
    request.url = plainTarget(request.url ?? '/')
    takeOrigin(request, kind)
    const hasPlace = this.#clients.requested(request)
    if (this.#connections.isCut(request.socket) || !this.#mayAnswer(response)) return
    this.#responses.track(response)
    if (!hasPlace) this.#refuseConnection(response)
    else if (kind === 'private') this.#startPrivate(request, response)
    else this.#app.handlers[kind](request, response)
  }

  #clientOf(request: IncomingMessage): Client {
    return (this.#app.clientOf ?? withoutKeys)(request)
  }

  #startPrivate(request: IncomingMessage, response: ServerResponse): void {
    if (mayComeInPieces(request)) {
      gatherPieces(request, (pieces) => this.#app.onPieces?.(request, pieces))
    }
    const { holder } = this.#clientOf(request)
    if (holder === undefined) this.#app.handlers.private(request, response)
    else if (!this.#turns.enter(holder, response)) {
      const retryAfterS = unavailableRetryAfterS
      this.#endWith(response, new PostboteError('TOO_MANY_REQUESTS', { retryAfterS }))
    }
  }

  /** The key of this request has too many connections, and none of them may give way. */
  #refuseConnection(response: ServerResponse): void {
    this.#noteCrowd('private')
    this.#endWith(response, new PostboteError('TOO_MANY_CONNECTIONS'))
  }

  #endWith(response: ServerResponse, error: PostboteError): void {
    stopParsing(response.req.socket)
    this.#endGently(response)
    refusePrivate(response, error)
  }

  /** Returns false after a response that ends the connection. */
  #mayAnswer(response: ServerResponse): boolean {
    const { req: request } = response
    if (this.#pipelines.isReached(response)) {
      stopParsing(request.socket)
      return this.#endGently(response)
    }
    if (mayLoseWhatFollows(request)) return this.#endGently(response)
    const isLast = this.#endsConnections || this.#isNodeLeaving
    return !isLast || this.#connections.endAfter(response)
  }

  /**
   * The client may go on sending. A closed connection would reset it, and the reset would destroy responses it has not
   * read.
   */
  #endGently(response: ServerResponse): boolean {
    const { socket } = response.req
    socket.destroySoon = () => this.#lastResponses.endAfterFlush(socket)
    return this.#connections.endWith(response)
  }

  #createServer(kind: ListenerKind): Server {
    const silentMs = this.#times.silentMs[kind]
    const handle: RequestListener = (request, response) => {
      this.#start(kind, request, response)
      const { socket } = request
      // Not as `server.timeout`: that is a timer for each request, and most polls have their response by now.
      if (!response.writableEnded || socket.writableLength > 0) socket.setTimeout(silentMs)
    }
    const [responses, connections, clients] = [this.#responses, this.#connections, this.#clients]
    const lastResponses = this.#lastResponses
    // One listener for all state of a connection, instead of one closure per connection.
    function closed(this: Socket): void {
      clients.closed(this)
      connections.closed()
      responses.forgetAll(this)
    }
    function ended(this: Socket): void {
      endedByClient(kind, this)
    }
    /** node:http calls this after the last response of a connection. */
    function destroySoon(this: Socket): void {
      if (incomingOf(this)?.complete === false) lastResponses.endWithinBody(this)
      else Socket.prototype.destroySoon.call(this)
    }
    const server = createServer(
      {
        headersTimeout: this.#times.headersMs,
        keepAliveTimeout: this.#times.keepAliveMs,
        // Some requests of the private listener may last: BodyDeadline handles those.
        requestTimeout:
          kind === 'bot' ? (this.#app.botRequestTimeoutMs ?? this.#times.requestMs) : 0,
        connectionsCheckingInterval: connectionsCheckMs,
        maxHeaderSize: headerBytesMax,
        noDelay: true,
        // Node's own refusal has no body; code that needs a Host refuses in the form of the listener.
        requireHostHeader: false,
      },
      handle,
    )
    // Otherwise headers after the first 1,000 would be missing, and with them what they say about the body. Their total
    // size is bounded.
    server.maxHeadersCount = 0
    server.on('connection', (socket) => {
      // Node cuts a connection on which nothing moves for this time. When a response is out, it sets the time for idle ones.
      socket.setTimeout(silentMs)
      this.#connections.opened()
      clients.opened(socket)
      socket.on('close', closed)
      socket.on('end', ended)
      socket.destroySoon = destroySoon
      if (kind === 'private') this.#bodies.watch(socket)
    })
    // As with the Host: an unknown expectation is no reason for a response without a body.
    server.on('checkExpectation', handle)
    server.on('checkContinue', (request, response) => {
      response.writeContinue()
      if (response.socket === null) writeHeadAtOnce(response)
      handle(request, response)
    })
    server.on('connect', (_request, socket) => this.#refuseTunnel(kind, socket))
    // A client may end its side after its request, as `nc -N` does, and gets its response.
    Object.assign(server, { httpAllowHalfOpen: true })
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      const isBroken = error.code?.startsWith('HPE_') === true
      if (isBroken && connections.isOver(socket)) return
      const left = this.#rawTargets.goOn(server, socket, error)
      if (left !== undefined) refuseBytes(kind, left, socket)
    })
    return server
  }

  /** node:http has released the connection: nothing reads from it, and an error without a listener would end the worker. */
  #refuseTunnel(kind: ListenerKind, socket: Duplex): void {
    socket.on('error', () => void socket.destroy())
    // Within a response that has begun, as a stream's may have, this would be taken for a part of that response.
    if (isAnswering(socket)) {
      socket.destroy()
      return
    }
    socket.resume()
    this.#lastResponses.send(socket, errorResponse(kind, new PostboteError('NOT_FOUND')))
  }

  #createLinks(): WorkerLinks {
    return new WorkerLinks({
      ...this.#options,
      opened: (socket) => {
        this.#connections.opened()
        this.#clients.opened(socket)
      },
      closed: (socket) => {
        this.#clients.closed(socket)
        this.#connections.closed()
      },
      serve: (listener, request, response) => {
        this.#responses.track(response)
        this.#app.handlers[listener](request, response)
      },
      streamClosed: (stream) => this.#responses.forgetAll(stream),
    })
  }
}

/**
 * For a response that waits for an earlier one: node:http would write its 100 between its head and its body, because it
 * puts the head before all that waits. A head that is written on its own waits behind the 100.
 */
function writeHeadAtOnce(response: ServerResponse): void {
  const writeHead = response.writeHead.bind(response)
  response.writeHead = (...head: unknown[]) => {
    Reflect.apply(writeHead, response, head)
    response.flushHeaders()
    return response
  }
}

/**
 * While a large response waits, node:http pauses its parser before a pipelined request. A native object of TLS goes on passing
 * records to it, and the parser fails with HPE_PAUSED. With a listener for 'data', it gets them from the stream, which stops.
 */
function readThroughStream(socket: Socket): void {
  socket.on('data', () => undefined)
}

/** Chunks and records of TLS may be small, however fast they arrive; other bytes come as the kernel has gathered them. */
function mayComeInPieces(request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true
  return request.socket instanceof TLSSocket && hasBody(request)
}

/** Refuses bytes that are no request, and requests that took too long, in the form of the listener. */
export function refuseBytes(
  kind: ListenerKind,
  error: ParserError | PostboteError,
  socket: Duplex,
): void {
  // The bytes follow the last request of this connection: it ends with the response to that, which nothing may replace.
  if (error.code === 'HPE_CLOSED_CONNECTION' && !isAnswered(socket)) return
  // Nor is the next head late while earlier calls wait: the connection may not be read meanwhile.
  const isHeadLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && incomingOf(socket)?.complete
  if (isHeadLate === true && !isAnswered(socket)) return
  if (error.code === 'ECONNRESET') socket.destroy()
  else refuse(kind, parserError(error), socket)
}

/**
 * A client may end its side after its request, as `nc -N` does, and gets its response; a poll waits for nothing any longer.
 * Node's parser does not report that a request that offers another protocol has no end.
 */
function endedByClient(kind: ListenerKind, socket: Socket): void {
  if (kind === 'bot') hurry(socket)
  if (!socket.writable || incomingOf(socket)?.complete !== false) return
  refuse(kind, new PostboteError('BAD_REQUEST', { detail: 'the request did not end' }), socket)
}

/** Refuses a request to the private listener that took too long. */
function refuseLate(socket: Duplex): void {
  refuse('private', new PostboteError('REQUEST_TIMEOUT'), socket)
}

function refuse(kind: ListenerKind, error: PostboteError, socket: Duplex): void {
  // After the first bytes of a response nothing else may be written, and no second response to the same request.
  if (socket.writable && !isAnswering(socket) && !isAnsweredEarly(socket)) {
    socket.end(errorResponse(kind, error), () => void socket.destroy())
  } else {
    socket.destroy()
  }
}

function parserError(error: ParserError | PostboteError): PostboteError {
  if (error instanceof PostboteError) return error
  if (error.code === 'HPE_HEADER_OVERFLOW') return new PostboteError('HEADERS_TOO_LARGE')
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return new PostboteError('REQUEST_TIMEOUT')
  const reason = typeof error.reason === 'string' ? error.reason : 'the request is not HTTP/1.1'
  return new PostboteError('BAD_REQUEST', { detail: reason })
}
