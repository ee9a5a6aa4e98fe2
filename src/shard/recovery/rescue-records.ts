/**
 * Copies the records of a damaged shard into a new database, each key with its newest value.
 *
 *   files of the shard --> staging, ordered by key, then newest first --> the first of each key --> the new database
 *
 * The files hold several versions of a key in no common order. Without a MANIFEST, only the sequence numbers show
 * which version is the newest. The staging database sorts them on disk, so memory does not limit the size of a shard.
 * In return, the disk temporarily holds a second copy.
 *
 *     staging key    length of the key (2) | key | complement of the sequence (8)     all big-endian
 *     staging value  1 for a value, 0 for a deletion | the value
 */
import type { Clock } from '../../kit/clock.ts'
import { kindOf, kinds } from '../kinds.ts'
import type { QueueId } from '../records/record-keys.ts'
import { decodeKey, decodeUpdate, encodeMark } from '../records/record.ts'
import { queueOfRecord, shardRecords } from '../shard-records.ts'
import type { Store, StoreEntry, StoreOperation } from '../../store/store.ts'
import type { ReadAt, RecordVersion, FilesDamage } from '../../leveldb-files/files-part.ts'
import type { StoreFiles } from '../../store/store-files.ts'
import { mib } from '../../kit/limits.ts'

export interface RescueOptions {
  readonly clock: Clock
  readonly files: StoreFiles
  /** Returns whether a queue belongs to this shard. */
  readonly isOwn: (queue: QueueId) => boolean
  readonly onDamage: (damage: FilesDamage) => void
  readonly onProgress: (step: 'reading' | 'writing', done: number, of: number) => void
  readonly readAt?: ReadAt | undefined
}

/** What was found in the files of a shard. */
export interface Rescued {
  /** Number of records in the new database. */
  readonly records: number
  /**
   * Every queue of which any record was found, with the largest update id in any of its records, including deleted
   * ones.
   */
  readonly lastIds: ReadonlyMap<QueueId, number>
  /** Number of records of queues that belong to other shards. They were left out. */
  readonly foreignRecords: number
  /** Whether there may have been more records than were found. */
  readonly mayLose: boolean
}

/**
 * Reads all records into the staging database and copies the newest of each key to the target. Both are open and empty.
 *
 * @param directory - of the damaged shard
 * @throws the errors of reading the files and writing the databases, for example because the disk is full.
 */
export async function rescueRecords(
  directory: string,
  staging: Store,
  target: Store,
  options: RescueOptions,
): Promise<Rescued> {
  const staged = await stage(directory, staging, options)
  const records = await writeNewest(staging, target, (done) =>
    options.onProgress('writing', done, staged.entries),
  )
  return { ...staged, records }
}

interface Staged extends Omit<Rescued, 'records'> {
  readonly entries: number
}

async function stage(directory: string, staging: Store, options: RescueOptions): Promise<Staged> {
  const { clock, readAt } = options
  const lastIds = new Map<QueueId, number>()
  let foreignRecords = 0
  let mayLose = false
  let entries = 0
  const batch = new Batch(staging)
  const onProgress = (done: number, of: number): void => options.onProgress('reading', done, of)
  for await (const part of options.files.read({
    records: shardRecords,
    directory,
    clock,
    readAt,
    onProgress,
  })) {
    if (part.kind === 'damage') {
      mayLose ||= part.mayLose
      options.onDamage(part)
      continue
    }
    for (const entry of part.entries) {
      const queue = queueOfRecord(entry.key)
      if (queue !== undefined && !options.isOwn(queue)) {
        foreignRecords++
        // They replace own ones.
        mayLose = true
        continue
      }
      entries++
      // The copy of a damaged record belongs to no queue.
      if (queue !== undefined) {
        lastIds.set(queue, Math.max(lastIds.get(queue) ?? 0, updateIdIn(entry)))
      }
      await batch.add({ type: 'put', key: stagingKey(entry), value: stagingValue(entry) })
    }
  }
  await batch.flush()
  return { entries, lastIds, foreignRecords, mayLose }
}

/** A repair writes this many records in one batch; a few batches are in memory. */
const rescueBatchRecords = 1_000
/** A repair writes a batch when it has this many bytes, so that large updates do not fill the memory. */
const rescueBatchBytes = mib

async function writeNewest(
  staging: Store,
  target: Store,
  onProgress: (done: number) => void,
): Promise<number> {
  const batch = new Batch(target)
  let from = Buffer.from([0])
  let keyBefore: Buffer | undefined
  const written = new Set<string>()
  let records = 0
  let read = 0
  for (;;) {
    const page = await staging.range({
      gte: from,
      lt: Buffer.from([255]),
      limit: rescueBatchRecords,
      valueBytesMax: rescueBatchBytes,
    })
    const last = page.at(-1)
    if (last === undefined) break
    for (const { key: stagedKey, value } of page) {
      const key = stagedKey.subarray(2, stagedKey.length - 8)
      if (keyBefore !== undefined && keyBefore.equals(key)) continue
      keyBefore = key
      if (value[0] === 0) continue
      records++
      await batch.add({ type: 'put', key, value: value.subarray(1) })
      const expiry = expiryKeyOf({ key, value: value.subarray(1) })
      if (expiry === undefined || written.has(expiry.toString('latin1'))) continue
      if (written.size >= rescueBatchRecords) written.clear()
      written.add(expiry.toString('latin1'))
      await batch.add({ type: 'put', key: expiry, value: encodeMark(expiry) })
    }
    from = Buffer.concat([last.key, Buffer.from([0])])
    read += page.length
    onProgress(read)
  }
  await batch.flush()
  return records
}

/** Returns the `x` key of an update, because an update whose `x` record was lost would never expire. */
function expiryKeyOf(entry: StoreEntry): Buffer | undefined {
  const queue = queueOfRecord(entry.key)
  if (entry.key[0] !== kinds.update.prefix || queue === undefined) return undefined
  return kinds.expiry.key(Math.ceil(decodeUpdate(entry).expiresAtS / 60), queue)
}

function stagingKey({ key, sequence }: RecordVersion): Buffer {
  const staged = Buffer.allocUnsafe(2 + key.length + 8)
  staged.writeUInt16BE(key.length, 0)
  staged.set(key, 2)
  staged.writeUInt32BE(2 ** 32 - 1 - Math.floor(sequence / 2 ** 32), 2 + key.length)
  staged.writeUInt32BE(2 ** 32 - 1 - (sequence % 2 ** 32), 6 + key.length)
  return staged
}

function stagingValue({ isDeletion, value }: RecordVersion): Buffer {
  return Buffer.concat([Buffer.from([isDeletion ? 0 : 1]), value])
}

/** Returns the update id that a record mentions, or 0 if it mentions none. */
function updateIdIn({ key, value, isDeletion }: RecordVersion): number {
  const kind = kindOf(key)
  if (kind === kinds.idempotencyKey) return isDeletion ? 0 : decodeKey({ key, value }).updateId
  const updateId = kind?.fields(key)['updateId']
  return typeof updateId === 'number' ? updateId : 0
}

/** Collects operations so that they are written together, which is faster. Nothing is synced. */
class Batch {
  readonly #store: Store
  #operations: StoreOperation[] = []
  #bytes = 0

  constructor(store: Store) {
    this.#store = store
  }

  async add(operation: StoreOperation & { readonly type: 'put' }): Promise<void> {
    this.#operations.push(operation)
    this.#bytes += operation.value.length
    const isFull = this.#operations.length >= rescueBatchRecords || this.#bytes >= rescueBatchBytes
    if (isFull) await this.flush()
  }

  async flush(): Promise<void> {
    const operations = this.#operations
    this.#operations = []
    this.#bytes = 0
    if (operations.length > 0) await this.#store.write(operations, { sync: false })
  }
}
