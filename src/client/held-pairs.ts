/**
 * Pairs that the server refused for a moment (503 for one bot's shard, a worker lost), until they are sent again; and
 * those of the same bot that were to be sent behind them and wait with them, so that the bot's order is kept as far as
 * that is still possible. Other bots' pairs go on.
 */
import type { Clock, Timer } from '../clock.ts'
import type { Pair } from './pair.ts'

interface Lane {
  /** In the order they were pushed in. */
  readonly pairs: Pair[]
  timer: Timer
}

export class HeldPairs {
  readonly #clock: Clock
  readonly #onDue: (pairs: readonly Pair[]) => void
  readonly #lanes = new Map<string, Lane>()

  constructor(clock: Clock, onDue: (pairs: readonly Pair[]) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /** Takes a pair that was refused; it and what waits with it come back after the delay. */
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

  /** Takes a pair that is to be sent, if others of its bot wait; true where it did. */
  takesBehind(pair: Pair): boolean {
    if (this.#lanes.size === 0) return false
    const lane = this.#lanes.get(pair.queue)
    if (lane === undefined) return false
    insert(lane.pairs, pair)
    return true
  }

  /** Gives all back, whenever they were due. */
  clear(): Pair[] {
    const lanes = [...this.#lanes.values()]
    this.#lanes.clear()
    for (const { timer } of lanes) timer.cancel()
    return lanes.flatMap(({ pairs }) => pairs)
  }
}

/** From the end, where nearly all belong. */
function insert(pairs: Pair[], pair: Pair): void {
  let at = pairs.length
  while (at > 0 && (pairs[at - 1]?.nth ?? 0) > pair.nth) at -= 1
  pairs.splice(at, 0, pair)
}
