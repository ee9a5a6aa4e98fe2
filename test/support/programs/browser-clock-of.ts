import type { BrowserClock } from '../../../src/page/elements/browser-clock.ts'
import type { FakeClock } from '../kit/fake-clock.ts'

/** Returns a clock of the dashboard that a test moves. */
export function browserClockOf(fake: FakeClock): BrowserClock {
  return {
    nowMs: () => fake.nowMs(),
    after(delayMs, fire) {
      const timer = fake.after(delayMs, fire)
      return () => timer.cancel()
    },
  }
}
