/** The time and the timers of the browser. The only file of the dashboard that uses them, so that tests can replace it. */

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

export const browserClock: BrowserClock = {
  nowMs: () => Date.now(),
  after(delayMs, fire) {
    const timer = setTimeout(fire, delayMs)
    return () => clearTimeout(timer)
  },
}
