/** The time and the timers of the browser. The only file of the dashboard that uses them, so that tests can replace it. */
import { shownZone } from './shown-zone.ts'

/** A source of time and timers. */
export interface BrowserClock {
  /** Wall time in milliseconds. */
  nowMs(): number
  /** Calls `fire` once; the returned function cancels that. */
  after(delayMs: number, fire: () => void): () => void
}

/** Returns a moment as machines read it. */
export function isoTimeOf(unixSeconds: number): string {
  return new Date(unixSeconds * 1_000).toISOString()
}

/** Returns the Unix seconds of a moment as a field for a date and a time has it, in the time zone that the page shows; undefined if it is empty. */
export function unixSecondsOf(time: string): number | undefined {
  const ms = Date.parse(shownZone() === 'utc' ? `${time}Z` : time)
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1_000)
}

export const browserClock: BrowserClock = {
  nowMs: () => Date.now(),
  after(delayMs, fire) {
    const timer = setTimeout(fire, delayMs)
    return () => clearTimeout(timer)
  },
}
