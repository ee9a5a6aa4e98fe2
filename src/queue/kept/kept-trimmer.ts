/**
 * Deletes the oldest of what one queue keeps of updates that have left: what is too old, and what is too much. Runs and single
 * updates go in the order of their ids, which is about that in which they have left; an update that has left late may
 * keep those after it for as long as itself.
 */
import { type QueueId, updateIdEnd } from '../../shard/records/record-keys.ts'
import type { ForgetKeptOperation } from '../../shard/operations.ts'
import type { KeptRun, LeftUpdatesRead } from '../../shard/records/stored-records.ts'
import { mib } from '../../kit/limits.ts'
import type { StoredQueue } from '../queue-reader.ts'
import type { Retention } from './left-update.ts'

/** What may stay. */
export interface KeptBounds {
  /** Everything that left before this wall time in milliseconds goes. */
  readonly leftFromMs: number
  readonly bytes: number
}

/** A queue whose updates are kept, in memory or not. */
export type KeptQueue = Pick<StoredQueue, 'id' | 'shard'>

/** A queue may keep this many times its bound, so that it is not trimmed after every update. */
const keptExcessMax = 1.1

/** Trims one queue as soon as it keeps too many bytes. What is too old is left to the sweep. */
export class KeptTrimmer {
  readonly #queue: KeptQueue
  readonly #retention: () => Retention
  #isTrimming = false

  constructor(queue: KeptQueue, retention: () => Retention) {
    this.#queue = queue
    this.#retention = retention
  }

  /** Call this when updates that are kept have been written. */
  mayExceed(): void {
    const { id, shard } = this.#queue
    const { bytes } = this.#retention()
    if (this.#isTrimming || shard.kept.of(id).bytes <= bytes * keptExcessMax) return
    this.#isTrimming = true
    trimKept(this.#queue, { leftFromMs: 0, bytes })
      // The next update tries again.
      .catch(() => undefined)
      .finally(() => {
        this.#isTrimming = false
      })
  }
}

/** One operation deletes this many runs and single updates at most, so that a group stays small. */
const trimmedPerOperationMax = 250
const trimPageBytes = 1 * mib

/**
 * Deletes what exceeds the bounds.
 *
 * @returns when the oldest that stays has left, in milliseconds of wall time; undefined if nothing stays
 * @throws STORE_UNAVAILABLE if the database cannot be read or written
 */
export async function trimKept(queue: KeptQueue, bounds: KeptBounds): Promise<number | undefined> {
  for (;;) {
    const step = await queue.shard.keptChanges.run(() => trimStep(queue, bounds))
    if (step.isDone) return step.oldestMs
  }
}

interface TrimStep {
  readonly isDone: boolean
  /** When the oldest that stays has left; undefined if nothing stays, or if it is not known yet. */
  readonly oldestMs: number | undefined
}

async function trimStep({ id: queue, shard }: KeptQueue, bounds: KeptBounds): Promise<TrimStep> {
  const kept = shard.kept.of(queue)
  if (kept.count === 0) return { isDone: true, oldestMs: undefined }
  let oldest = await oldestOf({ id: queue, shard })
  if (oldest.length === 0) {
    // What was committed can be read then.
    await shard.commit([], { waited: true })
    oldest = await oldestOf({ id: queue, shard })
  }
  const first = oldest[0]
  // Damaged records are not read, so they may have left counts behind.
  const operation =
    first === undefined
      ? { ...emptyForget(queue), ...kept }
      : excessOf(oldest, { queue, bounds, bytes: kept.bytes })
  if (operation.count === 0) return { isDone: true, oldestMs: first?.leftAtMs }
  await shard.commit([operation], { waited: true })
  return { isDone: false, oldestMs: undefined }
}

async function oldestOf({ id: queue, shard }: KeptQueue): Promise<readonly KeptPart[]> {
  const all = { queue, from: 0, to: updateIdEnd, limit: trimmedPerOperationMax }
  const [runs, singles] = await Promise.all([
    shard.readKeptRuns(all),
    shard.readLeftUpdates({ ...all, bytesMax: trimPageBytes }),
  ])
  return inOrder(runs, singles)
}

interface KeptPart {
  readonly id: number
  readonly leftAtMs: number
  readonly count: number
  readonly bytes: number
  /** The run; undefined for an update that has left alone. */
  readonly run: KeptRun | undefined
}

/** Returns both in the order of their ids, up to the end of the list that ends first. */
function inOrder(runs: readonly KeptRun[], singles: LeftUpdatesRead): readonly KeptPart[] {
  const lastRun = runs.length < trimmedPerOperationMax ? updateIdEnd : (runs.at(-1)?.from ?? 0)
  const end = Math.min(lastRun + 1, singles.next)
  const parts: KeptPart[] = [
    ...runs.map((run) => ({ ...run, id: run.from, run })),
    ...singles.updates.map(({ updateId, leftAtMs, text }) => ({
      id: updateId,
      leftAtMs,
      count: 1,
      bytes: text.length,
      run: undefined,
    })),
  ]
  return parts.filter(({ id }) => id < end).toSorted((a, b) => a.id - b.id)
}

function excessOf(
  oldest: readonly KeptPart[],
  { queue, bounds, bytes }: { queue: QueueId; bounds: KeptBounds; bytes: number },
): ForgetKeptOperation {
  const runs: KeptRun[] = []
  const updateIds: number[] = []
  let count = 0
  let freed = 0
  for (const part of oldest) {
    if (part.leftAtMs >= bounds.leftFromMs && bytes - freed <= bounds.bytes) break
    if (part.run === undefined) updateIds.push(part.id)
    else runs.push(part.run)
    count += part.count
    freed += part.bytes
  }
  return { ...emptyForget(queue), runs, updateIds, count, bytes: freed }
}

/** Returns an operation that deletes nothing. */
export function emptyForget(queue: QueueId): ForgetKeptOperation {
  return { kind: 'forgetKept', queue, runs: [], updateIds: [], count: 0, bytes: 0 }
}
