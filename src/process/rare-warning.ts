/**
 * Logs a warning about an event that may happen thousands of times a second. The first occurrence is logged immediately, or
 * with others if the events of one cause are to be one line. After that, at most one line per `rareWarningPeriodMs` reports
 * how many occurrences there were since the previous line. The occurrences of the last period are reported, too.
 */
import type { Clock } from '../kit/clock.ts'
import type { Log } from '../kit/surroundings.ts'

/**
 * A warning about an event that may happen thousands of times a second is logged once in this time, with the number of
 * events.
 */
export const rareWarningPeriodMs = 10_000

export class RareWarning {
  readonly #clock: Clock
  readonly #log: Log
  readonly #message: string
  readonly #gatherMs: number
  #times = 0
  #details: object = {}
  #isQuiet = false

  /** @param gatherMs - how long the line of the first occurrence waits for others */
  constructor(place: { readonly clock: Clock; readonly log: Log }, message: string, gatherMs = 0) {
    this.#clock = place.clock
    this.#log = place.log
    this.#message = message
    this.#gatherMs = gatherMs
  }

  note(details: object): void {
    this.#times += 1
    this.#details = details
    if (this.#isQuiet) return
    if (this.#gatherMs === 0) {
      this.#say()
      return
    }
    this.#isQuiet = true
    this.#clock.after(this.#gatherMs, () => this.#say())
  }

  #say(): void {
    this.#log.warn({ ...this.#details, times: this.#times }, this.#message)
    this.#times = 0
    this.#isQuiet = true
    this.#clock.after(rareWarningPeriodMs, () => {
      this.#isQuiet = false
      if (this.#times > 0) this.#say()
    })
  }
}
