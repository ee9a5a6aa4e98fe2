/** Deletes one update that has left its queue and is kept, before its time: alone, or out of the run that it left with. */
import type { QueueId } from '../../shard/records/record-keys.ts'
import type { ForgetKeptOperation } from '../../shard/operations.ts'
import type { Shard } from '../../shard/shard.ts'
import { emptyForget } from './kept-trimmer.ts'

/**
 * Deletes what is kept of an update. It is durable then.
 *
 * @returns whether it was kept
 * @throws STORE_UNAVAILABLE, OUTCOME_UNKNOWN
 */
export function dropKept(shard: Shard, queue: QueueId, updateId: number): Promise<boolean> {
  return shard.keptChanges.run(async () => {
    // What was committed can be read then.
    await shard.commit([], { waited: true })
    const operation = await dropOf(shard, queue, updateId)
    if (operation === undefined) return false
    await shard.commit([operation], { waited: true })
    return true
  })
}

async function dropOf(
  shard: Shard,
  queue: QueueId,
  updateId: number,
): Promise<ForgetKeptOperation | undefined> {
  const one = { queue, from: updateId, to: updateId + 1, limit: 1 }
  const [alone] = (await shard.readLeftUpdates(one)).updates
  if (alone !== undefined) {
    return { ...emptyForget(queue), updateIds: [updateId], count: 1, bytes: alone.text.length }
  }
  const [run] = await shard.readKeptRuns({ ...one, from: 0 }, { reverse: true })
  if (run === undefined || run.end <= updateId) return undefined
  const [update] = (await shard.readUpdates(one)).updates
  if (update === undefined) return undefined
  const bytes = update.text.length
  const rest = { ...run, count: run.count - 1, bytes: run.bytes - bytes }
  const forget = { ...emptyForget(queue), count: 1, bytes }
  // A run without updates goes.
  if (rest.count <= 0) return { ...forget, runs: [run] }
  return { ...forget, shrunk: { runs: [rest], updateIds: [updateId] } }
}
