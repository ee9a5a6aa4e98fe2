/**
 * Many deadlines with one timer. A timer for each takes 250 bytes with its closure, and thousands of polls wait at a time;
 * here a deadline takes a place in a binary heap.
 *
 * Most polls are answered before their deadline. The timer is not moved then: it fires early, finds nothing that is due,
 * and is set for the next deadline.
 */
import type { Clock, Timer } from '../clock.ts'

/** Something that has a deadline. `Deadlines` alone changes `place`. */
export interface Expiring {
  /** Monotonic; must not change while it is in `Deadlines`. */
  readonly dueMs: number
  /** Its index in the heap; `noPlace` if it has no deadline. */
  place: number
  /** The deadline has passed, and it is no longer in `Deadlines`. */
  expire(): void
}

export const noPlace = -1

export class Deadlines {
  readonly #clock: Pick<Clock, 'after' | 'monotonicMs'>
  /** No item is due before the one at half its index. */
  readonly #heap: Expiring[] = []
  #timer: Timer | undefined
  #timerDueMs = Number.POSITIVE_INFINITY

  constructor(clock: Pick<Clock, 'after' | 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Calls `expire` of the item at `dueMs`, unless it is removed before. */
  add(item: Expiring): void {
    this.#rise(this.#heap.length, item)
    if (item.dueMs < this.#timerDueMs) this.#arm(item.dueMs)
  }

  /** Does nothing if the item has no deadline. */
  remove(item: Expiring): void {
    const at = item.place
    if (at === noPlace) return
    item.place = noPlace
    const last = this.#heap.pop()
    if (last !== undefined && last !== item) {
      this.#sink(at, last)
      this.#rise(last.place, last)
    }
    if (this.#heap.length === 0) this.#disarm()
  }

  #fire(): void {
    this.#disarm()
    const nowMs = this.#clock.monotonicMs()
    for (;;) {
      const first = this.#heap[0]
      if (first === undefined) return
      if (first.dueMs > nowMs) {
        if (first.dueMs < this.#timerDueMs) this.#arm(first.dueMs)
        return
      }
      this.remove(first)
      first.expire()
    }
  }

  #arm(dueMs: number): void {
    this.#timer?.cancel()
    this.#timerDueMs = dueMs
    this.#timer = this.#clock.after(dueMs - this.#clock.monotonicMs(), () => this.#fire())
  }

  #disarm(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerDueMs = Number.POSITIVE_INFINITY
  }

  /** Puts the item at `from`, or above it if it is due earlier than what is there. */
  #rise(from: number, item: Expiring): void {
    let at = from
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = this.#heap[above]
      if (parent === undefined || parent.dueMs <= item.dueMs) break
      this.#put(at, parent)
      at = above
    }
    this.#put(at, item)
  }

  /** Puts the item at `from`, or below it if it is due later than what is there. */
  #sink(from: number, item: Expiring): void {
    let at = from
    for (;;) {
      const left = this.#heap[2 * at + 1]
      const right = this.#heap[2 * at + 2]
      const useRight = right !== undefined && left !== undefined && right.dueMs < left.dueMs
      const child = useRight ? right : left
      if (child === undefined || child.dueMs >= item.dueMs) break
      this.#put(at, child)
      at = 2 * at + (useRight ? 2 : 1)
    }
    this.#put(at, item)
  }

  #put(at: number, item: Expiring): void {
    this.#heap[at] = item
    item.place = at
  }
}
