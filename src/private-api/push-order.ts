/**
 * Single pushes that a producer sends one behind the other on a connection, without waiting for the answers, are stored
 * in that order: HTTP asks for it of whatever changes something. Without this a small one would pass a large one that
 * is being checked in the thread, or a compressed one.
 *
 *     read, check  --> all before it on the connection are stored --> stored
 *
 * Where a push is behind one that is sent on to another worker, or behind another call, cluster/forward/call-line.ts
 * brings it here after that.
 */
import type { Socket } from 'node:net'

export class PushOrder {
  /** Resolves when the last one so far has been stored, or failed. */
  readonly #last = new WeakMap<Socket, Promise<unknown>>()

  /** Calls `store` with what was prepared, once everything earlier is stored. */
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
  // Only that it is over counts.
}
