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
import { Mutex } from '../kit/mutex.ts'

export class PushOrder {
  readonly #turns = new WeakMap<Socket, Mutex>()

  /** Calls `store` with the prepared value after all earlier pushes of the connection. */
  async inOrder<Prepared, Result>(
    socket: Socket,
    prepared: Promise<Prepared>,
    store: (prepared: Prepared) => Result,
  ): Promise<Awaited<Result>> {
    let turns = this.#turns.get(socket)
    if (turns === undefined) {
      turns = new Mutex()
      this.#turns.set(socket, turns)
    }
    // It may fail long before its turn.
    prepared.catch(ignore)
    // An object, because the turn ends when the push is passed to the store, and not when it is stored.
    const { stored } = await turns.run(async () => ({ stored: store(await prepared) }))
    return await stored
  }
}

function ignore(): void {
  // The caller gets the error at its turn.
}
