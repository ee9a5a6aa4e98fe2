/** The events of a simulation in the order of their times, and of those of one time in the order in which they were added. */

interface Event {
  readonly atMs: number
  readonly order: number
  readonly run: () => void
}

/** A binary heap. */
export class EventQueue {
  readonly #events: Event[] = []
  #order = 0
  #nowMs = 0

  /** The time of the event that runs. */
  get nowMs(): number {
    return this.#nowMs
  }

  at(atMs: number, run: () => void): void {
    const events = this.#events
    const event = { atMs, order: this.#order++, run }
    let at = events.length
    events.push(event)
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = events[above]
      if (parent === undefined || !isBefore(event, parent)) break
      events[at] = parent
      at = above
    }
    events[at] = event
  }

  /** Runs all events up to a time. */
  runUntil(endMs: number): void {
    for (;;) {
      const [first] = this.#events
      if (first === undefined || first.atMs > endMs) break
      this.#removeFirst()
      this.#nowMs = first.atMs
      first.run()
    }
    this.#nowMs = endMs
  }

  #removeFirst(): void {
    const events = this.#events
    const last = events.pop()
    if (last === undefined || events.length === 0) return
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      const [left, right] = [events[below], events[below + 1]]
      if (left === undefined) break
      let next = left
      if (right !== undefined && isBefore(right, left)) {
        next = right
        below += 1
      }
      if (!isBefore(next, last)) break
      events[at] = next
      at = below
    }
    events[at] = last
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
