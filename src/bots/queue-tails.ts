/**
 * The open tails of one queue: who watches live what enters the queue and what the bot confirms. A queue has this object
 * only while somebody watches, so that the others pay nothing but one comparison for each update.
 */
import type { AdvancedRange } from '../queue/window/backlog.ts'
import type { QueueWatcher } from '../queue/update-queue.ts'
import type { AdvanceOperation, PushOperation } from '../shard/operations.ts'

/** Somebody who watches a queue. */
export interface QueueTail extends QueueWatcher {
  /** The queue leaves this process or memory: nothing more comes. */
  end(): void
}

/** Passes on to all tails of a queue what its updates do. */
export class QueueTails implements QueueWatcher {
  readonly #tails = new Set<QueueTail>()

  /** Whether nobody watches. */
  get isEmpty(): boolean {
    return this.#tails.size === 0
  }

  add(tail: QueueTail): void {
    this.#tails.add(tail)
  }

  remove(tail: QueueTail): void {
    this.#tails.delete(tail)
  }

  pushed(operation: PushOperation): void {
    for (const tail of this.#tails) tail.pushed(operation)
  }

  advanced(kind: AdvanceOperation['kind'], advanced: AdvancedRange): void {
    for (const tail of this.#tails) tail.advanced(kind, advanced)
  }

  /** Ends all tails. */
  end(): void {
    // A tail that ends leaves the set, which a loop over it allows.
    for (const tail of this.#tails) tail.end()
    this.#tails.clear()
  }
}
