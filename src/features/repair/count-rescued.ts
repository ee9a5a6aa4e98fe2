/**
 * Corrects the ids and counts of rescued queues and reports what each queue has lost. The `s` record says how many
 * updates were pending; recount.ts counts how many of them are there. The next id skips ahead, because ids that were
 * assigned after the last readable record must not be assigned again.
 */
import type { Clock } from '../../kit/clock.ts'
import { countedPerReadMax } from '../../kit/limits.ts'
import { recountPageUpdates } from '../../shard/recovery/kept-counts.ts'
import { kinds } from '../../shard/kinds.ts'
import { botIdOf, type QueueId, updateIdEnd } from '../../shard/records/record-keys.ts'
import {
  decodeQueueState,
  emptyQueueState,
  encodeQueueState,
  type QueueState,
} from '../../shard/records/record.ts'
import { Shard } from '../../shard/shard.ts'
import type { Rescued } from '../../shard/recovery/rescue-records.ts'
import type { Store, StoreOperation } from '../../store/store.ts'

/** What a queue has lost, according to its own records. */
export interface QueueLoss {
  readonly queue: QueueId
  /** Number of updates that were pending when the `s` record was written last; undefined if that record is lost. */
  readonly updatesBefore: number | undefined
  readonly updatesLeft: number
  /** The first ranges of ids without an update. These updates were lost or had been removed before. */
  readonly missingIds: readonly { readonly first: number; readonly last: number }[]
  /** The queue has updates but no record of its bot: the record was lost, or the bot was removed. */
  readonly isUnregistered: boolean
}

/**
 * Counts all queues of a rescued shard.
 *
 * @param index - of the shard
 * @param lastIds - every queue of which any record was found, with the largest update id that was seen
 * @returns the queues that have lost something, once the ids and counts of all queues are synced.
 */
export async function countRescued(
  store: Store,
  index: number,
  lastIds: Rescued['lastIds'],
  clock: Clock,
): Promise<QueueLoss[]> {
  const shard = new Shard({
    index,
    store,
    clock,
    log: { error: skip, info: skip },
    onCommitted: skip,
    onReset: skip,
    probe: () => Promise.resolve(true),
  })
  await shard.open()
  shard.distrust()
  const losses: QueueLoss[] = []
  const queues = [...lastIds.keys()]
  for (let at = 0; at < queues.length; at += countedPerReadMax) {
    const some = queues.slice(at, at + countedPerReadMax)
    const before = await raiseIds(store, some, lastIds)
    const after = await shard.load(some)
    for (const [nth, queue] of some.entries()) {
      const left = after[nth]?.state?.liveCount ?? 0
      const loss = await lossOf({ store, shard, queue, before: before[nth], left })
      if (loss !== undefined) losses.push(loss)
    }
  }
  return losses
}

async function lossOf(counted: {
  readonly store: Store
  readonly shard: Shard
  readonly queue: QueueId
  readonly before: QueueState | undefined
  readonly left: number
}): Promise<QueueLoss | undefined> {
  const { store, shard, queue, before, left } = counted
  const isUnregistered = left > 0 && !(await hasBot(store, queue))
  const isWhole = before === undefined ? left === 0 : left >= before.liveCount
  if (isWhole && !isUnregistered) return undefined
  const missingIds = await missingIdsOf(shard, queue, before)
  return { queue, updatesBefore: before?.liveCount, updatesLeft: left, missingIds, isUnregistered }
}

/** Raises the next id in `s` records where that id was already assigned. Returns the records as they were before. */
async function raiseIds(
  store: Store,
  queues: readonly QueueId[],
  lastIds: Rescued['lastIds'],
): Promise<(QueueState | undefined)[]> {
  const keys = queues.map((queue) => kinds.state.key(queue))
  const values = await store.getMany(keys)
  const raised: StoreOperation[] = []
  const states = keys.map((key, index) => {
    const value = values[index]
    return value === undefined ? undefined : decodeQueueState({ key, value })
  })
  for (const [index, key] of keys.entries()) {
    const state = states[index] ?? emptyQueueState(0)
    const nextId = (lastIds.get(queues[index] ?? 0) ?? 0) + 1
    if (nextId === 1 || nextId <= state.nextId) continue
    raised.push({ type: 'put', key, value: encodeQueueState(key, { ...state, nextId }) })
  }
  await store.write(raised, { sync: true })
  return states
}

async function hasBot(store: Store, queue: QueueId): Promise<boolean> {
  const [bot] = await store.getMany([kinds.bot.key(botIdOf(queue))])
  return bot !== undefined
}

/**
 * The report of a repair lists this many ranges of missing ids per queue. Chosen: enough to see where the damage is; a
 * line stays readable.
 */
const lostRangesMax = 5

async function missingIdsOf(
  shard: Shard,
  queue: QueueId,
  stored: QueueState | undefined,
): Promise<QueueLoss['missingIds']> {
  const missing: { first: number; last: number }[] = []
  let next = stored?.floor
  for (let from = next ?? 0; from < updateIdEnd && missing.length < lostRangesMax; ) {
    const range = { queue, from, to: updateIdEnd, limit: recountPageUpdates }
    const page = await shard.readUpdates({ ...range, bytesMax: 2 ** 20 })
    for (const { updateId } of page.updates) {
      if (next !== undefined && updateId > next) missing.push({ first: next, last: updateId - 1 })
      next = updateId + 1
    }
    from = page.next
  }
  if (stored !== undefined && next !== undefined && next < stored.nextId) {
    missing.push({ first: next, last: stored.nextId - 1 })
  }
  return missing.slice(0, lostRangesMax)
}

function skip(): void {
  // Damaged records are part of the report, so they are not logged.
}
