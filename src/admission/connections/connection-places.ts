/**
 * The places that a process has for client connections. When all places are taken, this decides which connection gives
 * way. The primary has one instance, each worker another.
 *
 * A connection is in one of six states. In five of them it may give way. The states are listed in the order in which
 * they give way; within a state the oldest connection goes first.
 *
 *     headless     no request head has arrived so far
 *     idle         every request got its response, and the next one has not begun
 *     receiving    a head has arrived, and its body has not
 *     resting      a stream of pushes has no pair without a result
 *     held         a delayed refusal waits until it is due
 *     busy         a poll waits, or a request is in progress: never gives way
 *
 * Each client address (an IPv6 /64 counts as one) has a share of the places. Connections of addresses over their share
 * give way before all others, in any state, and no other connection gives way to theirs: an address that floods the
 * server closes its own connections and not the idle ones of others. A reverse proxy holds the connections of many
 * clients, so it has no share. Some places are reserved for the private listener; connections of bots never take those.
 *
 * A connection of the private listener counts for its address until a request shows a key, and then for the key: behind a
 * proxy all producers have one address. Some places are kept for connections that have shown no key, and for the admin
 * key, which has no share. A key over its share leaves a share free, so whatever its connections do, others find places.
 *
 * A change of state costs one deletion from a set and one insertion. Each address over its share has its own sets, made
 * when it crosses the share; at most seven addresses are over it at a time.
 */
import assert from 'node:assert/strict'
import { clientAddress as addressCounted, keyAccount } from '../../http/client.ts'
import type { ListenerKind } from '../../http/listener.ts'
import type { ConnectionOrigin } from '../../http/connection-origin.ts'

const givingStates = ['headless', 'idle', 'receiving', 'resting', 'held'] as const

type GivingState = (typeof givingStates)[number]

/** The state of a connection; all but `busy` may give way. */
export type PlaceState = GivingState | 'busy'

/** The connections of each listener and state; the first one has been in its state the longest. */
type Lines<Connection> = Readonly<
  Record<ListenerKind, Readonly<Record<GivingState, Set<ConnectionPlace<Connection>>>>>
>

interface Client<Connection> {
  /** An address, or `key` and the holder of a key. */
  readonly key: string
  readonly places: ConnectionPlaces<Connection>
  count: number
  isProxy: boolean
  /** Only set while the client is over its share, and for a while afterwards. */
  lines: Lines<Connection> | undefined
}

/** The place of one connection. Only `ConnectionPlaces` makes and changes it. */
export class ConnectionPlace<Connection> {
  readonly connection: Connection
  readonly listener: ListenerKind
  client: Client<Connection>
  state: PlaceState = 'busy'
  isOpen = true

  constructor(connection: Connection, listener: ListenerKind, client: Client<Connection>) {
    this.connection = connection
    this.listener = listener
    this.client = client
  }

  /** Puts the connection into another state, as the youngest in it. */
  moveTo(state: PlaceState): void {
    this.client.places.move(this, state)
  }
}

/**
 * A client address with more than this share of a process's connections gives way before all others. At an eighth, at
 * most seven addresses are over their share at a time.
 */
const clientPlacesShare = 1 / 8
/**
 * This share of the places of the private listener is kept for connections that have shown no key, and for the admin key, so
 * that health checks and the call that revokes a key find one. The rest is for producers while bots fill the server.
 */
const keylessPlacesShare = 1 / 2

/** Counts the connections of a process and chooses the one that gives way. `Connection` is any type. */
export class ConnectionPlaces<Connection> {
  readonly #placesMax: number
  readonly #botPlacesMax: number
  readonly #clientPlacesMax: number
  readonly #keptPlaces: number
  readonly #isStill: (connection: Connection, state: PlaceState) => boolean
  readonly #lines: Lines<Connection> = makeLines()
  readonly #clients = new Map<string, Client<Connection>>()
  readonly #greedy = new Set<Client<Connection>>()
  readonly #counts: Record<ListenerKind, number> = { bot: 0, private: 0 }

  /**
   * @param placesMax - the number of places, including those of the private listener
   * @param isStill - called for the oldest connection of a state before it gives way. False if it has become busy without a call
   *   of `move`.
   */
  constructor(
    placesMax: number,
    isStill: (connection: Connection, state: PlaceState) => boolean = () => true,
  ) {
    this.#placesMax = placesMax
    this.#botPlacesMax = placesMax - privatePlaces(placesMax)
    this.#clientPlacesMax = Math.ceil(placesMax * clientPlacesShare)
    this.#keptPlaces = Math.ceil(privatePlaces(placesMax) * keylessPlacesShare)
    this.#isStill = isStill
  }

  /** The number of places that are taken. */
  get count(): number {
    return this.#counts.bot + this.#counts.private
  }

  /**
   * Takes a place, whether or not one is free. The connection is `busy` until the caller moves it.
   *
   * @param origin - the listener that accepted the connection, and its client address, empty for a Unix socket
   * @returns the place, which the caller passes to `move` and `close`
   */
  open(
    connection: Connection,
    { listener, clientAddress }: ConnectionOrigin,
  ): ConnectionPlace<Connection> {
    // The client of a Unix socket is a proxy or the operator of this machine.
    const client = this.#clientOf(countedAs(clientAddress), clientAddress === '')
    const place = new ConnectionPlace(connection, listener, client)
    this.#counts[listener] += 1
    this.#join(client)
    return place
  }

  /**
   * Counts a connection for the holder of a key from now on, and makes it `busy`.
   *
   * @param holder - `root` for the admin key, or the id of another key
   * @returns false if it takes one of the places that the holder must leave free: another connection has to give way then
   */
  countFor(place: ConnectionPlace<Connection>, holder: string, others = 0): boolean {
    const key = keyAccount(holder)
    if (place.client.key === key || !place.isOpen) return true
    this.move(place, 'busy')
    this.#leave(place.client)
    const isRoot = holder === 'root'
    const client = this.#clientOf(key, isRoot)
    place.client = client
    this.#join(client)
    if (isRoot) return true
    const free = this.#placesMax - this.count - others
    return free >= (this.#isGreedy(client) ? this.#clientPlacesMax : this.#keptPlaces)
  }

  /** Frees the place; does nothing if it is free already. */
  close(place: ConnectionPlace<Connection>): void {
    if (!place.isOpen) return
    this.move(place, 'busy')
    place.isOpen = false
    assert(this.#counts[place.listener] > 0, 'a place that is freed was taken')
    this.#counts[place.listener] -= 1
    this.#leave(place.client)
  }

  /** Puts the connection into a state, as the youngest in it. Its position stays the same if it is in that state already. */
  move(place: ConnectionPlace<Connection>, state: PlaceState): void {
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

  /** Records that this client is a proxy: its connections belong to many clients, so it has no share. */
  noteProxy({ client }: ConnectionPlace<Connection>): void {
    client.isProxy = true
    this.#forgetLines(client)
  }

  /**
   * Returns whether one more connection of this listener finds a place.
   *
   * @param others - the number of connections that need room but have no place here
   */
  hasRoom(listener: ListenerKind, others = 0): boolean {
    if (this.count + others >= this.#placesMax) return false
    return listener === 'private' || this.#counts.bot < this.#botPlacesMax
  }

  /**
   * Chooses the connection that gives way to a new one. The caller ends it and closes its place.
   *
   * @param newcomer - the listener that accepted the new connection, and its client address
   * @returns the place, or undefined if no connection may give way: all are busy, or the newcomer's address is over its
   *   share and only other addresses have connections that could
   */
  toGiveWay({
    listener,
    clientAddress,
  }: ConnectionOrigin): ConnectionPlace<Connection> | undefined {
    return this.#giverTo(listener, this.#clients.get(countedAs(clientAddress)))
  }

  /** The same, to a connection that has a place. */
  toGiveWayTo({
    listener,
    client,
  }: ConnectionPlace<Connection>): ConnectionPlace<Connection> | undefined {
    return this.#giverTo(listener, client)
  }

  #giverTo(
    listener: ListenerKind,
    client: Client<Connection> | undefined,
  ): ConnectionPlace<Connection> | undefined {
    const givers = this.#givers(listener)
    for (const from of givers) {
      const place = this.#oldestOfGreedy(from)
      if (place !== undefined) return place
    }
    if (client !== undefined && this.#isGreedy(client)) return undefined
    for (const from of givers) {
      const place = this.#first(this.#lines, from)
      if (place !== undefined) return place
    }
    return undefined
  }

  /** The listeners whose connections may give way: the private one comes first if it has more than its reserved places. */
  #givers(listener: ListenerKind): readonly ListenerKind[] {
    if (listener === 'bot' && this.#counts.bot >= this.#botPlacesMax) return ['bot']
    if (this.#counts.private > this.#placesMax - this.#botPlacesMax) return ['private', 'bot']
    return listener === 'bot' ? ['bot'] : ['bot', 'private']
  }

  #oldestOfGreedy(listener: ListenerKind): ConnectionPlace<Connection> | undefined {
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

  #first(
    lines: Lines<Connection>,
    listener: ListenerKind,
  ): ConnectionPlace<Connection> | undefined {
    for (const state of givingStates) {
      for (const place of lines[listener][state]) {
        if (this.#isStill(place.connection, state)) return place
        this.move(place, 'busy')
      }
    }
    return undefined
  }

  #clientOf(key: string, isProxy: boolean): Client<Connection> {
    const known = this.#clients.get(key)
    if (known !== undefined) return known
    const client = { key, places: this, count: 0, isProxy, lines: undefined }
    this.#clients.set(key, client)
    return client
  }

  #join(client: Client<Connection>): void {
    client.count += 1
    if (!this.#isGreedy(client) || client.lines !== undefined) return
    client.lines = linesOf(this.#lines, client)
    this.#greedy.add(client)
  }

  #leave(client: Client<Connection>): void {
    assert(client.count > 0, 'a client that leaves has a place')
    client.count -= 1
    if (client.count === 0) this.#clients.delete(client.key)
    // Drop the sets only at half the share: otherwise a client at the share would have them rebuilt again and again.
    if (client.count <= this.#clientPlacesMax / 2) this.#forgetLines(client)
  }

  #forgetLines(client: Client<Connection>): void {
    if (client.lines === undefined) return
    client.lines = undefined
    this.#greedy.delete(client)
  }
}

/** This share of a process's connections is reserved for the private listener: bots never take it. */
const privatePlacesShare = 1 / 8
/**
 * At most this many connections are reserved for the private listener: far more than producers and probes keep open at a
 * worker.
 */
const privatePlacesMax = 256

/**
 * Returns how many of `placesMax` places are reserved for the private listener (`privatePlacesShare`,
 * `privatePlacesMax`).
 */
export function privatePlaces(placesMax: number): number {
  return Math.min(Math.floor(placesMax * privatePlacesShare), privatePlacesMax)
}

/** Returns an IPv4 address as it is, and the /64 network of an IPv6 address. */
function countedAs(address: string): string {
  return address.includes(':') ? addressCounted(address, undefined) : address
}

function makeLines<Connection>(): Lines<Connection> {
  return { bot: makeStates(), private: makeStates() }
}

function makeStates<Connection>(): Record<GivingState, Set<ConnectionPlace<Connection>>> {
  return {
    headless: new Set(),
    idle: new Set(),
    receiving: new Set(),
    resting: new Set(),
    held: new Set(),
  }
}

/** Returns the connections of one client, in the same order. */
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
