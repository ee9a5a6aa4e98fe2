/**
 * Waiting lanes with the lane that is due first on top. It is a binary heap because a failing bot has thousands of them.
 */

import assert from 'node:assert/strict'
import type { Lane } from './lane.ts'

/** A binary heap of lanes, ordered by `dueMs`, which is monotonic. */
export class DueHeap {
  readonly #lanes: Lane[] = []

  /** When the first lane is due; undefined if no lane waits. */
  get firstDueMs(): number | undefined {
    return this.#lanes[0]?.dueMs
  }

  get size(): number {
    return this.#lanes.length
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
