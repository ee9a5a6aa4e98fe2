/**
 * The connections of a worker, so that one that leaves knows when its last has closed, and how each is brought to its
 * end: by `Connection: close` on its next answer.
 *
 * Of pipelined requests only the last that has arrived may carry it. A request behind an answer that has gone out with
 * it is not looked at: its client has been told that it will not be answered, and sends it again.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export class OpenConnections {
  #count = 0
  #onEmpty: (() => void)[] = []
  /** The answer by which each connection ends. */
  readonly #lastAnswers = new WeakMap<Duplex, ServerResponse>()
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

  /** Has the connection end with this answer, its latest; false where an earlier one has ended it already. */
  endAfter(response: ServerResponse): boolean {
    const { socket } = response.req
    if (this.#cut.has(socket)) return false
    const last = this.#lastAnswers.get(socket)
    if (last?.headersSent === true) return false
    if (last !== undefined) last.shouldKeepAlive = true
    if (!response.shouldKeepAlive || response.headersSent) return true
    response.shouldKeepAlive = false
    this.#lastAnswers.set(socket, response)
    return true
  }

  /** The same, and whatever comes behind this one is not looked at. */
  endWith(response: ServerResponse): boolean {
    if (!this.endAfter(response)) return false
    this.#cut.add(response.req.socket)
    return true
  }

  /** What comes on it now is not answered. */
  isCut(socket: Socket): boolean {
    return this.#cut.has(socket)
  }

  /** Whether all of the last request has come as well: whatever comes now is dropped, be it broken. */
  isOver(socket: Duplex): boolean {
    return this.#cut.has(socket) && this.#lastAnswers.get(socket)?.req.complete === true
  }

  /** Resolves when there is none. */
  empty(): Promise<void> {
    if (this.#count === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onEmpty.push(resolve))
  }
}
