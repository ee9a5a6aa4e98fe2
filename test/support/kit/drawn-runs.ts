/**
 * How many cases a drawn test tries. TEST_RUNS multiplies the share that the test has for itself: more for a longer search,
 * and less in the quick half of the suite (scripts/test-runner.ts).
 */
const factor = Number(process.env['TEST_RUNS'] ?? 1)

export const isQuickRun = factor < 1

/** For `skip` of a test that proves again what others prove: the quick half leaves it out, and says why. */
export function onlyWithAll(why: string): string | false {
  return isQuickRun && `only --all runs it: ${why}`
}

export function drawnRuns(share: number): number {
  return Math.ceil(share * factor)
}
