/**
 * The requests that are being answered, so that a worker can drain. A response behind another one on a pipelined
 * connection hears nothing when that breaks, so the connection is watched: one listener a connection and one
 * a request, and no closure for either, since this runs for every request.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

const openOn = Symbol('open answers')
const ownerOf = Symbol('owner')

interface TrackedSocket extends Socket {
  [openOn]?: Set<ServerResponse>
  [ownerOf]?: OpenAnswers
}

export class OpenAnswers {
  readonly #sockets = new Set<TrackedSocket>()
  #count = 0
  #onIdle: (() => void)[] = []

  get count(): number {
    return this.#count
  }

  track(response: ServerResponse): void {
    const socket: TrackedSocket = response.req.socket
    let open = socket[openOn]
    if (open === undefined) {
      open = new Set()
      socket[openOn] = open
      socket[ownerOf] = this
      this.#sockets.add(socket)
      socket.on('close', forgetSocket)
    }
    if (socket.destroyed) return
    open.add(response)
    this.#count += 1
    response.on('finish', forgetResponse)
  }

  /** All open answers, connection by connection. */
  *[Symbol.iterator](): Generator<ServerResponse> {
    for (const socket of this.#sockets) yield* socket[openOn] ?? []
  }

  /** Resolves when no request is being answered. */
  idle(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  forget(socket: TrackedSocket, response: ServerResponse): void {
    if (socket[openOn]?.delete(response) === true) this.#remove(1)
  }

  forgetAll(socket: TrackedSocket): void {
    this.#sockets.delete(socket)
    const open = socket[openOn]
    const size = open?.size ?? 0
    open?.clear()
    this.#remove(size)
  }

  #remove(count: number): void {
    this.#count -= count
    if (this.#count > 0 || this.#onIdle.length === 0) return
    const waiting = this.#onIdle
    this.#onIdle = []
    for (const resolve of waiting) resolve()
  }
}

function forgetSocket(this: TrackedSocket): void {
  this[ownerOf]?.forgetAll(this)
}

function forgetResponse(this: ServerResponse): void {
  const socket: TrackedSocket = this.req.socket
  socket[ownerOf]?.forget(socket, this)
}
