/**
 * How long a relay waits after polls that failed: not at all after the first failure, then 2, 4, 8 ... s. The delay is spread, so
 * that the relays of an origin that was down do not return together.
 */

/** The wait after the second failure in a row; each further one doubles it. Chosen: a restart of an origin is over then. */
const relayPauseMsMin = 2_000
/** The wait grows to this. Chosen: with the spread it stays below two minutes, and a thousand relays cost an origin that is down 11 polls a second. */
const relayPauseMsMax = 90_000

/**
 * Returns how many milliseconds after a failure the next poll begins.
 *
 * @param failures - polls in a row that failed, including this one
 * @param random - returns numbers in [0, 1)
 */
export function pollPauseMs(failures: number, random: () => number): number {
  if (failures <= 1) return 0
  const spread = 0.75 + random() / 2
  return Math.min(relayPauseMsMin * 2 ** (failures - 2), relayPauseMsMax) * spread
}
