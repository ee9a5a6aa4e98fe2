/**
 * Deletes what a queue keeps of updates that have left it, of those that an erasure means: single ones, those out of the runs
 * that they left with, and those below the floor that nobody keeps and that are about to be deleted.
 */
import assert from 'node:assert/strict'
import { mib } from '../../kit/limits.ts'
import type { ForgetKeptOperation } from '../../shard/operations.ts'
import { type QueueId, updateIdEnd } from '../../shard/records/record-keys.ts'
import type { Shard } from '../../shard/shard.ts'
import type { KeptRun, StoredUpdate } from '../../shard/records/stored-records.ts'
import { emptyForget, type KeptQueue } from './kept-trimmer.ts'
import { readRunsOver, runOf } from './look-back.ts'
import { lookCostMs, type LookPayer } from './look-payer.ts'

/** Which updates are erased. */
export interface Erasing {
  readonly isMeant: (update: Pick<StoredUpdate, 'orderingKey' | 'text'>) => boolean
  /** Called with the id of each update that is removed. */
  readonly noted: (updateId: number) => void
  /** Called with the updates that were removed and counted. */
  readonly counted: (updates: readonly Pick<StoredUpdate, 'typeNumber'>[]) => void
  /** Pays for each read. */
  readonly payer?: LookPayer | undefined
}

/** One step reads this much, and commits what it has found: so a long queue holds up nothing else. */
const erasedPageUpdates = 250
const erasedPageBytes = 1 * mib

/**
 * Deletes them. It is durable then.
 *
 * @param floor - the id below which no update is pending
 * @returns how many were kept
 * @throws STORE_UNAVAILABLE, OUTCOME_UNKNOWN
 */
export async function eraseKept(
  queue: KeptQueue,
  floor: number,
  erasing: Erasing,
): Promise<number> {
  const { shard } = queue
  // What was committed can be read then.
  await shard.commit([], { waited: true })
  let count = 0
  for (const { end, step } of [
    { end: updateIdEnd, step: leftStep },
    { end: floor, step: runStep },
  ]) {
    for (let from = 0; from < end; ) {
      const at = from
      // Nothing is held while its payer waits.
      await erasing.payer?.turn()
      const { next, counted } = await shard.keptChanges.run(async () => {
        const found = await step(queue, erasing, { from: at, to: end })
        for (const updateId of found.updateIds) erasing.noted(updateId)
        if (found.operation !== undefined) await shard.commit([found.operation], { waited: true })
        return found
      })
      assert(next > from, 'an erasure goes on')
      count += counted.length
      erasing.counted(counted)
      from = next
    }
  }
  return count
}

interface IdSpan {
  readonly from: number
  readonly to: number
}

interface Step {
  /** The id at which to continue. */
  readonly next: number
  readonly updateIds: readonly number[]
  /** Those of them that were kept, and not about to be deleted anyway. */
  readonly counted: readonly Pick<StoredUpdate, 'typeNumber'>[]
  /** Undefined if nothing was found. */
  readonly operation: ForgetKeptOperation | undefined
}

async function leftStep(
  { id: queue, shard }: KeptQueue,
  erasing: Erasing,
  span: IdSpan,
): Promise<Step> {
  const { updates, next } = await shard.readLeftUpdates(pageOf(queue, span))
  erasing.payer?.charge(lookCostMs(updates))
  const found = updates.filter((update) => erasing.isMeant(update))
  if (found.length === 0) return { next, updateIds: [], counted: [], operation: undefined }
  const updateIds = found.map(({ updateId }) => updateId)
  const operation = { ...emptyForget(queue), updateIds, ...countsOf(found) }
  return { next, updateIds, counted: found, operation }
}

async function runStep(
  { id: queue, shard }: KeptQueue,
  erasing: Erasing,
  span: IdSpan,
): Promise<Step> {
  const { updates, next } = await shard.readUpdates(pageOf(queue, span))
  erasing.payer?.charge(lookCostMs(updates))
  const found = updates.filter((update) => erasing.isMeant(update))
  if (found.length === 0) return { next, updateIds: [], counted: [], operation: undefined }
  const over = await readRunsOver(shard, { queue, from: span.from, to: next })
  const kept = new Map<KeptRun, StoredUpdate[]>()
  for (const update of found) {
    const run = runOf(update.updateId, over)
    if (run !== undefined) kept.set(run, [...(kept.get(run) ?? []), update])
  }
  const runs: KeptRun[] = []
  const shrunk: KeptRun[] = []
  for (const [run, erased] of kept) {
    const { count, bytes } = countsOf(erased)
    const rest = { ...run, count: run.count - count, bytes: run.bytes - bytes }
    // A run without updates goes.
    if (rest.count <= 0) runs.push(run)
    else shrunk.push(rest)
  }
  const updateIds = found.map(({ updateId }) => updateId)
  const counted = [...kept.values()].flat()
  const counts = countsOf(counted)
  const operation = { ...emptyForget(queue), runs, shrunk: { runs: shrunk, updateIds }, ...counts }
  return { next, updateIds, counted, operation }
}

function pageOf(queue: QueueId, span: IdSpan): Parameters<Shard['readUpdates']>[0] {
  return { ...span, queue, limit: erasedPageUpdates, bytesMax: erasedPageBytes }
}

function countsOf(updates: readonly { readonly text: Buffer }[]): {
  readonly count: number
  readonly bytes: number
} {
  return { count: updates.length, bytes: updates.reduce((sum, { text }) => sum + text.length, 0) }
}
