/**
 * Takes payloads that were deleted out of the files of a shard: out of those of the store, and out of the copies of damaged records.
 *
 * The store needs deletions of keys that no record has or ever gets. An id of a queue below its next one that has neither a `u` nor a
 * `v` nor a `d` record has none any more: an update that leaves gets its new record in the group that deletes the old one.
 * Whatever was erased has such an id, or a far higher one of an earlier numbering. The attempts of a queue have one key, which a later
 * version of them may have: the store gets deletions of the keys just before and after it, which are no keys of records.
 */
import type { KeyRange, PurgeOptions, StoreEntry, StoreOperation } from '../store/store.ts'
import { type AnyKind, copyKey, isById, kinds, kindsOfUpdate, payloadKinds } from './kinds.ts'
import * as keys from './records/record-keys.ts'
import type { QueueId } from './records/record-keys.ts'

/** The parts of a shard that are used. */
export interface PurgedShard {
  purge(options: PurgeOptions): Promise<readonly string[]>
  range(range: {
    readonly gte: Buffer
    readonly lt: Buffer
    readonly limit: number
    readonly keysOnly: true
  }): Promise<readonly StoreEntry[]>
  /** Writes beside the groups, not synced. */
  write(operations: readonly StoreOperation[]): Promise<void>
  /** Returns the next id of a queue as it was committed, or is about to be. Its bot may have left memory meanwhile. */
  nextIdOf(queue: QueueId): Promise<number>
  /** Resolves when everything committed so far can be read. */
  settled(): Promise<void>
}

/** An earlier numbering may have left ids that are higher than the next one by this many: they are not used again soon. */
const idsAhead = 1_000_000
/** While a mark is looked for and written, fewer ids than this are used. Chosen: a second of pushes to one queue. */
const idsUsedMeanwhile = 100_000
/** One read looks for so many keys: it is short, and most tables have an unused id at their beginning. */
const keysPerRead = 1_000

/**
 * Deletes the copies of damaged records of queues that may have payloads.
 *
 * @returns the keys of the records that were damaged
 */
export async function deleteCopies(
  shard: Pick<PurgedShard, 'range' | 'write'>,
  queues: readonly QueueId[],
): Promise<readonly Buffer[]> {
  const found: Buffer[] = []
  for (const { first, last } of copiesOf(queues)) {
    for (let gte = first; ; ) {
      const lt = keys.keyAfter(last)
      const entries = await shard.range({ gte, lt, limit: keysPerRead, keysOnly: true })
      const end = entries.at(-1)
      if (end === undefined) break
      await shard.write(deletionsOf(entries.map(({ key }) => key)))
      found.push(...entries.map(({ key }) => key.subarray(1)))
      gte = keys.keyAfter(end.key)
    }
  }
  return found
}

/** Has the store purge the payloads of queues. Returns the paths of the copies of files that were removed. */
export async function purgePayloads(
  shard: PurgedShard,
  queues: readonly QueueId[],
): Promise<readonly string[]> {
  const payloads: KeyRange[] = []
  const earlier: KeyRange[] = []
  for (const queue of queues) {
    const nextId = await shard.nextIdOf(queue)
    const from = nextId + idsAhead
    for (const kind of payloadKinds) {
      payloads.push(payloadKeys(kind, queue, { from: 0, last: Math.max(nextId - 1, 0) }))
      if (isById(kind) && from < keys.updateIdEnd)
        earlier.push(payloadKeys(kind, queue, { from, last: keys.updateIdEnd - 1 }))
    }
  }
  // Then every id up to the last one has its record, if it ever gets one.
  await shard.settled()
  // So that no table has but one key, for which no other one could be marked.
  await shard.write(payloads.flatMap(({ first }) => deletionOf(first) ?? []))
  return shard.purge({
    ranges: [...payloads, ...earlier, ...copiesOf(queues)],
    mark: async (range) => {
      const unused = await unusedKeys(shard, range)
      // By one write, so that they are in one table, which what is between them overlaps.
      await shard.write(deletionsOf(unused))
      return unused.length > 0
    },
  })
}

/** Ids begin at 1, so the first key of updates is that of none. */
function deletionOf(first: Buffer): StoreOperation | undefined {
  return first.length === kinds.update.keyBytes ? { type: 'del', key: first } : undefined
}

function copiesOf(queues: readonly QueueId[]): readonly KeyRange[] {
  return queues.flatMap((queue) =>
    payloadKinds.map((kind) => {
      const { first, last } = payloadKeys(kind, queue, { from: 0, last: keys.updateIdEnd })
      return { first: copyKey(first), last: copyKey(last) }
    }),
  )
}

function payloadKeys(
  kind: AnyKind,
  queue: QueueId,
  ids: { readonly from: number; readonly last: number },
): KeyRange {
  if (isById(kind)) return { first: kind.key(queue, ids.from), last: kind.key(queue, ids.last) }
  return { first: kind.key(queue), last: kind.key(queue) }
}

async function unusedKeys(shard: PurgedShard, range: KeyRange): Promise<readonly Buffer[]> {
  const { first } = range
  if (first.length !== kinds.update.keyBytes) return [first.subarray(0, -1), keys.keyAfter(first)]
  const key = await unusedId(shard, range)
  return key === undefined ? [] : [key]
}

/** Returns the key of the first id of a range that no record has. */
async function unusedId(
  shard: PurgedShard,
  { first, last }: KeyRange,
): Promise<Buffer | undefined> {
  const queue = keys.queueIdOfKey(first)
  const [firstId, lastId] = [keys.updateIdOfKey(first), keys.updateIdOfKey(last)]
  const nextId = await shard.nextIdOf(queue)
  // The ids of a new numbering are lower, and not used yet.
  if (nextId <= lastId && firstId < nextId + idsUsedMeanwhile) return undefined
  for (let from = firstId; from <= lastId; from += keysPerRead) {
    const to = Math.min(from + keysPerRead, lastId + 1)
    const used = new Set<number>()
    // In this order, because an update that leaves meanwhile is then found under its later key.
    for (const kind of kindsOfUpdate) {
      const page = { gte: kind.key(queue, from), lt: kind.key(queue, to), limit: keysPerRead }
      const entries = await shard.range({ ...page, keysOnly: true })
      for (const entry of entries) used.add(keys.updateIdOfKey(entry.key))
    }
    for (let id = from; id < to; id++) {
      if (!used.has(id)) return withId(first, id)
    }
  }
  return undefined
}

/** Returns the key of an update with another id. */
function withId(key: Buffer, id: number): Buffer {
  const changed = Buffer.from(key)
  changed.writeUInt32BE(id, kinds.update.keyBytes - 4)
  return changed
}

export function deletionsOf(found: readonly Buffer[]): StoreOperation[] {
  return found.map((key) => ({ type: 'del', key }))
}
