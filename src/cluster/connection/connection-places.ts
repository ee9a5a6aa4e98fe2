/**
 * The places that a process has for connections of clients, and which connection gives its place up when there are none
 * left. The primary has one of these, each worker another.
 *
 * A connection is in one of five states. In four of them it may give way, the first kind first and of each kind the oldest:
 *
 *     headless     no request head has arrived so far
 *     idle         every request was answered, and the next one has not begun
 *     receiving    a head has arrived, and its body has not
 *     held         a refusal waits for its time to go out
 *     busy         a poll waits, or a request is being worked on: it never gives way
 *
 * Each client address (an IPv6 network of 64 bits counts as one) has a share of the places. Connections of addresses that
 * hold more than their share give way before all others, whatever kind they are of, and no others give way to theirs: an
 * address that floods the server closes its own connections and not the idle ones of others. A reverse proxy holds the connections of many
 * clients: it has no share, and its connections only take part in the common order.
 *
 * Some places are reserved for the private listener. Connections of bots never take those.
 *
 * A change of state costs one deletion from a set and one insertion. Addresses over their share have sets of their own,
 * which are made when they come over it: at most seven have them.
 */
import { clientAddress as addressCounted } from '../../http/client-address.ts'
import { privatePlacesMax, privatePlacesShare, clientPlacesShare } from '../../limits.ts'
import type { ListenerKind } from '../listener.ts'
import type { ConnectionOrigin } from './connection-origin.ts'

const givingStates = ['headless', 'idle', 'receiving', 'held'] as const

type GivingState = (typeof givingStates)[number]

export type PlaceState = GivingState | 'busy'

/** Of each listener and state the connections, the one that has been in it for the longest time first. */
type Lines<Connection> = Readonly<
  Record<ListenerKind, Readonly<Record<GivingState, Set<Place<Connection>>>>>
>

interface Client<Connection> {
  readonly key: string
  readonly address: string
  readonly places: ConnectionPlaces<Connection>
  count: number
  isProxy: boolean
  /** Only while it is over its share, and for a while after. */
  lines: Lines<Connection> | undefined
}

/** One connection's place. Only `ConnectionPlaces` makes it and changes it. */
export class Place<Connection> {
  readonly connection: Connection
  readonly listener: ListenerKind
  readonly client: Client<Connection>
  state: PlaceState = 'busy'
  isOpen = true

  constructor(connection: Connection, listener: ListenerKind, client: Client<Connection>) {
    this.connection = connection
    this.listener = listener
    this.client = client
  }

  moveTo(state: PlaceState): void {
    this.client.places.move(this, state)
  }
}

export interface ConnectionPlacesOptions<Connection> {
  /** How many there are, those of the private listener among them. */
  readonly placesMax: number
  /**
   * Asked of the oldest of a kind before it gives way: false where it is busy by now, and nobody has said so.
   */
  readonly isStill?: (connection: Connection, state: PlaceState) => boolean
}

export class ConnectionPlaces<Connection> {
  readonly #placesMax: number
  readonly #botPlacesMax: number
  readonly #clientPlacesMax: number
  readonly #isStill: (connection: Connection, state: PlaceState) => boolean
  readonly #lines: Lines<Connection> = makeLines()
  readonly #clients = new Map<string, Client<Connection>>()
  readonly #greedy = new Set<Client<Connection>>()
  readonly #counts: Record<ListenerKind, number> = { bot: 0, private: 0 }

  constructor({ placesMax, isStill }: ConnectionPlacesOptions<Connection>) {
    this.#placesMax = placesMax
    this.#botPlacesMax = placesMax - privatePlaces(placesMax)
    this.#clientPlacesMax = Math.ceil(placesMax * clientPlacesShare)
    this.#isStill = isStill ?? (() => true)
  }

  /** Places that are taken. */
  get count(): number {
    return this.#counts.bot + this.#counts.private
  }

  /**
   * Takes a place, whether one is free or not. The connection is `busy` until the caller says otherwise.
   *
   * @param origin The listener that the connection came through, and its client's address, '' for a Unix socket.
   */
  open(connection: Connection, { listener, clientAddress }: ConnectionOrigin): Place<Connection> {
    const client = this.#clientOf(clientAddress)
    const place = new Place(connection, listener, client)
    this.#counts[listener] += 1
    client.count += 1
    if (this.#isGreedy(client) && client.lines === undefined) {
      client.lines = linesOf(this.#lines, client)
      this.#greedy.add(client)
    }
    return place
  }

  /** Gives the place back; harmless where that was done before. */
  close(place: Place<Connection>): void {
    if (!place.isOpen) return
    this.move(place, 'busy')
    place.isOpen = false
    const { client, listener } = place
    this.#counts[listener] -= 1
    client.count -= 1
    if (client.count === 0) this.#clients.delete(client.key)
    // At half of the share, so that one connection more and one fewer does not have the sets made each time.
    if (client.count <= this.#clientPlacesMax / 2) this.#forgetLines(client)
  }

  /** Puts the connection into a state, as its youngest; leaves it where it is already in it. */
  move(place: Place<Connection>, state: PlaceState): void {
    if (place.state === state || !place.isOpen) return
    const { listener, client } = place
    if (place.state !== 'busy') {
      this.#lines[listener][place.state].delete(place)
      client.lines?.[listener][place.state].delete(place)
    }
    place.state = state
    if (state === 'busy') return
    this.#lines[listener][state].add(place)
    client.lines?.[listener][state].add(place)
  }

  /** This client's connections are those of many clients: it has no share. */
  noteProxy({ client }: Place<Connection>): void {
    client.isProxy = true
    this.#forgetLines(client)
  }

  /**
   * Whether one more connection of this listener finds a place.
   *
   * @param others Connections that have no place here and need room all the same.
   */
  hasRoom(listener: ListenerKind, others = 0): boolean {
    if (this.count + others >= this.#placesMax) return false
    return listener === 'private' || this.#counts.bot < this.#botPlacesMax
  }

  /**
   * Which connection gives way to a new one. The caller ends it and closes its place.
   *
   * @param newcomer The listener that the new connection came through, and its client's address.
   * @returns The place; undefined where every connection that might give way is busy. Connections of other addresses never
   * give way to one of an address that is over its share.
   */
  toGiveWay({ listener, clientAddress }: ConnectionOrigin): Place<Connection> | undefined {
    const givers = this.#givers(listener)
    for (const from of givers) {
      const place = this.#oldestOfGreedy(from)
      if (place !== undefined) return place
    }
    const client = this.#clients.get(countedAs(clientAddress))
    if (client !== undefined && this.#isGreedy(client)) return undefined
    for (const from of givers) {
      const place = this.#first(this.#lines, from)
      if (place !== undefined) return place
    }
    return undefined
  }

  /** The listeners whose connections may give way: first the private one where it has more than what is reserved. */
  #givers(listener: ListenerKind): readonly ListenerKind[] {
    if (listener === 'bot' && this.#counts.bot >= this.#botPlacesMax) return ['bot']
    if (this.#counts.private > this.#placesMax - this.#botPlacesMax) return ['private', 'bot']
    return listener === 'bot' ? ['bot'] : ['bot', 'private']
  }

  #oldestOfGreedy(listener: ListenerKind): Place<Connection> | undefined {
    const greedy = [...this.#greedy].filter((client) => this.#isGreedy(client))
    for (const { lines } of greedy.toSorted((one, other) => other.count - one.count)) {
      const place = lines === undefined ? undefined : this.#first(lines, listener)
      if (place !== undefined) return place
    }
    return undefined
  }

  #isGreedy({ count, isProxy }: Client<Connection>): boolean {
    return count > this.#clientPlacesMax && !isProxy
  }

  #first(lines: Lines<Connection>, listener: ListenerKind): Place<Connection> | undefined {
    for (const state of givingStates) {
      for (const place of lines[listener][state]) {
        if (this.#isStill(place.connection, state)) return place
        this.move(place, 'busy')
      }
    }
    return undefined
  }

  #clientOf(address: string): Client<Connection> {
    const key = countedAs(address)
    const known = this.#clients.get(key)
    if (known !== undefined) return known
    // Behind a Unix socket there is a proxy, or the machine's own operator.
    const isProxy = address === ''
    const client = { key, address, places: this, count: 0, isProxy, lines: undefined }
    this.#clients.set(key, client)
    return client
  }

  #forgetLines(client: Client<Connection>): void {
    if (client.lines === undefined) return
    client.lines = undefined
    this.#greedy.delete(client)
  }
}

/** Of so many places those that connections of bots never take. */
export function privatePlaces(placesMax: number): number {
  return Math.min(Math.floor(placesMax * privatePlacesShare), privatePlacesMax)
}

/** An IPv4 address as it is written; of an IPv6 address the network. */
function countedAs(address: string): string {
  return address.includes(':') ? addressCounted(address, undefined) : address
}

function makeLines<Connection>(): Lines<Connection> {
  return { bot: makeStates(), private: makeStates() }
}

function makeStates<Connection>(): Record<GivingState, Set<Place<Connection>>> {
  return { headless: new Set(), idle: new Set(), receiving: new Set(), held: new Set() }
}

/** Those of one client, in the same order. */
function linesOf<Connection>(
  all: Lines<Connection>,
  client: Client<Connection>,
): Lines<Connection> {
  const lines: Lines<Connection> = makeLines()
  for (const listener of ['bot', 'private'] as const) {
    for (const state of givingStates) {
      for (const place of all[listener][state]) {
        if (place.client === client) lines[listener][state].add(place)
      }
    }
  }
  return lines
}
