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

export class BodyDeadline {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #mayLast: (request: IncomingMessage) => boolean
  readonly #expire: (socket: Socket) => void
  readonly #sockets = new Set<Socket>()
  readonly #firstSeenMs = new WeakMap<IncomingMessage, number>()
  readonly #checks: Timer

  /** @param mayLast - whether this request may take any time to arrive */
  constructor(
    clock: Clock,
    timeoutMs: number,
    mayLast: (request: IncomingMessage) => boolean,
    expire: (socket: Socket) => void,
  ) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#mayLast = mayLast
    this.#expire = expire
    this.#checks = every(clock, connectionsCheckMs, () => this.#check())
  }

  watch(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  close(): void {
    this.#checks.cancel()
  }

  #check(): void {
    const nowMs = this.#clock.monotonicMs()
    for (const socket of this.#sockets) {
      const request = incomingOf(socket)
      if (request === undefined || request.complete) continue
      if (this.#mayLast(request) && !isAnswered(socket)) continue
      const sinceMs = this.#firstSeenMs.get(request)
      if (sinceMs === undefined) this.#firstSeenMs.set(request, nowMs)
      else if (nowMs - sinceMs >= this.#timeoutMs) this.#expire(socket)
    }
  }
}
