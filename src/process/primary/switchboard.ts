/**
 * The listening sockets of the server. The switchboard reads each new connection just far enough to choose its worker,
 * and submits it to that worker's hand-off. It runs in the primary, whose crash ends the server: so it parses the request
 * line and nothing else, and it catches the errors of its callbacks.
 *
 * A connection is read in flowing mode and stopped by `_handle.readStop()` within the data callback that completes the
 * line. libuv leaves its read loop at that call. The stream still believes that it is reading, so nothing restarts it.
 * `socket.pause()` stops too late: bytes that are read after the line are lost to the worker (it corrupted 187 of 200
 * uploads in a prototype).
 *
 * A connection of a listener with TLS is not read at all: its request line is encrypted, so it goes to any worker at once, and
 * that worker forwards what belongs to others. It cannot be refused with a response, and is closed in place of that.
 *
 * The worker gets a copy of the descriptor. `destroy()` closes the copy of the primary by close(2) and not by
 * shutdown(2), so it does not disturb the worker's copy.
 */
import { lstatSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { takeNoMore } from '../../../native-bindings/descriptor-socket.ts'
import type { Clock, Timer } from '../../kit/clock.ts'
import { PostboteError, unreachable } from '../../kit/errors.ts'
import { listenBacklog } from '../limits.ts'
import { connectionLimit } from '../connection-limit.ts'
import type { ConnectionOrigin } from '../../http/connection-origin.ts'
import { ConnectionPlaces } from '../../admission/connections/connection-places.ts'
import type { WaitingConnection } from './hand-off.ts'
import { LastResponses } from '../../admission/connections/last-responses.ts'
import type { ListenAddress, ListenerKind, ListenerOptions } from '../../http/listener.ts'
import type { Counters, Log } from '../../kit/surroundings.ts'
import { nativeHandleOf } from '../../http/native-handle.ts'
import { RareWarning } from '../rare-warning.ts'
import { errorResponse } from '../../http/reply.ts'
import { isLineOpen, type NamedOwner, readRequestLine } from './request-line.ts'

export interface SwitchboardOptions {
  readonly clock: Clock
  readonly log: Log
  readonly counters?: Counters | undefined
  /** How many connections may be open here at a time; by default, as many as the descriptors allow. */
  readonly openMax?: number | undefined
  /** Takes the connection for the owner that the request line names, or for any worker if it names none. */
  route(owner: NamedOwner | undefined, connection: WaitingConnection): void
}

interface SwitchboardParts extends SwitchboardOptions {
  readonly lastResponses: LastResponses
}

/**
 * This many connections may wait for their request line. Each holds up to 8 KiB, so this is 128 MiB at worst. Past it the
 * oldest is closed; a line takes one round trip, so only 16,384 new connections within one could displace a client.
 */
const requestLineWaitersMax = 16_384

export class Switchboard {
  readonly #options: SwitchboardParts
  readonly #servers: Server[] = []
  readonly #awaiting = new Set<AwaitedLine>()
  /**
   * Connections that are not closed here yet: awaited, waiting for a worker, or being refused. Only awaited ones give
   * way; those with TLS, which are never awaited, are `undefined` here.
   */
  readonly #places: ConnectionPlaces<AwaitedLine | undefined>
  readonly #crowded: RareWarning
  readonly #acceptFailed: RareWarning

  constructor(options: SwitchboardOptions) {
    const openMax = options.openMax ?? connectionLimit()
    this.#places = new ConnectionPlaces(openMax)
    this.#options = { ...options, lastResponses: new LastResponses(options.clock, openMax) }
    this.#crowded = new RareWarning(
      options,
      'the oldest waiting connections are closed: too many have sent no request line, or wait for their worker',
    )
    this.#acceptFailed = new RareWarning(options, 'connections cannot be accepted')
  }

  /** Resolves with the address to which it is really bound (port 0 selects a free one). */
  async listen(options: ListenerOptions): Promise<ListenAddress> {
    const { listener, address, isTls = false } = options
    if ('path' in address) await clearSocketPath(address.path)
    // Half-open: a client may send its request and FIN together and still wait for the response.
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: isTls }, (socket) =>
      this.#accept(options, socket),
    )
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ ...address, backlog: listenBacklog, exclusive: true }, () => {
        server.off('error', reject)
        resolve()
      })
    })
    // EMFILE is not reported here: libuv closes what it cannot accept. `openMax` keeps the process below that point.
    server.on('error', (error) => this.#acceptFailed.note({ listener, error: error.message }))
    this.#servers.push(server)
    const bound = server.address()
    if (bound === null || typeof bound === 'string') return address
    return { host: bound.address, port: bound.port }
  }

  /** Takes no new connections. Those that clients have made already are accepted and go on. */
  takeNoMore(): void {
    for (const server of this.#servers) {
      try {
        takeNoMore(nativeHandleOf(server)?.fd ?? -1)
      } catch {
        // A system without these filters resets what has not been accepted.
        server.close()
      }
    }
  }

  /** Stops accepting, and closes connections whose request line has not arrived. */
  close(): void {
    for (const server of this.#servers.splice(0)) server.close()
    for (const awaited of this.#awaiting) awaited.giveUp()
    this.#awaiting.clear()
  }

  get awaiting(): number {
    return this.#awaiting.size
  }

  #accept({ listener, address, isTls = false }: ListenerOptions, socket: Socket): void {
    socket.on('error', () => socket.destroy())
    const clientAddress = 'path' in address ? '' : clientAddressOf(socket)
    if (clientAddress === undefined || !this.#makeRoom({ listener, clientAddress })) {
      socket.destroy()
      return
    }
    const accepted = { listener, socket, clientAddress }
    if (isTls) this.#passOn(accepted)
    else this.#awaitLine(accepted)
  }

  #awaitLine(accepted: Accepted): void {
    const awaited = new AwaitedLine(accepted, this.#options, () => {
      this.#awaiting.delete(awaited)
      this.#places.move(place, 'busy')
    })
    this.#awaiting.add(awaited)
    const place = this.#places.open(awaited, accepted)
    this.#places.move(place, 'headless')
    accepted.socket.once('close', () => this.#places.close(place))
  }

  /** Hands over a connection that was not read. */
  #passOn({ listener, socket, clientAddress }: Accepted): void {
    const close = (): void => void socket.destroy()
    const place = this.#places.open(undefined, { listener, clientAddress })
    socket.once('close', () => this.#places.close(place))
    this.#options.route(undefined, {
      listener,
      clientAddress,
      bytes: noBytes,
      handle: () => nativeHandleOf(socket),
      handedOver: close,
      refuse: close,
    })
  }

  /**
   * Returns false if no connection can give way to a new one. The oldest one without a request line goes first. If the
   * newest were refused instead, one client with silent connections could keep all others out for 10 s at a time.
   */
  #makeRoom(newcomer: ConnectionOrigin): boolean {
    const { listener } = newcomer
    const awaiting = this.#awaiting.size
    if (this.#places.hasRoom(listener) && awaiting < requestLineWaitersMax) return true
    this.#crowded.note({ listener, open: this.#places.count, awaiting })
    this.#options.counters?.add('connections_refused', 1)
    const place = this.#places.toGiveWay(newcomer)
    if (place === undefined) return false
    place.connection?.giveUp()
    // Free the place now: the 'close' event comes a turn later, and more connections may arrive in this turn.
    this.#places.close(place)
    return true
  }
}

const noBytes = Buffer.alloc(0)

interface Accepted {
  readonly listener: ListenerKind
  readonly socket: Socket
  /** Empty for a client of a Unix socket. */
  readonly clientAddress: string
}

/**
 * A request line may take this long to arrive, as headers may (`headersTimeoutMs`): a line takes one round trip, so only
 * broken and hostile clients need longer.
 */
const requestLineWaitMs = 10_000

/** One connection until its request line has arrived. */
class AwaitedLine {
  readonly #accepted: Accepted
  readonly #options: SwitchboardParts
  readonly #settled: () => void
  readonly #timer: Timer
  #bytes: Buffer | undefined
  #isSettled = false

  constructor(accepted: Accepted, options: SwitchboardParts, settled: () => void) {
    this.#accepted = accepted
    this.#options = options
    this.#settled = settled
    const { socket } = accepted
    this.#timer = options.clock.after(requestLineWaitMs, () => this.#expire())
    socket.on('data', this.#onData)
    socket.once('end', () => {
      if (!this.#isSettled) this.giveUp()
    })
    socket.once('close', () => this.#settle())
  }

  giveUp(): void {
    this.#settle()
    this.#accepted.socket.destroy()
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#isSettled) return // A refused client is still sending.
    try {
      this.#bytes = this.#bytes === undefined ? chunk : Buffer.concat([this.#bytes, chunk])
      this.#decide(this.#bytes)
    } catch (error) {
      this.#options.log.error({ error }, 'a connection could not be handed to its worker')
      this.giveUp()
    }
  }

  #decide(bytes: Buffer): void {
    const line = readRequestLine(bytes)
    switch (line) {
      case 'more':
        return
      case 'none':
        this.#handOver(undefined, bytes)
        return
      case 'too long':
        this.#refuse(new PostboteError('HEADERS_TOO_LARGE'))
        return
      case 'bad':
        this.#refuse(new PostboteError('BAD_REQUEST', { detail: 'expected an HTTP/1.1 request' }))
        return
      default:
        if (typeof line !== 'object') unreachable(line)
        // A worker that gets the line in one piece can mend its bytes above 0x7f (worker/raw-targets.ts).
        if (isLineOpen(bytes)) return
        this.#handOver(line, bytes)
    }
  }

  #handOver(owner: NamedOwner | undefined, bytes: Buffer): void {
    const { socket, listener, clientAddress } = this.#accepted
    const handle = nativeHandleOf(socket)
    handle?.readStop()
    this.#settle()
    this.#options.route(owner, {
      listener,
      clientAddress,
      bytes,
      handle: () => nativeHandleOf(socket),
      handedOver: () => void socket.destroy(),
      refuse: (error) => {
        handle?.readStart()
        this.#options.lastResponses.send(socket, errorResponse(listener, error))
      },
    })
  }

  #expire(): void {
    // Nothing was sent: a spare connection of a browser or a load balancer, without a request to refuse.
    if (this.#bytes === undefined) this.giveUp()
    else this.#refuse(new PostboteError('REQUEST_TIMEOUT'))
  }

  #refuse(error: PostboteError): void {
    this.#settle()
    const { socket, listener } = this.#accepted
    this.#options.lastResponses.send(socket, errorResponse(listener, error))
  }

  #settle(): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#timer.cancel()
    this.#bytes = undefined
    this.#settled()
  }
}

/** Returns undefined if the client is already gone. An IPv4 client of a dual-stack socket counts as an IPv4 client. */
function clientAddressOf(socket: Socket): string | undefined {
  const address = socket.remoteAddress
  return address?.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

/** Removes the socket file of a server that is gone. If a server answers there, the file stays and listening fails. */
async function clearSocketPath(path: string): Promise<void> {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) return
  const answers = await new Promise<boolean>((resolve) => {
    const probe = connect({ path })
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'))
  })
  if (!answers) rmSync(path, { force: true })
}
