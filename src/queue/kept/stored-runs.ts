/**
 * When the updates that leave a queue were stored, for the histograms of delivery times. Updates of one group were stored at the
 * same time, so a page of them is one run and one addition.
 *
 * A time is that of the commit while the update is in memory. Records have whole seconds only, so an update that was read from disk
 * looks up to a second older than it is.
 */
import type { Counters } from '../../kit/surroundings.ts'
import type { HistogramName } from '../../kit/histograms.ts'

/** Updates that left together and were stored at the same time. */
export interface StoredRun {
  /** Wall time. */
  readonly storedAtMs: number
  count: number
}

/** Past this many runs, further updates join the last one: they are at most as old. A page has at most 100. */
const storedRunsMax = 1_000

export function addStored(runs: StoredRun[], storedAtMs: number, count = 1): void {
  const last = runs.at(-1)
  const isJoined = last?.storedAtMs === storedAtMs || runs.length >= storedRunsMax
  if (last !== undefined && isJoined) last.count += count
  else runs.push({ storedAtMs, count })
}

/** Adds updates that were read from disk, of which only the second is known. */
export function addRead(
  runs: StoredRun[],
  updates: readonly { readonly acceptedAtS: number }[],
): void {
  for (const { acceptedAtS } of updates) addStored(runs, acceptedAtS * 1_000)
}

export interface LeftUpdates {
  readonly stored: readonly StoredRun[]
  readonly count: number
  /** When they left. Wall time. */
  readonly atMs: number
}

/** Adds the times of updates that have left. Returns the number of those that no run has. */
export function observeLeft(
  counters: Pick<Counters, 'observe'>,
  name: HistogramName,
  { stored, count, atMs }: LeftUpdates,
): number {
  let left = count
  for (const run of stored) {
    const own = Math.min(run.count, left)
    if (own > 0) counters.observe(name, atMs - run.storedAtMs, own)
    left -= own
  }
  return left
}
