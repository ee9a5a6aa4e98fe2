/**
 * Holds back pairs that the server refused temporarily (503 for the shard of one bot, a lost worker) until they are due again.
 *
 * Later pairs for the same queue wait here, too, which keeps the order of that queue as far as it is still possible.
 * Pairs for other queues go on.
 */
import type { Clock, Timer } from '../../src/kit/clock.ts'
import type { Pair } from './pair.ts'

interface HeldQueue {
  /** In the order in which they were pushed. */
  readonly pairs: Pair[]
  /** When all of them come due. */
  dueMs: number
  timer: Timer
}

/** The pairs of one stream that wait for their next attempt, by queue. */
export class HeldPairs {
  readonly #clock: Clock
  readonly #onDue: (pairs: readonly Pair[]) => void
  readonly #queues = new Map<string, HeldQueue>()

  constructor(clock: Clock, onDue: (pairs: readonly Pair[]) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /**
   * Holds a pair that was refused. All pairs of its queue come due together, after the longest of their delays.
   *
   * @param pair - The refused pair.
   * @param delayMs - The least time until the pair is handed to `onDue`.
   */
  hold(pair: Pair, delayMs: number): void {
    const { queue } = pair
    const dueMs = this.#clock.monotonicMs() + delayMs
    const held = this.#queues.get(queue)
    if (held === undefined) {
      this.#queues.set(queue, { pairs: [pair], dueMs, timer: this.#timer(queue, delayMs) })
      return
    }
    insert(held.pairs, pair)
    if (dueMs <= held.dueMs) return
    held.timer.cancel()
    held.timer = this.#timer(queue, delayMs)
    held.dueMs = dueMs
  }

  /**
   * Holds a pair that is about to be sent if pairs of its queue wait here.
   *
   * @returns Whether the pair was held.
   */
  holdIfQueueWaits(pair: Pair): boolean {
    if (this.#queues.size === 0) return false
    const held = this.#queues.get(pair.queue)
    if (held === undefined) return false
    insert(held.pairs, pair)
    return true
  }

  /**
   * Returns pairs before they are due.
   *
   * @param isMeant - Whether the pairs of a bot are meant. Default: all are.
   */
  clear(isMeant: (botId: number) => boolean = () => true): Pair[] {
    const cleared: Pair[] = []
    for (const [queue, { pairs, timer }] of this.#queues) {
      if (!pairs.some(({ botId }) => isMeant(botId))) continue
      this.#queues.delete(queue)
      timer.cancel()
      cleared.push(...pairs)
    }
    return cleared
  }

  #timer(queue: string, delayMs: number): Timer {
    return this.#clock.after(delayMs, () => {
      const due = this.#queues.get(queue)
      this.#queues.delete(queue)
      if (due !== undefined) this.#onDue(due.pairs)
    })
  }
}

/** Searches from the end, where nearly all pairs belong. */
function insert(pairs: Pair[], pair: Pair): void {
  let at = pairs.length
  while (at > 0 && (pairs[at - 1]?.nth ?? 0) > pair.nth) at -= 1
  pairs.splice(at, 0, pair)
}
