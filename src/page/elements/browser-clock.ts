/**
 * The time and the timers of the browser, the only file of the page that uses them, so that tests can replace it; and in which time
 * zone the page shows moments and reads them from fields: that of the browser, or UTC, as the reader has chosen.
 */

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

/** The default first. */
export const shownZones = ['local', 'utc'] as const

export type ShownZone = (typeof shownZones)[number]

let shown: ShownZone = 'local'

/** Moments are shown in this zone from now on. */
export function showZone(zone: ShownZone): void {
  shown = zone
}

export function shownZone(): ShownZone {
  return shown
}

/** Returns the zone in which moments are not shown. */
export function otherZone(): ShownZone {
  return shown === 'utc' ? 'local' : 'utc'
}

/** For example `Europe/Berlin`. */
export function localZoneName(): string {
  return new Intl.DateTimeFormat('en-GB').resolvedOptions().timeZone
}
