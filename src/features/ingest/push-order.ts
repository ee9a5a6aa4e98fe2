/**
 * Keeps the order of single pushes that a producer pipelines on one connection. HTTP requires this for requests that
 * change something. Without it, a small push would pass a large one that a thread is checking, or a compressed one, or one
 * whose bot or idempotency key is being read, as after its shard has moved.
 *
 *     read, check  --> all earlier ones on the connection have their ids --> stored
 *
 * If a push follows one that is forwarded to another worker, or follows another call, admission/connections/pipelined-calls.ts
 * delivers it here only after that.
 */
import type { Socket } from 'node:net'
import type { PushOutcome, PushReceipt } from '../../bots/push-receipt.ts'
import { Mutex } from '../../kit/mutex.ts'

export class PushOrder {
  readonly #turns = new WeakMap<Socket, Mutex>()

  /** Calls `store` with the prepared value when all earlier pushes of the connection have their ids. */
  async inOrder<Prepared>(
    socket: Socket,
    prepared: Promise<Prepared>,
    store: (prepared: Prepared) => PushReceipt,
  ): Promise<readonly PushOutcome[]> {
    let turns = this.#turns.get(socket)
    if (turns === undefined) {
      turns = new Mutex()
      this.#turns.set(socket, turns)
    }
    // It may fail long before its turn.
    prepared.catch(ignore)
    // An object, because the turn ends when the push has its id, and not when it is stored.
    const { results } = await turns.run(async () => {
      const receipt = store(await prepared)
      await receipt.accepted.catch(ignore)
      return { results: receipt.results }
    })
    return results
  }
}

function ignore(): void {
  // The caller gets the error at its turn, or as the result.
}
