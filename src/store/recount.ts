/**
 * Counts the ids and updates of queues anew where a shard's logs were damaged, which may have cost an `s` record or
 * some updates. Once per queue, before it is loaded first; the shard's opener has all bots counted before the damage
 * is taken for dealt with, since the next start knows nothing of it (cluster/shard-opener.ts). Ids that were given out and then lost must not be given
 * again: the next id skips ahead by more than a lost log could have held.
 */
import { type QueueId, queueKey, updateIdEnd } from './keys.ts'
import { type QueueState, decodeQueueState, encodeQueueState } from './record.ts'
import type { UpdateRange, UpdatesRead } from './stored.ts'
import type { Store, StoreOperation } from './store.ts'

const pageCount = 1_000
const pageBytes = 8 * 1024 * 1024
const skippedIds = 1_000_000

const emptyState: QueueState = {
  nextId: 0,
  floor: 0,
  liveCount: 0,
  liveBytes: 0,
  idempotencyDay: 0,
  idempotencyCount: 0,
}

type ReadUpdates = (range: UpdateRange) => Promise<UpdatesRead>

export class Recounter {
  readonly #store: Store
  readonly #readUpdates: ReadUpdates
  readonly #recounted = new Set<QueueId>()

  constructor(store: Store, readUpdates: ReadUpdates) {
    this.#store = store
    this.#readUpdates = readUpdates
  }

  /** Puts the records of those right that were not counted since the damage. */
  async recount(queues: readonly QueueId[]): Promise<void> {
    const records: StoreOperation[] = []
    for (const queue of queues) {
      if (this.#recounted.has(queue)) continue
      this.#recounted.add(queue)
      const key = queueKey('s', queue)
      const [stored] = await this.#store.getMany([key])
      const before = stored === undefined ? undefined : readable(stored)
      // Loading it will tell: nothing may be made of this queue.
      if (before === 'damaged') continue
      const state = await this.#count(queue, before)
      if (state !== undefined) records.push({ type: 'put', key, value: encodeQueueState(state) })
    }
    if (records.length > 0) await this.#store.write(records, { sync: true })
  }

  async #count(queue: QueueId, state: QueueState | undefined): Promise<QueueState | undefined> {
    const before = state ?? emptyState
    let liveCount = 0
    let liveBytes = 0
    let floor: number | undefined
    let from = before.floor
    let end = from
    while (from < updateIdEnd) {
      const page = await this.#readUpdates({
        queue,
        from,
        to: updateIdEnd,
        limit: pageCount,
        bytesMax: pageBytes,
      })
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
}

function readable(value: Buffer): QueueState | 'damaged' {
  try {
    return decodeQueueState(value)
  } catch {
    return 'damaged'
  }
}
