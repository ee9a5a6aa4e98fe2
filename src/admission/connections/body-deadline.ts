/**
 * Ends requests of the private listener whose body does not arrive in time. Node's own limit applies to all requests of a
 * server alike, and an NDJSON stream may last for days.
 *
 * Single pushes are many, so nothing is done per request. Once a second this asks the parsers of the open connections
 * what they are reading, so a late request is noticed up to a second later. A stream whose response is finished (it was
 * refused) gets no more time than other requests.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, every, type Timer } from '../../kit/clock.ts'
import { connectionsCheckMs } from '../../http/limits.ts'
import { incomingOf, isAnswered } from '../../http/native-handle.ts'

export interface BodyDeadlineOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Whether this request may take any time to arrive. */
  mayLast(request: IncomingMessage): boolean
  expire(socket: Socket): void
}

export class BodyDeadline {
  readonly #options: BodyDeadlineOptions
  readonly #sockets = new Set<Socket>()
  readonly #firstSeenMs = new WeakMap<IncomingMessage, number>()
  readonly #checks: Timer

  constructor(options: BodyDeadlineOptions) {
    this.#options = options
    this.#checks = every(options.clock, connectionsCheckMs, () => this.#check())
  }

  watch(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  close(): void {
    this.#checks.cancel()
  }

  #check(): void {
    const options = this.#options
    const nowMs = options.clock.monotonicMs()
    for (const socket of this.#sockets) {
      const request = incomingOf(socket)
      if (request === undefined || request.complete) continue
      if (options.mayLast(request) && !isAnswered(socket)) continue
      const sinceMs = this.#firstSeenMs.get(request)
      if (sinceMs === undefined) this.#firstSeenMs.set(request, nowMs)
      else if (nowMs - sinceMs >= options.timeoutMs) options.expire(socket)
    }
  }
}
