/**
 * How many updates that have left the queues of a shard are kept, and their bytes. The counts of a queue are a record (`n`), which
 * is written in the groups that change what the queue keeps.
 *
 * Counts are known here once they were read: by the loading of their queue, or by the look at all records with which the
 * first sweep begins.
 */
import type { Operation } from './operations.ts'
import { queueKey, type QueueId } from './record-keys.ts'
import { encodeKeptCounts, type KeptCounts } from './record.ts'
import type { StoreOperation } from '../store/store.ts'

export class KeptCountsOfShard {
  readonly #counts = new Map<QueueId, KeptCounts>()
  readonly #changed = new Set<QueueId>()
  #bytes = 0

  /** The bytes of all updates that are kept, as far as their queues are known. */
  get bytes(): number {
    return this.#bytes
  }

  /** The queues that keep something. */
  get queues(): Iterable<QueueId> {
    return this.#counts.keys()
  }

  of(queue: QueueId): Readonly<KeptCounts> {
    return this.#counts.get(queue) ?? nothing
  }

  /** Takes over stored counts, unless those in memory are newer. */
  read(queue: QueueId, counts: Readonly<KeptCounts>): void {
    if (this.#counts.has(queue)) return
    this.#counts.set(queue, { ...counts })
    this.#bytes += counts.bytes
  }

  forgetAll(): void {
    this.#counts.clear()
    this.#changed.clear()
    this.#bytes = 0
  }

  fold(operation: Operation): void {
    if (operation.kind === 'forgetKept') {
      this.#add(operation.queue, -operation.count, -operation.bytes)
    } else if (operation.kind === 'delete' && operation.kept !== undefined) {
      const bytes = operation.kept.reduce((sum, { text }) => sum + text.length, 0)
      this.#add(operation.queue, operation.kept.length, bytes)
    } else if (
      (operation.kind === 'confirm' || operation.kind === 'drop') &&
      operation.keptSinceMs !== undefined
    ) {
      this.#add(operation.queue, operation.removedCount, operation.removedBytes)
    }
  }

  /** Returns the records of the counts that have changed since the last call. */
  changed(): StoreOperation[] {
    const records: StoreOperation[] = []
    for (const queue of this.#changed) {
      const counts = this.of(queue)
      const key = queueKey('n', queue)
      if (counts.count > 0) records.push({ type: 'put', key, value: encodeKeptCounts(key, counts) })
      else records.push({ type: 'del', key })
    }
    this.#changed.clear()
    return records
  }

  /** Damaged counts may be too low, so what is forgotten may be more than is known. */
  #add(queue: QueueId, count: number, bytes: number): void {
    const before = this.of(queue)
    const after = {
      count: Math.max(0, before.count + count),
      bytes: Math.max(0, before.bytes + bytes),
    }
    this.#bytes += after.bytes - before.bytes
    this.#counts.set(queue, after)
    this.#changed.add(queue)
  }
}

const nothing: Readonly<KeptCounts> = { count: 0, bytes: 0 }
