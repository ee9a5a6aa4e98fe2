/** In which time zone the page shows moments, and reads them from fields: that of the browser, or UTC, as the reader has chosen. */

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
