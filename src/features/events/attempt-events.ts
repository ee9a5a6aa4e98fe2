/**
 * The events of attempts to deliver (`attempt.delivered`, `attempt.failed`) of one worker. There is one for each attempt, so they
 * exist only while somebody reads them: a worker that serves such a reader says so in the shared memory, where all workers
 * of its server look now and then.
 */
import type { SharedMemory } from '../../process/shared-memory/shared-memory.ts'
import type { Timer } from '../../kit/clock.ts'
import type { NewOperatorEvent } from '../../kit/operator-event.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { eventFlushMs, eventsPerBatchMax, type SendEvents } from './event-gate.ts'

/** A reader that has asked counts as one for this time more. It asks again as soon as it has written what it got. */
export const attemptReaderLingerMs = 5_000

export class AttemptEvents {
  readonly #surroundings: Pick<Surroundings, 'clock' | 'counters'>
  readonly #memory: Pick<SharedMemory, 'total'>
  readonly #pass: SendEvents
  #reads = 0
  #isMarked = false
  #linger: Timer | undefined
  #isWanted = false
  /** When the shared memory was looked at, wall time. */
  #lookedMs = Number.NEGATIVE_INFINITY
  #events: NewOperatorEvent[] = []
  #flush: Timer | undefined

  constructor(
    surroundings: Pick<Surroundings, 'clock' | 'counters'>,
    memory: Pick<SharedMemory, 'total'>,
    send: SendEvents,
  ) {
    this.#surroundings = surroundings
    this.#memory = memory
    this.#pass = send
  }

  /**
   * Whether somebody reads the events of attempts now, or some time ago.
   *
   * @param nowMs - wall time in milliseconds; by it, the shared memory is looked at a few times a second
   */
  isWanted(nowMs: number): boolean {
    if (Math.abs(nowMs - this.#lookedMs) >= eventFlushMs) {
      this.#lookedMs = nowMs
      this.#isWanted = this.#memory.total('attempt_events_wanted') > 0
    }
    return this.#isWanted
  }

  /** Takes an event. It is sent soon; those that are too many are lost and counted. */
  report(event: NewOperatorEvent): void {
    if (this.#events.length >= eventsPerBatchMax) {
      this.#surroundings.counters.add('operator_events_lost', 1)
      return
    }
    this.#events.push(event)
    this.#flush ??= this.#surroundings.clock.after(eventFlushMs, () => void this.#send())
  }

  /** Has all workers report attempts while a reader waits for them. */
  async during<T>(read: () => Promise<T>): Promise<T> {
    this.#reads += 1
    this.#linger?.cancel()
    if (!this.#isMarked) this.#mark(true)
    try {
      return await read()
    } finally {
      this.#reads -= 1
      if (this.#reads === 0 && this.#isMarked) {
        this.#linger = this.#surroundings.clock.after(attemptReaderLingerMs, () =>
          this.#mark(false),
        )
      }
    }
  }

  /** Sends what was reported. */
  async close(): Promise<void> {
    this.#linger?.cancel()
    this.#flush?.cancel()
    if (this.#isMarked) this.#mark(false)
    await this.#send()
  }

  #mark(isMarked: boolean): void {
    this.#isMarked = isMarked
    this.#surroundings.counters.add('attempt_events_wanted', isMarked ? 1 : -1)
  }

  async #send(): Promise<void> {
    this.#flush = undefined
    const events = this.#events
    this.#events = []
    if (events.length === 0) return
    try {
      await this.#pass(events)
    } catch {
      this.#surroundings.counters.add('operator_events_lost', events.length)
    }
  }
}
