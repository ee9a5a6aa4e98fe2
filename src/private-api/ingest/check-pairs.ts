/** Checks the updates of the pairs of a slice, those of one chunk of the stream in one call. */
import { type CheckResult, checkUpdates } from '../../queue/check-batch.ts'
import type { StreamPair } from './pair-splitter.ts'

/**
 * @param known - the results of pairs that a thread has checked
 * @returns one result per pair, in their order
 */
export function checkPairs(
  pairs: readonly StreamPair[],
  known: ReadonlyMap<StreamPair, CheckResult | undefined>,
): CheckResult[] {
  const results: CheckResult[] = []
  let run: StreamPair[] = []
  const checkRun = (): void => {
    const [first] = run
    if (first !== undefined) results.push(...checkUpdates(first.bytes, run))
    run = []
  }
  for (const pair of pairs) {
    const result = known.get(pair)
    if (result !== undefined || pair.bytes !== run[0]?.bytes) checkRun()
    if (result === undefined) run.push(pair)
    else results.push(result)
  }
  checkRun()
  return results
}
