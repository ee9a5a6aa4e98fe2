/** What a fleet index does not learn from commits, and reads from disk: the oldest updates, and the numbers of dead letters. */
import { type QueueId, updateIdEnd } from '../../shard/records/record-keys.ts'
import type { Shard } from '../../shard/shard.ts'
import type { DueOldest, FleetIndex, OldestUpdate } from './fleet-index.ts'

interface Indexed {
  readonly shard: Shard
  readonly index: FleetIndex
}

/** Reads the oldest update of a queue. Never rejects. */
export async function readOldestOnDisk({ shard, index }: Indexed, due: DueOldest): Promise<void> {
  try {
    index.oldestIs(due.queue, await oldestOnDisk(shard, due))
  } catch {
    index.oldestUnread(due.queue)
  }
}

/** Reads the first update from the floor on; damaged ones are skipped. */
async function oldestOnDisk(
  shard: Shard,
  { queue, floor }: DueOldest,
): Promise<OldestUpdate | undefined> {
  for (let from = floor; from < updateIdEnd; ) {
    const read = await shard.readUpdates({ queue, from, to: updateIdEnd, limit: 1 })
    const [oldest] = read.updates
    if (oldest !== undefined) return oldest
    from = read.next
  }
  return undefined
}

/** Of one queue, this many dead letters are counted. Chosen: twice what a queue keeps. */
const fleetDeadLettersMax = 2_000

/** Counts the dead letters of a queue. Never rejects. */
export async function countDeadLetters({ shard, index }: Indexed, queue: QueueId): Promise<void> {
  try {
    index.deadLettersAre(queue, await shard.lists.deadLetterCount(queue, fleetDeadLettersMax))
  } catch {
    index.deadLettersUncounted(queue)
  }
}
