/**
 * How many updates that have left the queues of a shard are kept, and their bytes. The counts of a queue are a record (`n`), which
 * is written in the groups that change what the queue keeps, and also says where its last run ends.
 *
 * Counts are known here once they were read: by the loading of their queue, or by the look at all records with which the
 * first sweep begins. A sweep notes here what it has found, so that it does not read the queue again before something of it
 * is due.
 */
import type { Operation } from '../operations.ts'
import { mib } from '../../kit/limits.ts'
import { kinds } from '../kinds.ts'
import { type QueueId, updateIdEnd } from '../records/record-keys.ts'
import { encodeKeptState, type KeptCounts, type KeptState } from '../records/record.ts'
import type { StoreOperation } from '../../store/store.ts'
import type { IdRange, KeptRun, LeftUpdatesRead } from '../records/stored-records.ts'

/** One read of a queue that is counted anew after damage returns this many updates. */
export const recountPageUpdates = 1_000

/** What a sweep has found out about a queue. */
export interface KeptFinding {
  /** When the oldest of what is kept has left, in milliseconds of wall time; it may have been deleted since. */
  readonly oldestMs: number
  /** When something of it is too old. */
  readonly dueMs: number
}

export class KeptCountsOfShard {
  readonly #counts = new Map<QueueId, KeptState>()
  readonly #found = new Map<QueueId, KeptFinding>()
  readonly #changed = new Set<QueueId>()
  #bytes = 0
  /** Whether all counts of the shard were read. */
  isRead = false

  /** The bytes of all updates that are kept, as far as their queues are known. */
  get bytes(): number {
    return this.#bytes
  }

  /** The queues that keep something. */
  get queues(): Iterable<QueueId> {
    return this.#counts.keys()
  }

  of(queue: QueueId): Readonly<KeptState> {
    return this.#counts.get(queue) ?? nothing
  }

  /** Whether what a queue keeps is known here; if not, it keeps nothing, or was not read. */
  has(queue: QueueId): boolean {
    return this.#counts.has(queue)
  }

  /** What a sweep has found; undefined if none has looked since the queue got its settings. */
  findingOf(queue: QueueId): KeptFinding | undefined {
    return this.#found.get(queue)
  }

  note(queue: QueueId, finding: KeptFinding): void {
    if (this.#counts.has(queue)) this.#found.set(queue, finding)
  }

  /** Takes over stored counts, unless those in memory are newer. */
  read(queue: QueueId, counts: Readonly<KeptState>): void {
    if (this.#counts.has(queue)) return
    this.#counts.set(queue, { ...counts })
    this.#bytes += counts.bytes
  }

  forgetAll(): void {
    this.#counts.clear()
    this.#found.clear()
    this.#changed.clear()
    this.#bytes = 0
    this.isRead = false
  }

  fold(operation: Operation): void {
    if (operation.kind === 'forgetKept') {
      this.#add(operation.queue, { count: -operation.count, bytes: -operation.bytes })
    } else if (operation.kind === 'delete' && operation.kept !== undefined) {
      const bytes = operation.kept.reduce((sum, { text }) => sum + text.length, 0)
      this.#add(operation.queue, { count: operation.kept.length, bytes })
    } else if (
      (operation.kind === 'confirm' || operation.kind === 'drop') &&
      operation.keptSinceMs !== undefined
    ) {
      const { queue, removedCount: count, removedBytes: bytes, floor: end } = operation
      this.#add(queue, { count, bytes, end })
    } else if (operation.kind === 'settings') {
      this.#found.delete(operation.queue)
    }
  }

  /** Returns the records of the counts that have changed since the last call. */
  changed(): StoreOperation[] {
    const records: StoreOperation[] = []
    for (const queue of this.#changed) {
      const counts = this.of(queue)
      const key = kinds.keptState.key(queue)
      records.push(keptStateRecord(key, counts))
      if (counts.count === 0) {
        this.#bytes -= counts.bytes
        this.#counts.delete(queue)
        this.#found.delete(queue)
      }
    }
    this.#changed.clear()
    return records
  }

  /** Damaged records are not counted, so what is forgotten may be more than is known. */
  #add(queue: QueueId, { count, bytes, end = 0 }: KeptCounts & { end?: number }): void {
    const before = this.of(queue)
    const after = {
      count: Math.max(0, before.count + count),
      bytes: Math.max(0, before.bytes + bytes),
      end: Math.max(before.end, end),
    }
    this.#bytes += after.bytes - before.bytes
    this.#counts.set(queue, after)
    this.#changed.add(queue)
  }
}

/** Reads what a queue keeps. */
export interface KeptReader {
  readKeptRuns(range: IdRange, options?: { readonly reverse: boolean }): Promise<readonly KeptRun[]>
  readLeftUpdates(range: IdRange): Promise<LeftUpdatesRead>
}

/** One read of a count returns at most this many bytes of texts. */
const countedPageBytes = 8 * mib

/** What a queue keeps according to its records. */
export interface CountedKept extends Readonly<KeptState> {
  /** The first id after all that is kept. */
  readonly next: number
}

/** Counts what a queue keeps of updates that have left it. */
export async function keptOf(shard: KeptReader, queue: QueueId): Promise<CountedKept> {
  const kept = { count: 0, bytes: 0, end: 0 }
  const all = { queue, to: updateIdEnd, limit: recountPageUpdates, bytesMax: countedPageBytes }
  for (let from = 0; from < updateIdEnd; ) {
    const runs = await shard.readKeptRuns({ ...all, from })
    for (const { count, bytes, end } of runs) {
      kept.count += count
      kept.bytes += bytes
      kept.end = end
    }
    const last = runs.at(-1)
    from = last === undefined ? updateIdEnd : last.from + 1
  }
  let next = kept.end
  for (let from = 0; from < updateIdEnd; ) {
    const read = await shard.readLeftUpdates({ ...all, from })
    kept.count += read.updates.length
    for (const { text } of read.updates) kept.bytes += text.length
    from = read.next
    if (from < updateIdEnd) next = Math.max(next, from)
  }
  return { ...kept, next }
}

/** Returns the record of what a queue keeps, which one that keeps nothing does not have. */
export function keptStateRecord(key: Buffer, kept: Readonly<KeptState>): StoreOperation {
  if (kept.count === 0) return { type: 'del', key }
  return { type: 'put', key, value: encodeKeptState(key, kept) }
}

const nothing: Readonly<KeptState> = { count: 0, bytes: 0, end: 0 }
