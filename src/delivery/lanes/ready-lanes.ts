/**
 * The lanes whose first update can be sent. They take turns by what is known of their keys, so that the good ones come
 * first and nothing starves:
 *
 *     first     the last attempt succeeded, or the newest key that was not tried while others fail   2 turns of 4
 *     untried   not tried yet, in the order of the queue                                             1
 *     failed    the first update has failed                                                          1
 *
 * A turn that nobody takes goes to another.
 */
import { Fifo } from '../../kit/fifo.ts'
import type { Lane, LaneTurn } from './lane.ts'

const turns: readonly LaneTurn[] = ['first', 'untried', 'first', 'failed']

export class ReadyLanes {
  readonly #lanes: Readonly<Record<LaneTurn, Fifo<Lane>>> = {
    first: new Fifo(),
    untried: new Fifo(),
    failed: new Fifo(),
  }
  #next = 0

  get length(): number {
    const { first, untried, failed } = this.#lanes
    return first.length + untried.length + failed.length
  }

  /** Returns how many lanes share a turn. */
  count(turn: LaneTurn): number {
    return this.#lanes[turn].length
  }

  push(lane: Lane): void {
    this.#lanes[lane.turn].push(lane)
  }

  shift(): Lane | undefined {
    const { first, untried, failed } = this.#lanes
    const turn = turns[this.#next] ?? 'first'
    this.#next = (this.#next + 1) % turns.length
    return this.#lanes[turn].shift() ?? untried.shift() ?? first.shift() ?? failed.shift()
  }

  /** Takes out every lane once; `visit` may push it again. */
  each(visit: (lane: Lane) => void): void {
    for (const lanes of Object.values(this.#lanes)) {
      for (let left = lanes.length; left > 0; left--) {
        const lane = lanes.shift()
        if (lane !== undefined) visit(lane)
      }
    }
  }
}
