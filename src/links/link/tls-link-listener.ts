/**
 * The port on which a worker accepts the links of other nodes.
 *
 *   accepted --> handshake --> ready, given to `accept`
 *                    +--> refused: not of this cluster, not the protocol of links, too slow, or the oldest of too many
 *
 * Anybody who reaches the port can begin a handshake, so their number and their time are bounded. If all places are taken,
 * the oldest handshake gives way: that of a node takes some milliseconds, and that of a stranger may take all of its time.
 * What a peer sends is
 * decrypted by OpenSSL and read by nobody before the peer has proven that it belongs to the cluster.
 */
import { createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer, type TLSSocket } from 'node:tls'
import { type Clock, sleep, type Timer } from '../../kit/clock.ts'
import { messageOf } from '../../kit/errors.ts'
import { connectionBelow } from '../../http/native-handle.ts'
import { linkKeepAliveMs, listenBacklog } from '../../process/limits.ts'
import { describeAddress } from '../../http/listener.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { RareWarning } from '../../process/rare-warning.ts'
import { frameType, linkFrame } from './frame.ts'
import { linkProtocol, serverTlsOptions } from './link-security.ts'
import type { LinkSecurity } from '../../process/node-links.ts'

/** Where other nodes reach a worker. */
export interface TcpLinks {
  readonly host: string
  /** 0 selects any free port. */
  readonly port: number
  readonly security: LinkSecurity
}

interface Handshake {
  readonly peer: string
  readonly timer: Timer
}

/**
 * A connection from another node may take this long for its handshake: longer than `peerReadyMs`, after which that node
 * gives up, and short enough that connections which send nothing do not keep the places of others.
 */
export const linkHandshakeMs = 5_000
/**
 * This many handshakes of other nodes may be under way in a worker; the oldest gives way to one more, and nodes try again.
 * Each takes about 1 ms of CPU and 100 KiB. Nodes keep their links, so they rarely need more than one each.
 */
export const linkHandshakesMax = 64
/** The port of the links is tried again after this time if the predecessor still has it, which is for milliseconds. */
export const linkListenRetryMs = 20
/** After this time the port of the links is taken for used by another program: as long as calls wait (`peerConnectWaitMs`). */
export const linkListenWaitMs = 4_000

export class TlsLinkListener {
  readonly #at: TcpLinks
  readonly #clock: Clock
  readonly #accept: (socket: Socket) => void
  /** Does not listen: it gets the connections of `#server`, so that their handshakes can be bounded. */
  readonly #tls: TlsServer
  readonly #refusals: RareWarning
  /** By the connection below the one of TLS, the oldest first. */
  readonly #handshakes = new Map<Socket, Handshake>()
  readonly #links = new Set<Socket>()
  #server: Server | undefined
  #isClosed = false

  constructor(
    at: TcpLinks,
    around: Pick<Surroundings, 'clock' | 'log'>,
    accept: (socket: Socket) => void,
  ) {
    this.#at = at
    this.#clock = around.clock
    this.#accept = accept
    this.#refusals = new RareWarning(around, 'connections to the port of the cluster were refused')
    this.#tls = createTlsServer(serverTlsOptions(at.security))
    this.#tls.on('secureConnection', (socket) => this.#secured(socket))
    this.#tls.on('tlsClientError', (error, socket) => this.#failed(error, socket))
  }

  /** The port, which is not 0 while this listens. */
  get port(): number | undefined {
    const address = this.#server?.address()
    return typeof address === 'object' ? address?.port : undefined
  }

  /**
   * Listens. At a reload the predecessor closes the port just before, so a port in use is tried again for a moment. Rejects,
   * with a message for the operator, if that does not help.
   */
  async listen(): Promise<void> {
    const clock = this.#clock
    const { host, port } = this.#at
    const untilMs = clock.monotonicMs() + linkListenWaitMs
    while (!this.#isClosed) {
      try {
        const server = await this.#listening()
        if (this.#isClosed) server.close()
        else this.#server = server
        return
      } catch (error) {
        if (!isInUse(error) || clock.monotonicMs() >= untilMs) {
          const place = describeAddress({ host, port })
          const reason = isInUse(error) ? 'another program listens there' : messageOf(error)
          throw new Error(`cannot listen on ${place} for other nodes: ${reason}`, { cause: error })
        }
      }
      await sleep(clock, linkListenRetryMs)
    }
  }

  /** Closes the port. Links go on; nodes that have not proven themselves yet try again, at the successor. */
  hide(): void {
    this.#server?.close()
    this.#server = undefined
    for (const socket of this.#handshakes.keys()) this.#end(socket, undefined)
  }

  close(): void {
    this.#isClosed = true
    this.hide()
    for (const socket of this.#links) socket.destroy()
  }

  async #listening(): Promise<Server> {
    const { host, port } = this.#at
    const server = createTcpServer(
      { noDelay: true, keepAlive: true, keepAliveInitialDelay: linkKeepAliveMs },
      (socket) => this.#accepted(socket),
    )
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      // Without `exclusive`, node:cluster would ask the primary to listen.
      server.listen({ host, port, exclusive: true, backlog: listenBacklog }, () => {
        server.off('error', reject)
        resolve()
      })
    })
    server.on('error', () => undefined) // EMFILE: libuv has closed what it could not accept.
    return server
  }

  #accepted(socket: Socket): void {
    const peer = socket.remoteAddress ?? 'unknown'
    const [oldest] = this.#handshakes.keys()
    if (oldest !== undefined && this.#handshakes.size >= linkHandshakesMax) {
      this.#end(oldest, `it gave way to a newer one of ${linkHandshakesMax} handshakes`)
    }
    const late = (): void => this.#end(socket, `it did not finish in ${linkHandshakeMs} ms`)
    this.#handshakes.set(socket, { peer, timer: this.#clock.after(linkHandshakeMs, late) })
    this.#tls.emit('connection', socket)
  }

  /** OpenSSL has seen that the peer has the key. */
  #secured(socket: TLSSocket): void {
    const below = connectionBelow(socket)
    if (socket.alpnProtocol !== linkProtocol) {
      this.#end(below, `it does not ask for ${linkProtocol} (ALPN)`)
      return
    }
    // It may have been late in the same turn of the event loop.
    if (this.#forget(below) === undefined) return
    this.#links.add(socket)
    socket.once('close', () => this.#links.delete(socket))
    socket.write(linkFrame(frameType.ready))
    this.#accept(socket)
  }

  #failed(error: NodeJS.ErrnoException, socket: TLSSocket): void {
    this.#end(connectionBelow(socket), reasonOf(error))
  }

  /** @param reason - undefined if it need not be logged */
  #end(socket: Socket, reason: string | undefined): void {
    const handshake = this.#forget(socket)
    if (handshake !== undefined && reason !== undefined) {
      this.#refusals.note({ peer: handshake.peer, reason })
    }
    socket.destroy()
  }

  #forget(socket: Socket): Handshake | undefined {
    const handshake = this.#handshakes.get(socket)
    this.#handshakes.delete(socket)
    handshake?.timer.cancel()
    return handshake
  }
}

/** The errors of OpenSSL that an operator is likely to cause, by their codes. */
const reasons: Readonly<Record<string, string>> = {
  ERR_SSL_BINDER_DOES_NOT_VERIFY: 'it has another cluster key',
  ERR_SSL_NO_SUITABLE_SIGNATURE_ALGORITHM: 'it does not use the cluster key',
  ERR_SSL_NO_APPLICATION_PROTOCOL: `it does not ask for ${linkProtocol} (ALPN)`,
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'it does not speak TLS 1.3',
  ERR_SSL_HTTP_REQUEST: 'it speaks HTTP',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
}

/** Returns undefined if the peer left of its own accord, as a probe of the port does. */
function reasonOf({ code = 'unknown' }: NodeJS.ErrnoException): string | undefined {
  return code === 'ECONNRESET' ? undefined : (reasons[code] ?? code)
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
}
