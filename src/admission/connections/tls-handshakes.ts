/**
 * The handshakes of TLS of a worker's clients. The primary passes on connections of a listener with TLS unread
 * (primary/switchboard.ts); here each becomes a connection that node:http can read.
 *
 *     accepted --> waiting --> under way --> secured: passed on
 *         |            |           +-------> failed, late or displaced: closed
 *         +------------+-- late: closed
 *
 * A handshake costs as much CPU as several requests, and anybody may begin one. So a client address of the internet (an IPv6
 * /64 counts as one) has a few under way at a time, and a budget of event-loop time for them. Its other connections wait without
 * being read, each with a place among the connections of the worker. An address of one's own network has neither bound, because
 * it may be that of a proxy whose clients would wait for each other, or of a machine with thousands of bots.
 */
import assert from 'node:assert/strict'
import { constants, createPrivateKey } from 'node:crypto'
import type { Socket } from 'node:net'
import { createServer, type Server, type TlsOptions, type TLSSocket } from 'node:tls'
import type { Clock, Timer } from '../../kit/clock.ts'
import { clientAddress as countedAddress, isShared } from '../../http/client.ts'
import { LoopBudget } from '../budgets/loop-budget.ts'
import { Fifo } from '../../kit/fifo.ts'
import type { ConnectionOrigin } from '../../http/connection-origin.ts'
import { limitTls } from '../../delivery/endpoint/tls-context.ts'
import { connectionBelow, leaveUnread } from '../../http/native-handle.ts'
import {
  type ListenerCertificate,
  type ListenerCertificates,
  type ListenerKind,
  listenerKinds,
} from '../../http/listener.ts'

export interface TlsHandshakesOptions {
  readonly clock: Clock
  readonly certificates: ListenerCertificates
  /** Called with the connection that was accepted, and the one that node:http reads. */
  readonly secured: (socket: Socket, secured: TLSSocket, origin: ConnectionOrigin) => void
  /** Called when a handshake was ended because too many are under way. */
  readonly displaced?: (listener: ListenerKind) => void
  /** Called once for each handshake that has ended. */
  readonly ended?: (isSecured: boolean) => void
}

interface Handshake {
  readonly socket: Socket
  readonly origin: ConnectionOrigin
  readonly client: Client
  readonly timer: Timer
}

interface SecuringServer {
  readonly server: Server
  /** What a handshake is charged. */
  readonly costMs: number
}

interface Client {
  readonly address: string
  /** Whether it has no bound of its own. */
  readonly isShared: boolean
  /** It may contain handshakes that are over. */
  readonly waiting: Fifo<Handshake>
  /** The oldest first. */
  readonly underWay: Set<Handshake>
  /** Set while it is over its budget and has handshakes that wait. */
  pause: Timer | undefined
}

/**
 * A connection may take this long from its acceptance to the end of its handshake, as long as a head may take: a handshake
 * takes one or two round trips.
 */
export const tlsHandshakeMs = 10_000
/**
 * A client address of the internet may have this many handshakes under way in a worker. Chosen: with a key of P-256 they take
 * some 16 ms if all arrive in one turn of the event loop, and clients at a distance of 200 ms still make 160 in a second.
 */
export const tlsHandshakesPerClientMax = 32
/**
 * This many handshakes may be under way in a worker, at up to 100 KiB each. Past it the address with the most loses its
 * oldest one.
 */
export const tlsHandshakesMax = 256
/**
 * A handshake with a key of P-256 takes this much time of the event loop, and is charged as that: an address of the internet can
 * make some 160 in a second in each worker, after a burst of as many.
 */
export const tlsHandshakeCostMs = 0.6
/** A handshake with an RSA key of 4,096 bits takes this much longer. The difference grows with the cube of the bits. */
export const tlsRsa4096CostMs = 4

/** Makes the handshakes, and bounds how many. */
export class TlsHandshakes {
  readonly #options: TlsHandshakesOptions
  /** They do not listen: they get connections that the primary has accepted. */
  readonly #servers: { readonly [Kind in ListenerKind]?: SecuringServer }
  readonly #clients = new Map<string, Client>()
  /** Those that wait or are under way. */
  readonly #bySocket = new Map<Socket, Handshake>()
  readonly #budget = new LoopBudget()
  #underWay = 0

  constructor(options: TlsHandshakesOptions) {
    this.#options = options
    // A client could keep the event loop busy with messages after its handshake, such as KeyUpdate, which JavaScript never sees.
    limitTls()
    this.#servers = Object.fromEntries(
      listenerKinds.flatMap((kind) => {
        const certificate = options.certificates[kind]
        if (certificate === undefined) return []
        const costMs = handshakeCostMs(certificate.key)
        return [[kind, { server: this.#createServer(certificate), costMs }]]
      }),
    )
  }

  /** Whether connections of this listener begin with a handshake. */
  isFor(listener: ListenerKind): boolean {
    return this.#servers[listener] !== undefined
  }

  /** The handshakes that wait or are under way. */
  get count(): number {
    return this.#bySocket.size
  }

  /** The handshakes that are under way. */
  get underWay(): number {
    return this.#underWay
  }

  /** Takes a connection of which nothing was read. It is closed if its handshake fails. */
  accept(socket: Socket, origin: ConnectionOrigin): void {
    const address = countedAddress(origin.clientAddress, undefined)
    const client = this.#clients.get(address) ?? {
      address,
      isShared: isShared(origin.clientAddress, undefined),
      waiting: new Fifo<Handshake>(),
      underWay: new Set<Handshake>(),
      pause: undefined,
    }
    this.#clients.set(address, client)
    const timer = this.#options.clock.after(tlsHandshakeMs, () => void socket.destroy())
    const handshake = { socket, origin, client, timer }
    this.#bySocket.set(socket, handshake)
    socket.on('error', () => void socket.destroy())
    socket.once('close', () => this.#end(handshake, false))
    // A client that leaves before the end of its handshake is gone.
    socket.allowHalfOpen = false
    leaveUnread(socket)
    client.waiting.push(handshake)
    this.#beginNext(client)
  }

  /** Closes the connections whose handshake is not complete. */
  close(): void {
    for (const socket of this.#bySocket.keys()) socket.destroy()
  }

  #createServer({ cert, key }: ListenerCertificate): Server {
    const server = createServer({ cert, key, ...protocolOptions })
    server.on('secureConnection', (secured) => this.#secured(secured))
    server.on('tlsClientError', (_error, secured) => void connectionBelow(secured).destroy())
    return server
  }

  #beginNext(client: Client): void {
    const underWayMax = client.isShared ? Infinity : tlsHandshakesPerClientMax
    while (client.underWay.size < underWayMax && client.pause === undefined) {
      if (this.#pauses(client)) return
      const next = client.waiting.shift()
      if (next === undefined) break
      if (!next.socket.destroyed) this.#begin(next)
    }
    if (client.underWay.size === 0 && client.waiting.length === 0) {
      this.#clients.delete(client.address)
    }
  }

  /** Whether the client is over its budget: then its next handshake begins later. */
  #pauses(client: Client): boolean {
    if (client.waiting.length === 0) return false
    const { clock } = this.#options
    const waitMs = this.#budget.waitMs(client.address, clock.monotonicMs())
    if (waitMs === 0) return false
    client.pause = clock.after(waitMs, () => {
      client.pause = undefined
      this.#beginNext(client)
    })
    return true
  }

  #begin(handshake: Handshake): void {
    const { socket, origin, client } = handshake
    if (this.#underWay >= tlsHandshakesMax) this.#displace()
    client.underWay.add(handshake)
    this.#underWay += 1
    const by = this.#servers[origin.listener]
    if (by !== undefined && !client.isShared) {
      this.#budget.charge(client.address, by.costMs, this.#options.clock.monotonicMs())
    }
    by?.server.emit('connection', socket)
  }

  #displace(): void {
    let most: Client | undefined
    for (const client of this.#clients.values()) {
      if (client.underWay.size > (most?.underWay.size ?? 0)) most = client
    }
    const [oldest] = most?.underWay ?? []
    if (oldest === undefined) return
    oldest.socket.destroy()
    // Now: its 'close' event comes a turn later.
    this.#leave(oldest)
    this.#options.displaced?.(oldest.origin.listener)
  }

  #secured(secured: TLSSocket): void {
    const socket = connectionBelow(secured)
    const handshake = this.#bySocket.get(socket)
    // It may have been closed in the same turn of the event loop.
    if (handshake === undefined || socket.destroyed) {
      secured.destroy()
      return
    }
    secured.allowHalfOpen = true
    this.#options.secured(socket, secured, handshake.origin)
    this.#end(handshake, true)
  }

  #end(handshake: Handshake, isSecured: boolean): void {
    const { client, socket, timer } = handshake
    if (!this.#bySocket.delete(socket)) return
    timer.cancel()
    this.#leave(handshake)
    this.#options.ended?.(isSecured)
    this.#beginNext(client)
  }

  #leave(handshake: Handshake): void {
    if (handshake.client.underWay.delete(handshake)) this.#underWay -= 1
    assert(this.#underWay >= 0, 'a handshake ends once')
  }
}

/**
 * No renegotiation, and no `dhparam`, without which Node.js offers no finite-field Diffie-Hellman: with either, a client could have
 * the server compute much. delivery/endpoint/tls-context.ts has the same against endpoints.
 */
const protocolOptions: TlsOptions = {
  minVersion: 'TLSv1.2',
  ALPNProtocols: ['http/1.1'],
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
}

function handshakeCostMs(key: string): number {
  const rsaBits = createPrivateKey(key).asymmetricKeyDetails?.modulusLength ?? 0
  return tlsHandshakeCostMs + tlsRsa4096CostMs * (rsaBits / 4_096) ** 3
}
