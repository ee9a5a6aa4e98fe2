/**
 * The requests in progress, so that a worker can drain. A response that waits for an earlier one on a pipelined
 * connection emits no event when the connection breaks, so the owner of the connections reports their end (`forgetAll`).
 * This runs for every request, so each has one listener and no closure.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const openOn = Symbol('open answers')
const ownerOf = Symbol('owner')
const placeOf = Symbol('place')

/** A single response, as almost always, needs no set: thousands of polls may wait at a time. */
type Open = Set<ServerResponse> | ServerResponse | undefined

interface TrackedSocket extends Socket {
  [openOn]?: Open
  [ownerOf]?: OpenResponses
  [placeOf]?: number | undefined
}

export class OpenResponses {
  /** Each at its place. No Set, because each forwarded request has its own socket (link/exchange-table.ts says why). */
  readonly #sockets: TrackedSocket[] = []
  readonly #answered: ((socket: Socket) => void) | undefined
  #count = 0
  #onIdle: (() => void)[] = []

  /** @param answered - called when the last open response of a connection is out */
  constructor(answered?: (socket: Socket) => void) {
    this.#answered = answered
  }

  get count(): number {
    return this.#count
  }

  track(response: ServerResponse): void {
    const socket: TrackedSocket = response.req.socket
    if (socket.destroyed) return
    if (socket[ownerOf] === undefined) {
      socket[ownerOf] = this
      socket[placeOf] = this.#sockets.push(socket) - 1
    }
    const open = socket[openOn]
    if (open === undefined) socket[openOn] = response
    else if (open instanceof Set) open.add(response)
    else socket[openOn] = new Set([open, response])
    this.#count += 1
    response.on('finish', forgetResponse)
  }

  /** All open responses, connection by connection. */
  *[Symbol.iterator](): Generator<ServerResponse> {
    for (const socket of this.#sockets.slice()) yield* listOf(socket[openOn])
  }

  /** Resolves when no request is in progress. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  forget(socket: TrackedSocket, response: ServerResponse): void {
    const open = socket[openOn]
    if (open === response) socket[openOn] = undefined
    else if (!(open instanceof Set && open.delete(response))) return
    if (!(open instanceof Set) || open.size === 0) this.#answered?.(socket)
    this.#remove(1)
  }

  /** The connection has closed. */
  forgetAll(socket: TrackedSocket): void {
    this.#leavePlace(socket)
    const { length } = listOf(socket[openOn])
    socket[openOn] = undefined
    this.#remove(length)
  }

  /** The last socket takes the place. */
  #leavePlace(socket: TrackedSocket): void {
    const place = socket[placeOf]
    if (place === undefined) return
    socket[placeOf] = undefined
    const last = this.#sockets.pop()
    if (last === undefined || last === socket) return
    this.#sockets[place] = last
    last[placeOf] = place
  }

  #remove(count: number): void {
    this.#count -= count
    if (this.#count > 0 || this.#onIdle.length === 0) return
    const waiting = this.#onIdle
    this.#onIdle = []
    for (const resolve of waiting) resolve()
  }
}

function listOf(open: Open): readonly ServerResponse[] {
  if (open === undefined) return []
  return open instanceof Set ? [...open] : [open]
}

function forgetResponse(this: ServerResponse): void {
  const socket: TrackedSocket = this.req.socket
  socket[ownerOf]?.forget(socket, this)
}
