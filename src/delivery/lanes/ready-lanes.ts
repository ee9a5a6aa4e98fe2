/**
 * The lanes in the order in which they come: those that wait by the time at which they are due (`DueHeap`), and those whose first
 * update can be sent (`ReadyLanes`). These take turns by what is known of their keys, so that the good ones come
 * first and nothing starves:
 *
 *     first     the last attempt succeeded, or the newest key that was not tried while others fail   2 turns of 4
 *     untried   not tried yet, in the order of the queue                                             1
 *     failed    the first update has failed                                                          1
 *
 * A turn that nobody takes goes to another.
 */
import assert from 'node:assert/strict'
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

  /** Returns the lanes that share a turn. */
  of(turn: LaneTurn): Iterable<Lane> {
    return this.#lanes[turn]
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

/**
 * Lanes that wait, with the lane on top that is due first: by `dueMs`, which is monotonic. It is a binary heap because a failing bot
 * has thousands of them.
 */
export class DueHeap {
  readonly #lanes: Lane[] = []

  /** When the first lane is due; undefined if no lane waits. */
  get firstDueMs(): number | undefined {
    return this.#lanes[0]?.dueMs
  }

  get size(): number {
    return this.#lanes.length
  }

  /** The lanes, in no order. */
  get lanes(): readonly Lane[] {
    return this.#lanes
  }

  push(lane: Lane): void {
    assert(Number.isFinite(lane.dueMs), 'a lane that waits is due at some time')
    const lanes = this.#lanes
    let at = lanes.push(lane) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = lanes[above]
      if (parent === undefined || parent.dueMs <= lane.dueMs) break
      lanes[at] = parent
      at = above
    }
    lanes[at] = lane
  }

  /** Removes and returns the lane that is due first, if it is due. */
  popDue(nowMs: number): Lane | undefined {
    const lanes = this.#lanes
    const top = lanes[0]
    if (top === undefined || top.dueMs > nowMs) return undefined
    const last = lanes.pop()
    if (last !== undefined && lanes.length > 0) this.#sink(last)
    return top
  }

  /** Removes and returns the lanes that are wanted. Takes a while if many lanes wait. */
  take(isWanted: (lane: Lane) => boolean): readonly Lane[] {
    const lanes = this.#lanes.splice(0)
    for (const lane of lanes) if (!isWanted(lane)) this.push(lane)
    return lanes.filter(isWanted)
  }

  clear(): void {
    this.#lanes.length = 0
  }

  #sink(lane: Lane): void {
    const lanes = this.#lanes
    let at = 0
    for (;;) {
      const left = lanes[2 * at + 1]
      const right = lanes[2 * at + 2]
      const useRight = right !== undefined && left !== undefined && right.dueMs < left.dueMs
      const child = useRight ? right : left
      if (child === undefined || child.dueMs >= lane.dueMs) break
      lanes[at] = child
      at = 2 * at + (useRight ? 2 : 1)
    }
    lanes[at] = lane
  }
}
