/**
 * The connections of a worker, so that a worker that leaves knows when the last has closed, and how each is ended: by
 * `Connection: close` on its next response.
 *
 * Of pipelined requests only the last one that has arrived may carry it. A request after a response that was sent with it
 * is ignored: its client knows from the header that it gets no response, and sends it again.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export class OpenConnections {
  #count = 0
  #onEmpty: (() => void)[] = []
  /** The response by which each connection ends. */
  readonly #lastResponses = new WeakMap<Duplex, ServerResponse>()
  readonly #cut = new WeakSet<Duplex>()

  get count(): number {
    return this.#count
  }

  opened(): void {
    this.#count += 1
  }

  closed(): void {
    this.#count -= 1
    if (this.#count > 0) return
    const waiting = this.#onEmpty
    this.#onEmpty = []
    for (const resolve of waiting) resolve()
  }

  /** Ends the connection with this response, its latest; returns false if an earlier response has ended it already. */
  endAfter(response: ServerResponse): boolean {
    const { socket } = response.req
    if (this.#cut.has(socket)) return false
    const last = this.#lastResponses.get(socket)
    if (last?.headersSent === true) return false
    if (last !== undefined) last.shouldKeepAlive = true
    if (!response.shouldKeepAlive || response.headersSent) return true
    response.shouldKeepAlive = false
    this.#lastResponses.set(socket, response)
    return true
  }

  /** The same, and later requests on the connection are ignored. */
  endWith(response: ServerResponse): boolean {
    if (!this.endAfter(response)) return false
    this.#cut.add(response.req.socket)
    return true
  }

  /** Whether requests that arrive on the connection now are ignored. */
  isCut(socket: Socket): boolean {
    return this.#cut.has(socket)
  }

  /** Whether the last request has arrived completely, too: all further bytes are dropped, even if they are malformed. */
  isOver(socket: Duplex): boolean {
    return this.#cut.has(socket) && this.#lastResponses.get(socket)?.req.complete === true
  }

  /** Resolves when there is no connection. */
  empty(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onEmpty.push(resolve))
  }
}
