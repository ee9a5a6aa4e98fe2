/**
 * Holds back pairs that the server refused temporarily (503 for the shard of one bot, a lost worker) until they are due again.
 *
 * Later pairs for the same queue wait here, too, which keeps the order of that queue as far as it is still possible.
 * Pairs for other queues go on.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Pair } from './pair.ts'

interface Lane {
  /** In the order in which they were pushed. */
  readonly pairs: Pair[]
  timer: Timer
}

/** The pairs of one stream that wait for their next attempt, by queue. */
export class HeldPairs {
  readonly #clock: Clock
  readonly #onDue: (pairs: readonly Pair[]) => void
  readonly #lanes = new Map<string, Lane>()

  constructor(clock: Clock, onDue: (pairs: readonly Pair[]) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /**
   * Holds a pair that was refused. If its queue has no pair here yet, all pairs of the queue come due after the delay;
   * otherwise the pair joins the others and comes due with them.
   *
   * @param pair - The refused pair.
   * @param delayMs - Time until the pairs are handed to `onDue`. Without effect if the queue already has pairs here.
   */
  hold(pair: Pair, delayMs: number): void {
    const lane = this.#lanes.get(pair.queue)
    if (lane !== undefined) {
      insert(lane.pairs, pair)
      return
    }
    const timer = this.#clock.after(delayMs, () => {
      const due = this.#lanes.get(pair.queue)
      this.#lanes.delete(pair.queue)
      if (due !== undefined) this.#onDue(due.pairs)
    })
    this.#lanes.set(pair.queue, { pairs: [pair], timer })
  }

  /**
   * Holds a pair that is about to be sent if pairs of its queue wait here.
   *
   * @returns Whether the pair was held.
   */
  takesBehind(pair: Pair): boolean {
    if (this.#lanes.size === 0) return false
    const lane = this.#lanes.get(pair.queue)
    if (lane === undefined) return false
    insert(lane.pairs, pair)
    return true
  }

  /** Cancels all timers and returns all pairs, due or not. */
  clear(): Pair[] {
    const lanes = [...this.#lanes.values()]
    this.#lanes.clear()
    for (const { timer } of lanes) timer.cancel()
    return lanes.flatMap(({ pairs }) => pairs)
  }
}

/** Searches from the end, where nearly all pairs belong. */
function insert(pairs: Pair[], pair: Pair): void {
  let at = pairs.length
  while (at > 0 && (pairs[at - 1]?.nth ?? 0) > pair.nth) at -= 1
  pairs.splice(at, 0, pair)
}
