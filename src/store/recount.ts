/**
 * The ids and counts of a queue, counted anew from its updates, where damage may have cost the `s` record or
 * some updates. Ids that were given out and then lost must not be given again: the next id skips ahead by more
 * than a lost log could have held.
 */
import type { QueueId } from './keys.ts'
import type { QueueState } from './record.ts'
import type { UpdateRange, UpdatesRead } from './shard.ts'

const pageCount = 1_000
const skippedIds = 1_000_000
const updateIdEnd = 2 ** 32 - 1

const emptyState: QueueState = {
  nextId: 0,
  floor: 0,
  liveCount: 0,
  liveBytes: 0,
  idempotencyDay: 0,
  idempotencyCount: 0,
}

export async function recount(
  queue: QueueId,
  state: QueueState | undefined,
  readUpdates: (range: UpdateRange) => Promise<UpdatesRead>,
): Promise<QueueState | undefined> {
  let liveCount = 0
  let liveBytes = 0
  const before = state ?? emptyState
  let from = before.floor
  let floor: number | undefined
  let end = from
  while (from < updateIdEnd) {
    const page = await readUpdates({ queue, from, to: updateIdEnd, limit: pageCount })
    for (const update of page.updates) liveBytes += update.text.length
    liveCount += page.updates.length
    floor ??= page.updates[0]?.updateId
    from = page.next
    if (from < updateIdEnd) end = from
  }
  if (state === undefined && floor === undefined) return undefined
  const nextId = Math.max(before.nextId, end) + skippedIds
  return { ...before, nextId, floor: floor ?? nextId, liveCount, liveBytes }
}
