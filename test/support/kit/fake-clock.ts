import type { Clock, Timer } from '../../../src/kit/clock.ts'

interface Entry {
  readonly dueMs: number
  readonly order: number
  readonly fire: () => void
}

/** A clock that stands still until a test moves it. `jump` moves wall time relative to monotonic time. */
export class FakeClock implements Clock {
  #monotonicMs = 1_000
  #wallOffsetMs: number
  #order = 0
  readonly #entries = new Set<Entry>()

  constructor(nowMs = 1_800_000_000_000) {
    this.#wallOffsetMs = nowMs - this.#monotonicMs
  }

  nowMs(): number {
    return Math.floor(this.#monotonicMs + this.#wallOffsetMs)
  }

  machineMs(): number {
    return this.#monotonicMs
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  get timers(): number {
    return this.#entries.size
  }

  after(delayMs: number, fire: () => void): Timer {
    const entry = {
      dueMs: this.#monotonicMs + Math.max(delayMs, 0),
      order: this.#order++,
      fire,
    }
    this.#entries.add(entry)
    return { cancel: () => void this.#entries.delete(entry) }
  }

  soon(fire: () => void): void {
    setImmediate(fire)
  }

  /** Moves only the wall clock, as an administrator or NTP would. */
  jump(byMs: number): void {
    this.#wallOffsetMs += byMs
  }

  /** Advances time by `byMs`, fires timers in the order in which they come due, and lets promises settle in between. */
  async advance(byMs: number): Promise<void> {
    const endMs = this.#monotonicMs + byMs
    await settle()
    for (let next = this.#next(endMs); next !== undefined; next = this.#next(endMs)) {
      this.#entries.delete(next)
      this.#monotonicMs = Math.max(next.dueMs, this.#monotonicMs)
      next.fire()
      await settle()
    }
    this.#monotonicMs = endMs
  }

  #next(endMs: number): Entry | undefined {
    let first: Entry | undefined
    for (const entry of this.#entries) {
      if (entry.dueMs > endMs) continue
      if (
        first === undefined ||
        entry.dueMs < first.dueMs ||
        (entry.dueMs === first.dueMs && entry.order < first.order)
      ) {
        first = entry
      }
    }
    return first
  }
}

/** Runs everything that is ready to run: promise callbacks and immediates. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Moves the clock until work that it paces is done. */
export async function paced<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  const state = { isDone: false }
  const done = work.finally(() => {
    state.isDone = true
  })
  while (!state.isDone) {
    await clock.advance(50)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return done
}
