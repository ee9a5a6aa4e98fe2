/**
 * A warning about something that may happen thousands of times a second: said at once, then at most once in
 * `rareWarningPeriodMs`, with the number of times since it was last said. The last ones are told, too.
 */
import type { Clock } from '../clock.ts'
import { rareWarningPeriodMs } from '../limits.ts'
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
