/**
 * Keeps the order of single pushes that a producer pipelines on one connection. HTTP requires this for requests that
 * change something. Without it, a small push would pass a large one that a thread is checking, or a compressed one.
 *
 *     read, check  --> all earlier ones on the connection are stored --> stored
 *
 * If a push follows one that is forwarded to another worker, or follows another call, cluster/forward/pipelined-calls.ts
 * delivers it here only after that.
 */
import type { Socket } from 'node:net'

export class PushOrder {
  /** Resolves when the latest push of a connection has been passed to the store or has failed. */
  readonly #last = new WeakMap<Socket, Promise<unknown>>()

  /** Calls `store` with the prepared value after all earlier pushes of the connection. */
  async inOrder<Prepared, Result>(
    socket: Socket,
    prepared: Promise<Prepared>,
    store: (prepared: Prepared) => Result,
  ): Promise<Awaited<Result>> {
    const before = this.#last.get(socket)
    // It may fail long before its turn.
    prepared.catch(nothing)
    const turn = before === undefined ? prepared : before.then(() => prepared)
    const stored = turn.then(store)
    const last = turn.then(nothing, nothing)
    this.#last.set(socket, last)
    try {
      return await stored
    } finally {
      if (this.#last.get(socket) === last) this.#last.delete(socket)
    }
  }
}

function nothing(): void {
  // Only the end of the wait matters.
}
