/**
 * The connections of clients that a worker holds, and what each is doing (connection-places.ts), as far as the worker must
 * know it to choose the one that gives way to a new one.
 *
 * Connections of other workers stand for a client each and are only counted.
 *
 *   accepted --> (a turn later) headless --> busy, or receiving --> idle --> busy ...
 *                                             |        ^
 *                                             v        |
 *                                            held -----+
 *
 * A body's end is not noticed when it comes: `isStill` looks when somebody is to give way, which spares every request with
 * a body one more change.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import { hasBody } from '../../http/body.ts'
import { clientAddress } from '../../http/client-address.ts'
import type { ConnectionOrigin } from '../connection/connection-origin.ts'
import { ConnectionPlaces, type Place } from '../connection/connection-places.ts'
import { incomingOf, isAnswered } from '../connection/native-handle.ts'
import type { ListenerKind } from '../listener.ts'

export interface ClientConnectionsOptions {
  readonly clock: Clock
  readonly connectionsMax: number
  /** Whether this request may take as long as it likes to arrive: its connection is busy all that time. */
  readonly mayLast: (request: IncomingMessage) => boolean
}

const placeMark = Symbol('place')
const heldMark = Symbol('refusals held')

interface PlacedSocket extends Socket {
  [placeMark]?: Place<Socket>
  /** Pipelined requests may have several. */
  [heldMark]?: number
}

export class ClientConnections {
  readonly #clock: Clock
  readonly #places: ConnectionPlaces<Socket>
  /** Those that came in this turn of the event loop: their first bytes have not been parsed. */
  #arrived: Place<Socket>[] = []
  /** Connections of other workers. */
  #others = 0

  constructor({ clock, connectionsMax, mayLast }: ClientConnectionsOptions) {
    this.#clock = clock
    this.#places = new ConnectionPlaces({
      placesMax: connectionsMax,
      isStill: (socket, state) => state !== 'receiving' || isReceiving(socket, mayLast),
    })
  }

  /** All connections, those of other workers among them. */
  get count(): number {
    return this.#places.count + this.#others
  }

  hasRoom(listener: ListenerKind): boolean {
    return this.#places.hasRoom(listener, this.#others)
  }

  /** Ends the connection that has to give way to a new one; false where none can. */
  makeWay(newcomer: ConnectionOrigin): boolean {
    const place = this.#places.toGiveWay(newcomer)
    if (place === undefined) return false
    // At once: the connection tells of its end a turn later, and several may come in this one.
    this.#places.close(place)
    place.connection.destroy()
    return true
  }

  /** A client's connection. It cannot give way before the bytes that came with it are parsed. */
  accepted(socket: PlacedSocket, origin: ConnectionOrigin): void {
    const place = this.#places.open(socket, origin)
    socket[placeMark] = place
    if (this.#arrived.length === 0) this.#clock.soon(() => this.#settleArrived())
    this.#arrived.push(place)
  }

  /** Another worker's, unless it was accepted before. */
  opened(socket: PlacedSocket): void {
    if (socket[placeMark] === undefined) this.#others += 1
  }

  closed(socket: PlacedSocket): void {
    const place = socket[placeMark]
    if (place === undefined) this.#others -= 1
    else this.#places.close(place)
  }

  /** The head of a request has come. */
  requested(request: IncomingMessage): void {
    const socket: PlacedSocket = request.socket
    const place = socket[placeMark]
    if (place === undefined) return
    if (!place.client.isProxy && isFromProxy(request, place)) this.#places.noteProxy(place)
    if (place.state === 'held') return
    place.moveTo(hasBody(request) ? 'receiving' : 'busy')
  }

  /** No request of this connection is left to be answered. */
  answered(socket: PlacedSocket): void {
    socket[placeMark]?.moveTo('idle')
  }

  #settleArrived(): void {
    for (const place of this.#arrived.splice(0)) {
      const { connection } = place
      if (place.state === 'busy' && incomingOf(connection) === undefined) {
        place.moveTo('headless')
      }
    }
  }
}

/** A refusal on this connection waits, until what is returned is called. */
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

function nothingHeld(): void {
  // Another worker's connection: that worker holds the client's.
}

/** Also where the request was answered before its end: nobody works on it. */
function isReceiving(socket: Socket, mayLast: (request: IncomingMessage) => boolean): boolean {
  const request = incomingOf(socket)
  if (request === undefined || request.complete) return false
  return isAnswered(socket) || !mayLast(request)
}

/** It names a client of its own, and is believed. */
function isFromProxy(
  { headers }: IncomingMessage,
  { client: { address } }: Place<Socket>,
): boolean {
  const realIp = headers['x-real-ip']
  return (
    realIp !== undefined && clientAddress(address, realIp) !== clientAddress(address, undefined)
  )
}
