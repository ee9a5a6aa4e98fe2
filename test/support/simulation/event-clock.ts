/**
 * Virtual time as a queue of events. Each `step` fires the next event and moves the time to it, however far away it is.
 *
 * A process of the simulation sees the time through a `ProcessClock`, which ends with the process: timers of a killed
 * process never fire. Monotonic time continues over restarts, because nothing that survives a restart may use it.
 */
import type { Clock, Timer } from '../../../src/kit/clock.ts'

interface Event {
  readonly atMs: number
  readonly order: number
  readonly fire: () => void
  isCancelled: boolean
}

const none: Timer = { cancel: () => undefined }

export class EventClock {
  #nowMs = 1_000
  #wallOffsetMs = 1_800_000_000_000
  #order = 0
  /** A binary heap with the next event on top. */
  readonly #events: Event[] = []

  monotonicMs(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return Math.floor(this.#nowMs + this.#wallOffsetMs)
  }

  /** Moves only the wall clock, as an administrator or NTP does. */
  jump(byMs: number): void {
    this.#wallOffsetMs += byMs
  }

  after(delayMs: number, fire: () => void): Timer {
    const atMs = this.#nowMs + Math.max(delayMs, 0)
    const event: Event = { atMs, order: this.#order++, fire, isCancelled: false }
    this.#push(event)
    return {
      cancel: () => {
        event.isCancelled = true
      },
    }
  }

  /** When the next `step` fires an event; undefined if there are no more events. */
  get nextMs(): number | undefined {
    while (this.#events[0]?.isCancelled === true) this.#pop()
    return this.#events[0]?.atMs
  }

  step(): void {
    if (this.nextMs === undefined) return
    const event = this.#pop()
    this.#nowMs = Math.max(this.#nowMs, event.atMs)
    event.fire()
  }

  #push(event: Event): void {
    const events = this.#events
    let at = events.push(event) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = events[above]!
      if (isBefore(parent, event)) break
      events[at] = parent
      at = above
    }
    events[at] = event
  }

  #pop(): Event {
    const events = this.#events
    const top = events[0]!
    const last = events.pop()!
    if (events.length === 0) return top
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      const right = left + 1
      if (left >= events.length) break
      const child = right < events.length && isBefore(events[right]!, events[left]!) ? right : left
      if (isBefore(last, events[child]!)) break
      events[at] = events[child]!
      at = child
    }
    events[at] = last
    return top
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order)
}

/** Time as one process sees it. */
export class ProcessClock implements Clock {
  readonly #events: EventClock
  #isAlive = true
  #timers = 0

  constructor(events: EventClock) {
    this.#events = events
  }

  get timers(): number {
    return this.#timers
  }

  nowMs(): number {
    return this.#events.wallMs()
  }

  machineMs(): number {
    return this.monotonicMs()
  }

  monotonicMs(): number {
    return this.#events.monotonicMs()
  }

  after(delayMs: number, fire: () => void): Timer {
    if (!this.#isAlive) return none
    this.#timers++
    let isOver = false
    const end = (): void => {
      if (!isOver) this.#timers--
      isOver = true
    }
    const timer = this.#events.after(delayMs, () => {
      end()
      if (this.#isAlive) fire()
    })
    return {
      cancel: () => {
        end()
        timer.cancel()
      },
    }
  }

  soon(fire: () => void): void {
    this.fromOutside(0, fire)
  }

  /** An event that reaches the process without a timer of the process itself. */
  fromOutside(delayMs: number, fire: () => void): Timer {
    return this.#events.after(delayMs, () => {
      if (this.#isAlive) fire()
    })
  }

  /** Ends all events of this process. */
  kill(): void {
    this.#isAlive = false
  }
}
