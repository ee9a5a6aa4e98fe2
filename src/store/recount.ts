/**
 * Counts the ids and updates of queues anew where a shard's logs were damaged, which may have cost an `s` record or
 * some updates. Once per queue, before it is loaded first. Ids that were given out and then lost must not be given
 * again: the next id skips ahead by more than a lost log could have held.
 */
import { type QueueId, queueKey } from './keys.ts'
import { type QueueState, decodeQueueState, encodeQueueState } from './record.ts'
import type { UpdateRange, UpdatesRead } from './shard.ts'
import type { Store } from './store.ts'

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
    for (const queue of queues) {
      if (this.#recounted.has(queue)) continue
      this.#recounted.add(queue)
      const key = queueKey('s', queue)
      const [stored] = await this.#store.getMany([key])
      const state = await this.#count(queue, stored && decodeQueueState(stored))
      if (state === undefined) continue
      await this.#store.write([{ type: 'put', key, value: encodeQueueState(state) }], {
        sync: true,
      })
    }
  }

  async #count(queue: QueueId, state: QueueState | undefined): Promise<QueueState | undefined> {
    const before = state ?? emptyState
    let liveCount = 0
    let liveBytes = 0
    let floor: number | undefined
    let from = before.floor
    let end = from
    while (from < updateIdEnd) {
      const page = await this.#readUpdates({ queue, from, to: updateIdEnd, limit: pageCount })
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
