/**
 * Recounts the ids and updates of queues after damage: all queues of a shard whose logs were damaged, which may have
 * cost `s` records or updates, and any queue whose `s` record cannot be read.
 *
 * Each queue is recounted once, before it is loaded for the first time. The shard opener has all queues recounted
 * before it marks the damage as handled, because the next start no longer sees it (open-recounted.ts). Ids that
 * were assigned and then lost must not be assigned again, so the next id skips ahead by more than a lost log could
 * have held.
 */
import { type QueueId, queueKey, updateIdEnd } from './record-keys.ts'
import { mib, updateIdFirstMax } from '../limits.ts'
import { recountPageUpdates } from './limits.ts'
import type { IdMark } from './id-mark.ts'
import { keptCountsRecord, keptOf, type KeptReader } from './kept-counts.ts'
import { decodeQueueState, emptyQueueState, encodeQueueState, type QueueState } from './record.ts'
import type { IdRange, UpdatesRead } from './stored.ts'
import type { Store, StoreEntry, StoreOperation } from '../store/store.ts'

/** What `Recounter` needs from its shard. */
export interface RecounterOptions extends KeptReader {
  readonly store: Store
  readUpdates(range: IdRange): Promise<UpdatesRead>
  /** Bounds the ids of the shard. Undefined in tests and during a repair. */
  readonly idMark?: IdMark | undefined
  /** Resolves when the operations survive a power loss. */
  write(operations: readonly StoreOperation[]): Promise<void>
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
  readonly #options: RecounterOptions
  /** The recount of each queue, in progress or done. */
  readonly #counts = new Map<QueueId, Promise<void>>()

  constructor(options: RecounterOptions) {
    this.#options = options
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
      const key = queueKey('s', queue)
      const keptKey = queueKey('n', queue)
      const [value, known] = await this.#options.store.getMany([key, keptKey])
      const before = value === undefined ? undefined : readable({ key, value })
      const kept = await keptOf(this.#options, queue)
      if (known !== undefined || kept.count > 0) records.push(keptCountsRecord(keptKey, kept))
      const state = await this.#count(queue, before)
      if (state !== undefined) {
        highest = Math.max(highest, state.nextId)
        records.push({ type: 'put', key, value: encodeQueueState(key, state) })
      }
    }
    if (records.length === 0) return
    await this.#options.idMark?.reserve(highest)
    await this.#options.write(records)
  }

  async #count(
    queue: QueueId,
    stored: QueueState | 'damaged' | undefined,
  ): Promise<QueueState | undefined> {
    const isLost = stored === 'damaged'
    const before = isLost ? undefined : stored
    // What a run keeps is below the floor.
    const last = { queue, from: 0, to: updateIdEnd, limit: 1 }
    const [run] = await this.#options.readKeptRuns(last, { reverse: true })
    const counted = await this.#read(queue, Math.max(before?.floor ?? 0, run?.end ?? 0))
    const isUsed = counted.floor !== undefined || run !== undefined
    if (stored === undefined && !isUsed) return undefined
    const base = before ?? emptyQueueState(0)
    const known = Math.max(base.nextId, counted.end)
    const nextId = Math.max(known + recountSkippedIds, this.#leastId(isLost))
    const { liveCount, liveBytes, floor = nextId } = counted
    return { ...base, nextId, floor, liveCount, liveBytes }
  }

  /**
   * Returns the lowest next id. If the `s` record is lost, the ids that the queue used are unknown, but all ids of
   * the shard are below the mark.
   */
  #leastId(isLost: boolean): number {
    const { idMark } = this.#options
    return isLost ? (idMark?.below ?? updateIdFirstMax + recountSkippedIds) : (idMark?.from ?? 0)
  }

  async #read(queue: QueueId, first: number) {
    let liveCount = 0
    let liveBytes = 0
    let floor: number | undefined
    let from = first
    let end = first
    while (from < updateIdEnd) {
      const page = await this.#options.readUpdates({
        queue,
        from,
        to: updateIdEnd,
        limit: recountPageUpdates,
        bytesMax: recountPageBytes,
      })
      for (const update of page.updates) liveBytes += update.text.length
      liveCount += page.updates.length
      floor ??= page.updates[0]?.updateId
      from = page.next
      if (from < updateIdEnd) end = from
    }
    return { liveCount, liveBytes, floor, end }
  }
}

function readable(entry: StoreEntry): QueueState | 'damaged' {
  try {
    return decodeQueueState(entry)
  } catch {
    return 'damaged'
  }
}
