/**
 * The client connections of a worker and what each is doing (connection-places.ts), as far as the worker must know it to
 * choose the connection that gives way to a new one.
 *
 * The links of other workers carry requests of clients, so they are only counted.
 *
 *   accepted --> (a turn later) headless --> busy, or receiving --> idle --> busy ...
 *                                             |        ^
 *                                             v        |
 *                                            held -----+
 *
 * A stream of pushes goes to and fro between resting and busy. If it gives way, it ends in order: its producer has all
 * results.
 *
 * The end of a body is not noticed when it arrives: `isStill` checks for it only when a connection must give way, which
 * saves a change of state for every request with a body.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../kit/clock.ts'
import { hasBody } from '../../http/body.ts'
import type { ClientOf } from '../../http/client.ts'
import type { ConnectionOrigin } from '../../http/connection-origin.ts'
import { ConnectionPlaces, type ConnectionPlace } from './connection-places.ts'
import { incomingOf, isAnswered } from '../../http/native-handle.ts'
import type { ListenerKind } from '../../http/listener.ts'

export interface ClientConnectionsOptions {
  readonly clock: Clock
  readonly connectionsMax: number
  /** Whether this request may take any time to arrive: its connection counts as busy until then. */
  readonly mayLast: (request: IncomingMessage) => boolean
  readonly clientOf: ClientOf
  /** Ends a connection to the private listener that shows no key. */
  readonly late: (socket: Socket) => void
  /** Bounds a connection that has given way and ends in order. */
  readonly bound: (socket: Socket) => void
}

const placeMark = Symbol('place')
const heldMark = Symbol('refusals held')
const endMark = Symbol('end of a stream')

interface PlacedSocket extends Socket {
  [placeMark]?: ConnectionPlace<Socket>
  /** The number of held refusals; pipelined requests may have several. */
  [heldMark]?: number
  /** Ends the stream of pushes in order. */
  [endMark]?: (() => void) | undefined
}

/**
 * A new connection to the private listener shows its key within this time: a head is one packet, and takes one of the places
 * that are kept for connections without a key.
 */
const keylessMs = 1_000

export class ClientConnections {
  readonly #options: ClientConnectionsOptions
  readonly #places: ConnectionPlaces<PlacedSocket>
  /** Connections that arrived in this turn of the event loop: their first bytes have not been parsed. */
  #arrived: ConnectionPlace<PlacedSocket>[] = []
  /** The number of connections of other workers. */
  #others = 0

  constructor(options: ClientConnectionsOptions) {
    const { connectionsMax, mayLast } = options
    this.#options = options
    this.#places = new ConnectionPlaces(
      connectionsMax,
      (socket, state) => state !== 'receiving' || isReceiving(socket, mayLast),
    )
  }

  /** The number of all connections, including those of other workers. */
  get count(): number {
    return this.#places.count + this.#others
  }

  hasRoom(listener: ListenerKind): boolean {
    return this.#places.hasRoom(listener, this.#others)
  }

  /** Ends the connection that gives way to a new one; returns false if none may. */
  makeWay(newcomer: ConnectionOrigin): boolean {
    return this.#end(this.#places.toGiveWay(newcomer))
  }

  #end(place: ConnectionPlace<PlacedSocket> | undefined): boolean {
    if (place === undefined) return false
    const { connection, state } = place
    // Free the place now: the 'close' event comes a turn later, and more connections may arrive in this turn.
    this.#places.close(place)
    if (state === 'resting') {
      connection[endMark]?.()
      // The end is written in this turn.
      this.#options.clock.soon(() => this.#options.bound(connection))
    } else {
      connection.destroy()
    }
    return true
  }

  /** Adds a client's connection. It cannot give way before the bytes that came with it are parsed. */
  accepted(socket: PlacedSocket, origin: ConnectionOrigin): void {
    const place = this.#places.open(socket, origin)
    socket[placeMark] = place
    if (this.#arrived.length === 0) this.#options.clock.soon(() => this.#settleArrived())
    this.#arrived.push(place)
  }

  /** Adds a connection whose handshake of TLS has not ended; `closed` removes it. It may give way. */
  handshaking(socket: PlacedSocket, origin: ConnectionOrigin): void {
    const place = this.#places.open(socket, origin)
    socket[placeMark] = place
    place.moveTo('headless')
    socket.once('close', () => this.#places.close(place))
  }

  /** Counts a connection of another worker; one that `accepted` has added is counted already. */
  opened(socket: PlacedSocket): void {
    if (socket[placeMark] === undefined) this.#others += 1
  }

  closed(socket: PlacedSocket): void {
    const place = socket[placeMark]
    if (place === undefined) this.#others -= 1
    else this.#places.close(place)
  }

  /** The head of a request has arrived. Returns false if its key has too many connections, and the request is refused. */
  requested(request: IncomingMessage): boolean {
    const socket: PlacedSocket = request.socket
    const place = socket[placeMark]
    if (place === undefined) return true
    const isBot = place.listener === 'bot'
    const { clientOf } = this.#options
    if (isBot && !place.client.isProxy && clientOf(request).isReported)
      this.#places.noteProxy(place)
    if (place.state === 'held') return true
    const hasPlace = isBot || this.#showKey(request, place)
    place.moveTo(hasBody(request) ? 'receiving' : 'busy')
    return hasPlace
  }

  #showKey(request: IncomingMessage, place: ConnectionPlace<PlacedSocket>): boolean {
    const { holder } = this.#options.clientOf(request)
    if (holder === undefined || this.#places.countFor(place, holder, this.#others)) return true
    if (this.#end(this.#places.toGiveWayTo(place))) return true
    // Its client may leave it open for a while.
    this.#places.close(place)
    this.#options.bound(place.connection)
    return false
  }

  /** All requests of this connection have their responses. */
  answered(socket: PlacedSocket): void {
    socket[placeMark]?.moveTo('idle')
  }

  #settleArrived(): void {
    for (const place of this.#arrived.splice(0)) {
      const { connection } = place
      if (place.state === 'busy' && incomingOf(connection) === undefined) {
        place.moveTo('headless')
        if (place.listener === 'private') this.#awaitKey(place)
      }
    }
  }

  #awaitKey(place: ConnectionPlace<PlacedSocket>): void {
    this.#options.clock.after(keylessMs, () => {
      if (place.isOpen && place.state === 'headless') this.#options.late(place.connection)
    })
  }
}

/** Marks the connection while a refusal on it waits. The caller calls the returned function when the refusal is sent. */
export function holdConnection(socket: PlacedSocket): () => void {
  const place = socket[placeMark]
  if (place === undefined) return nothingHeld
  socket[heldMark] = (socket[heldMark] ?? 0) + 1
  place.moveTo('held')
  return () => {
    const left = (socket[heldMark] ?? 0) - 1
    socket[heldMark] = left
    if (left === 0 && place.state === 'held') place.moveTo('busy')
  }
}

/**
 * Lets the connection of a stream of pushes give way while the stream rests.
 *
 * @param end - ends the stream in order
 * @returns the caller calls it when the stream begins or ends to rest
 */
export function streamPlace(socket: PlacedSocket, end: () => void): (isResting: boolean) => void {
  socket[endMark] = end
  return (isResting) => socket[placeMark]?.moveTo(isResting ? 'resting' : 'busy')
}

function nothingHeld(): void {
  // This is another worker's connection; that worker holds the client's one.
}

/** True even if the response was sent before the end of the request: no work is in progress for it. */
function isReceiving(socket: Socket, mayLast: (request: IncomingMessage) => boolean): boolean {
  const request = incomingOf(socket)
  if (request === undefined || request.complete) return false
  return isAnswered(socket) || !mayLast(request)
}
