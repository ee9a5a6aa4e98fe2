/**
 * The lanes whose first update can be sent. Lanes that try again and lanes whose first update has not failed yet take turns,
 * so that new keys get theirs however many keys fail.
 */
import { Fifo } from '../kit/fifo.ts'
import type { Lane } from './lane.ts'

export class ReadyLanes {
  readonly #fresh = new Fifo<Lane>()
  readonly #again = new Fifo<Lane>()
  #isTurnOfAgain = false

  get length(): number {
    return this.#fresh.length + this.#again.length
  }

  /** The number of lanes whose first update has not failed yet. */
  get freshLength(): number {
    return this.#fresh.length
  }

  /** The number of lanes that try again. */
  get againLength(): number {
    return this.#again.length
  }

  push(lane: Lane): void {
    if (lane.failures > 0) this.#again.push(lane)
    else this.#fresh.push(lane)
  }

  shift(): Lane | undefined {
    this.#isTurnOfAgain = !this.#isTurnOfAgain
    return this.#isTurnOfAgain
      ? (this.#again.shift() ?? this.#fresh.shift())
      : (this.#fresh.shift() ?? this.#again.shift())
  }

  /** Takes out every lane once; `visit` may push it again. */
  each(visit: (lane: Lane) => void): void {
    for (const lanes of [this.#fresh, this.#again]) {
      for (let left = lanes.length; left > 0; left--) {
        const lane = lanes.shift()
        if (lane !== undefined) visit(lane)
      }
    }
  }
}
