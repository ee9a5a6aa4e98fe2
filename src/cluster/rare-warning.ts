/**
 * Logs a warning about an event that may happen thousands of times a second. The first occurrence is logged immediately.
 * After that, at most one line per `rareWarningPeriodMs` reports how many occurrences there were since the previous line.
 * The occurrences of the last period are reported, too.
 */
import type { Clock } from '../clock.ts'
import { rareWarningPeriodMs } from './limits.ts'
import type { Log } from './log.ts'

export class RareWarning {
  readonly #clock: Clock
  readonly #log: Log
  readonly #message: string
  #times = 0
  #details: object = {}
  #isQuiet = false

  constructor(place: { readonly clock: Clock; readonly log: Log }, message: string) {
    this.#clock = place.clock
    this.#log = place.log
    this.#message = message
  }

  note(details: object): void {
    this.#times += 1
    this.#details = details
    if (!this.#isQuiet) this.#say()
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
