import {
  addFleetCounts,
  type FleetCounts,
  noFleetCounts,
} from '../../../src/features/fleet/fleet-counts.ts'
import type { Fleet } from '../../../src/features/fleet/fleet.ts'

/** The sums over all shards of a worker, and the shards that they cover. */
export async function fleetSums(
  fleet: Pick<Fleet, 'summary'>,
): Promise<{ readonly counts: FleetCounts; readonly shards: readonly number[] }> {
  const shards = await fleet.summary()
  const counts = shards.map((each) => each.counts).reduce(addFleetCounts, noFleetCounts)
  return { counts, shards: shards.map(({ shard }) => shard) }
}
