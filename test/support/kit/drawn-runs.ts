/**
 * How many random cases a property test draws. Every run of the tests draws its share; TEST_RUNS multiplies it for a longer
 * search.
 *
 * @param share - what every run of the tests draws.
 */
export function drawnRuns(share: number): number {
  return Math.ceil(share * Number(process.env['TEST_RUNS'] ?? 1))
}
