/** Wall time as the private API shows it where seconds are too coarse: with milliseconds as their fraction. */
export function unixSeconds(ms: number): number {
  return Math.round(ms) / 1_000
}
