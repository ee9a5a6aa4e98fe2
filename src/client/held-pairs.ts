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
  /** When all of them come due. */
  dueMs: number
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
   * Holds a pair that was refused. All pairs of its queue come due together, after the longest of their delays.
   *
   * @param pair - The refused pair.
   * @param delayMs - The least time until the pair is handed to `onDue`.
   */
  hold(pair: Pair, delayMs: number): void {
    const { queue } = pair
    const dueMs = this.#clock.monotonicMs() + delayMs
    const lane = this.#lanes.get(queue)
    if (lane === undefined) {
      this.#lanes.set(queue, { pairs: [pair], dueMs, timer: this.#timer(queue, delayMs) })
      return
    }
    insert(lane.pairs, pair)
    if (dueMs <= lane.dueMs) return
    lane.timer.cancel()
    lane.timer = this.#timer(queue, delayMs)
    lane.dueMs = dueMs
  }

  /**
   * Holds a pair that is about to be sent if pairs of its queue wait here.
   *
   * @returns Whether the pair was held.
   */
  holdIfQueueWaits(pair: Pair): boolean {
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

  #timer(queue: string, delayMs: number): Timer {
    return this.#clock.after(delayMs, () => {
      const due = this.#lanes.get(queue)
      this.#lanes.delete(queue)
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
