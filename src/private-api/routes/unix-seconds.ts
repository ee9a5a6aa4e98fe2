/**
 * Converts wall time to the private API's format where whole seconds are too coarse: seconds with milliseconds as fraction.
 */
export function unixSeconds(ms: number): number {
  return Math.round(ms) / 1_000
}
