/**
 * Recounts the ids and updates of queues after damage: all queues of a shard whose logs were damaged, which may have
 * cost `s` records or updates, and any queue whose `s` record cannot be read.
 *
 * Each queue is recounted once, before it is loaded for the first time. The shard opener has all queues recounted
 * before it marks the damage as handled, because the next start no longer sees it (open-recounted.ts). Ids that
 * were assigned and then lost must not be assigned again, so the next id skips ahead by more than a lost log could
 * have held.
 */
import { kinds } from '../kinds.ts'
import { type QueueId, updateIdEnd } from '../records/record-keys.ts'
import { mib, updateIdFirstMax } from '../../kit/limits.ts'
import type { IdMark } from '../id-mark.ts'
import {
  type CountedKept,
  keptOf,
  type KeptReader,
  keptStateRecord,
  recountPageUpdates,
} from './kept-counts.ts'
import {
  decodeKeptState,
  decodeQueueState,
  emptyQueueState,
  encodeQueueState,
  type QueueState,
} from '../records/record.ts'
import type { IdRange, UpdatesRead } from '../records/stored-records.ts'
import type { Store, StoreEntry, StoreOperation } from '../../store/store.ts'

/** The shard whose queues are counted. */
interface CountedShard extends KeptReader {
  readUpdates(range: IdRange): Promise<UpdatesRead>
}

/** One read of a recount returns at most this many bytes, all of them in memory: two of the largest getUpdates responses. */
const recountPageBytes = 8 * mib
/**
 * A recount skips this many ids, more than a lost log can have held: LevelDB writes 4 MiB to a log, and an update takes
 * over 40 bytes there.
 */
export const recountSkippedIds = 1_000_000

/** Recounts each queue of one shard once. A recount that failed is repeated by the next call. */
export class Recounter {
  readonly #shard: CountedShard
  readonly #store: Store
  readonly #idMark: IdMark | undefined
  readonly #write: (operations: readonly StoreOperation[]) => Promise<void>
  /** The recount of each queue, in progress or done. */
  readonly #counts = new Map<QueueId, Promise<void>>()

  /**
   * @param idMark - bounds the ids of the shard; undefined in tests and during a repair
   * @param write - resolves when the operations survive a power loss
   */
  constructor(
    shard: CountedShard,
    store: Store,
    idMark: IdMark | undefined,
    write: (operations: readonly StoreOperation[]) => Promise<void>,
  ) {
    this.#shard = shard
    this.#store = store
    this.#idMark = idMark
    this.#write = write
  }

  /**
   * Recounts those of `queues` that were not recounted yet, writes their `s` records, and waits for recounts that
   * other callers have started.
   *
   * @throws what reading or writing the database throws.
   */
  async recount(queues: readonly QueueId[]): Promise<void> {
    const missing = queues.filter((queue) => !this.#counts.has(queue))
    if (missing.length > 0) {
      const counting = this.#countAll(missing)
      for (const queue of missing) this.#counts.set(queue, counting)
      counting.catch(() => {
        for (const queue of missing) this.#counts.delete(queue)
      })
    }
    const counts = new Set<Promise<void>>()
    for (const queue of queues) {
      const count = this.#counts.get(queue)
      if (count !== undefined) counts.add(count)
    }
    await Promise.all(counts)
  }

  async #countAll(queues: readonly QueueId[]): Promise<void> {
    const records: StoreOperation[] = []
    let highest = 0
    for (const queue of queues) {
      const counted = await this.#countQueue(queue)
      highest = Math.max(highest, counted.nextId)
      records.push(...counted.records)
    }
    if (records.length === 0) return
    await this.#idMark?.reserve(highest)
    await this.#write(records)
  }

  /** Returns what is to be written of a queue, and its next id. */
  async #countQueue(
    queue: QueueId,
  ): Promise<{ readonly records: readonly StoreOperation[]; readonly nextId: number }> {
    const [key, keptKey] = [kinds.state.key(queue), kinds.keptState.key(queue)]
    const [value, keptValue] = await this.#store.getMany([key, keptKey])
    const stored = value && readable({ key, value }, decodeQueueState)
    const known = keptValue && readable({ key: keptKey, value: keptValue }, decodeKeptState)
    const counted = await keptOf(this.#shard, queue)
    // Each of the three records tells what has left, so that no damage of two of them makes that pending again.
    const end = Math.max(counted.end, ifRead(known)?.end ?? 0, ifRead(stored)?.floor ?? 0)
    const kept = { ...counted, end }
    const { state, dead } = await this.#count(queue, { stored, kept })
    const records: StoreOperation[] = dead.map((updateId) => ({
      type: 'del',
      key: kinds.update.key(queue, updateId),
    }))
    if (known !== undefined || kept.count > 0) records.push(keptStateRecord(keptKey, kept))
    if (state !== undefined) {
      records.push({ type: 'put', key, value: encodeQueueState(key, state) })
    }
    return { records, nextId: state?.nextId ?? 0 }
  }

  async #count(
    queue: QueueId,
    { stored, kept }: { readonly stored: QueueState | 'damaged' | undefined; kept: CountedKept },
  ): Promise<Counted> {
    const { dead, ...counted } = await this.#read(queue, kept.end)
    const isUsed = counted.floor !== undefined || kept.end > 0
    if (stored === undefined && !isUsed) return { state: undefined, dead }
    const base = ifRead(stored) ?? emptyQueueState(0)
    const known = Math.max(base.nextId, counted.end, kept.next)
    const nextId = Math.max(known + recountSkippedIds, this.#leastId(stored === 'damaged'))
    const { liveCount, liveBytes, floor = nextId } = counted
    return { state: { ...base, nextId, floor, liveCount, liveBytes }, dead }
  }

  /**
   * Returns the lowest next id. If the `s` record is lost, the ids that the queue used are unknown, but all ids of
   * the shard are below the mark.
   */
  #leastId(isLost: boolean): number {
    const idMark = this.#idMark
    return isLost ? (idMark?.below ?? updateIdFirstMax + recountSkippedIds) : (idMark?.from ?? 0)
  }

  async #read(queue: QueueId, first: number) {
    let liveCount = 0
    let liveBytes = 0
    let floor: number | undefined
    let from = first
    let end = first
    const dead: number[] = []
    while (from < updateIdEnd) {
      const page = await this.#shard.readUpdates({ ...pageOf(queue), from })
      const left = await this.#leftIds({ queue, from, to: page.next })
      for (const { updateId, text } of page.updates) {
        if (left.has(updateId)) {
          dead.push(updateId)
          continue
        }
        liveCount += 1
        liveBytes += text.length
        floor ??= updateId
      }
      from = page.next
      if (from < updateIdEnd) end = from
    }
    return { liveCount, liveBytes, floor, end, dead }
  }

  /** Returns the ids of updates that have left alone, and are kept: only their deletion may have been lost. */
  async #leftIds({ queue, from, to }: Pick<IdRange, 'queue' | 'from' | 'to'>) {
    const ids = new Set<number>()
    for (let next = from; next < to; ) {
      const page = await this.#shard.readLeftUpdates({ ...pageOf(queue), from: next, to })
      for (const { updateId } of page.updates) ids.add(updateId)
      next = page.next
    }
    return ids
  }
}

interface Counted {
  /** Undefined if the queue has never been used. */
  readonly state: QueueState | undefined
  /** Updates that have left, and whose records are still there. */
  readonly dead: readonly number[]
}

function pageOf(queue: QueueId): Omit<IdRange, 'from'> {
  return { queue, to: updateIdEnd, limit: recountPageUpdates, bytesMax: recountPageBytes }
}

function readable<T>(entry: StoreEntry, decode: (entry: StoreEntry) => T): T | 'damaged' {
  try {
    return decode(entry)
  } catch {
    return 'damaged'
  }
}

function ifRead<T extends object>(read: T | 'damaged' | undefined): T | undefined {
  return read === 'damaged' ? undefined : read
}
