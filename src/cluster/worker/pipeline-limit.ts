/**
 * Bounds what one connection can have a worker do in one turn of the event loop. Only requests to the private listener with the
 * admin key are not bound.
 *
 * Node reads 64 KiB at a time, up to 32 times in a turn, and answers each request in it before anything else: thousands of
 * pipelined requests for unknown paths held a worker for longer than a second. No bot, proxy or load balancer pipelines.
 * Who does is answered this often in a turn; the last of those answers ends the connection, and what follows is not parsed.
 * Requests that come one after the other, as many as there may be, are not counted.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../clock.ts'
import { pipelinedPerTurnMax } from '../../limits.ts'

export class PipelineLimit {
  readonly #clock: Pick<Clock, 'soon'>
  /** Of this turn. */
  readonly #counts = new Map<Socket, number>()

  constructor(clock: Pick<Clock, 'soon'>) {
    this.#clock = clock
  }

  /** Counts a request; true where its answer has to be the last one of its connection. */
  isReached(response: ServerResponse): boolean {
    // It has the socket: no answer before it is open.
    if (response.socket !== null) return false
    const { socket } = response.req
    if (this.#counts.size === 0) this.#clock.soon(() => this.#counts.clear())
    const count = (this.#counts.get(socket) ?? 0) + 1
    this.#counts.set(socket, count)
    return count >= pipelinedPerTurnMax
  }
}
