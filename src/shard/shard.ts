/**
 * One shard: the queues and settings of its bots in one database. `commit` is the only way to make a durable change.
 *
 *   commit --> shard-codec.ts folds and encodes --> group-commit.ts --> the database --> onCommitted
 *
 * After a failed write the shard writes nothing until shard-recovery.ts has reopened the database and discarded all
 * state in memory.
 */
import type { Clock } from '../kit/clock.ts'
import { PostboteError } from '../kit/errors.ts'
import { endlessLease, type Lease } from '../kit/lease.ts'
import { GroupCommit } from './group-commit.ts'
import type { IdMark } from './id-mark.ts'
import { IdempotencyKeys } from './idempotency/idempotency-keys.ts'
import { type KindById, isUpdateOf, kinds, kindsOfUpdate } from './kinds.ts'
import * as keys from './records/record-keys.ts'
import type { QueueId } from './records/record-keys.ts'
import { operationCost } from './operations.ts'
import type { AdvanceOperation, Operation } from './operations.ts'
import { keptOf, keptStateRecord, type KeptCountsOfShard } from './recovery/kept-counts.ts'
import { deleteCopies, deletionsOf, purgePayloads } from './payload-purge.ts'
import { Reclaimer } from './reclaimer.ts'
import { Recounter } from './recovery/recount.ts'
import type { QueueState } from './records/record.ts'
import { DamagedRecords } from './recovery/damaged-records.ts'
import { ShardCodec } from './records/shard-codec.ts'
import { ShardLists } from './shard-lists.ts'
import { ShardRecovery, type ShardRecoveryOptions, type ShardStatus } from './shard-recovery.ts'
import type { Store, StoreEntry, StoreOperation, StoreSnapshot } from '../store/store.ts'
import type {
  ExpiryBucket,
  DeadLettersRead,
  ListedKind,
  StoredRecord,
  QueuesPage,
  KeptRun,
  LeftUpdatesRead,
  StoredQueue,
  IdRange,
  UpdatesRead,
} from './records/stored-records.ts'
import { countedPerReadMax } from '../kit/limits.ts'
import { Mutex } from '../kit/mutex.ts'

/** Options of a shard. `Shard.open` opens the `store`. */
export interface ShardOptions extends ShardRecoveryOptions {
  /** Called for every committed group, in commit order, before the promises of its callers resolve. */
  onCommitted(operations: readonly Operation[]): void
  /** If absent, no other server can serve the shard. */
  readonly lease?: Lease | undefined
  /** Called after each group that was written and synced, with the time that this took. */
  onSynced?(durationMs: number): void
  /** Called when a read has failed: a file of the shard may be damaged. */
  onReadFailed?(error: unknown): void
  /** See `DamagedRecords`. */
  readonly onDamagedRecord?: (() => void) | undefined
  /** Called when updates of a queue were acknowledged and have not left it, and are not there. */
  onMissing?(queue: QueueId, count: number): void
  /** Maximum number of idempotency keys for each queue and UTC day; the value of limits.ts by default. */
  readonly idempotencyKeysPerDayMax?: number
  /** Bounds the shard's update ids outside the database. Without it, as in tests, nothing does. */
  readonly idMark?: IdMark | undefined
}

/** Dead records are searched and deleted in batches of this size; groups are written in between. */
const leftoversPerWriteMax = 1_000

/**
 * The owner's interface to one shard. Every method that reads or writes rejects with PostboteError STORE_UNAVAILABLE
 * while the shard is closed, or if the database fails.
 */
export class Shard {
  readonly index: number
  /** What the shard stores with an end is judged by this clock: with a database, by that of the database. */
  readonly clock: Clock
  /** What is in memory may be answered and delivered while this is valid. */
  readonly lease: Lease
  readonly idempotency: IdempotencyKeys
  /** What is stored of many queues. */
  readonly lists: ShardLists
  /** Whoever reads what queues keep, and then deletes some of it, does so alone. */
  readonly keptChanges = new Mutex()
  /** Counts what damaged records told, one time after the other, so that no result is written over what is newer. */
  readonly #counting = new Mutex()
  readonly #options: ShardOptions
  readonly #store: Store
  readonly #codec: ShardCodec
  readonly #groups: GroupCommit<Operation>
  readonly #reclaimer: Reclaimer
  readonly #recovery: ShardRecovery
  /** Set if the logs were damaged, so that every queue must be recounted. */
  #recounter: Recounter | undefined
  /** The copies of damaged records that are being written. */
  #copying: Promise<unknown> = Promise.resolve()

  constructor(options: ShardOptions) {
    this.index = options.index
    this.clock = options.clock
    this.lease = options.lease ?? endlessLease
    this.#options = options
    this.#store = options.store
    const damaged = new DamagedRecords(options, (copy) => {
      // If the copy cannot be written, the shard is poisoned, and that is reported.
      const writing = this.#writeBeside([copy], { sync: false }).catch(() => undefined)
      this.#copying = Promise.all([this.#copying, writing])
    })
    this.#codec = new ShardCodec(damaged)
    this.lists = new ShardLists(this.#codec, (range) => this.#read(() => this.#store.range(range)))
    this.#reclaimer = new Reclaimer(options.clock, (operations) =>
      this.#writeBeside(operations, { sync: false }),
    )
    this.idempotency = new IdempotencyKeys({
      clock: options.clock,
      keysPerDayMax: options.idempotencyKeysPerDayMax,
      counts: this.#codec,
      getMany: (wanted) => this.#read(() => this.#store.getMany(wanted)),
      range: (range) => this.#read(() => this.#store.range(range)),
      decode: (entry) => this.#codec.decodeKey(entry),
      write: (operations) => this.#writeBeside(operations, { sync: false }),
    })
    this.#groups = new GroupCommit<Operation>({
      clock: options.clock,
      costOf: operationCost,
      write: (operations) => this.#writeGroup(operations),
      onCommitted: (operations) => this.#onCommitted(operations),
      onFailed: (error) => this.#recovery.poison(error),
    })
    this.#recovery = new ShardRecovery(options, () => {
      this.#codec.forgetAll()
      this.#reclaimer.clear()
      this.idempotency.reset()
      this.#groups.reset()
    })
  }

  /** Whether the shard accepts commits: `closed`, `serving` or `poisoned`. */
  get status(): ShardStatus {
    return this.#recovery.status
  }

  /** Opens the database. Rejects with the error of the store. */
  async open(): Promise<void> {
    await this.#store.open()
    this.#recovery.opened()
  }

  /**
   * Makes operations durable. All operations of one call are in one group, in the given order. The promise resolves
   * when they survive a power loss.
   *
   * @param options.waited - false if the caller does not wait for the result. These operations may be written up to
   *   20 ms later, and a poisoned shard silently drops them.
   * @throws PostboteError STORE_UNAVAILABLE (nothing was stored) or OUTCOME_UNKNOWN (a write failed halfway).
   */
  commit(
    operations: readonly Operation[],
    { waited }: { readonly waited: boolean },
  ): Promise<void> {
    if (this.status === 'serving') return this.#groups.add(operations, waited)
    if (this.status === 'poisoned' && !waited) return Promise.resolve()
    return Promise.reject(new PostboteError('STORE_UNAVAILABLE'))
  }

  /**
   * Reads what is stored of `queues`. Counts a queue again first if its `s` or `n` record is damaged, or the shard is distrusted.
   *
   * @returns one entry for each queue, in the given order. Call `track` before the first `commit` of a queue.
   * @throws PostboteError STORE_UNAVAILABLE if a record cannot be read.
   */
  async load(queues: readonly QueueId[]): Promise<readonly StoredQueue[]> {
    await this.#read(async () => this.#recounter?.recount(queues))
    const stored = await this.#loadStored(queues)
    const isWhole = stored.every(({ isStateLost, isKeptLost }) => !isStateLost && !isKeptLost)
    return isWhole ? stored : this.#counting.run(() => this.#loadCounted(queues))
  }

  /** Reads the record of a bot alone. Its queues may be in memory, where what is known of them is newer. */
  async readBot(botId: number): Promise<Pick<StoredQueue, 'bot' | 'isDamaged'>> {
    const key = kinds.bot.key(botId)
    const [value] = await this.#read(() => this.#store.getMany([key]))
    return this.#codec.decodeBot(value && { key, value })
  }

  /** Marks all ids and counts as unreliable because of damaged logs: queues are recounted before they are loaded. */
  distrust(): void {
    this.#recounter ??= this.#newRecounter()
  }

  /** Reports updates that the counts of a queue have, and a read of all of it has not found. */
  noteMissing(queue: QueueId, count: number): void {
    this.#options.onMissing?.(queue, count)
  }

  /** The lowest id at which a queue without an `s` record may begin. */
  get firstIdMin(): number {
    return this.#options.idMark?.from ?? 0
  }

  /** The bounds of the ids of the shard, as in its mark; 0 without one. */
  get idBounds(): { readonly below: number; readonly from: number } {
    const { idMark } = this.#options
    return { below: idMark?.below ?? 0, from: this.firstIdMin }
  }

  /** Begins to read all records of this moment, with all that was acknowledged. */
  snapshot(): Promise<StoreSnapshot> {
    // A poisoned shard may show writes that are gone when it is read again.
    if (this.status !== 'serving') return Promise.reject(new PostboteError('STORE_UNAVAILABLE'))
    return this.#read(() => this.#store.snapshot())
  }

  /** Starts to fold operations of a queue into a copy of `state`. Every queue needs this before its first commit. */
  track(queue: QueueId, state: QueueState): void {
    this.#codec.track(queue, state)
  }

  /** Returns the ids and counts of a tracked queue. In `onCommitted`, these are the ones after the committed group. */
  stateOf(queue: QueueId): Readonly<QueueState> | undefined {
    return this.#codec.stateOf(queue)
  }

  /** Drops the folded state of a queue that is no longer in memory. All of its operations must be synced. */
  forget(queue: QueueId): void {
    this.#codec.forget(queue)
  }

  /** Reads stored updates of one queue in id order. Damaged records are logged and left out. */
  async readUpdates(range: IdRange): Promise<UpdatesRead> {
    const entries = await this.#range(range, kinds.update)
    return { updates: this.#codec.decodeUpdates(entries), next: keys.nextIdOf(entries, range.to) }
  }

  /** Reads dead letters of one queue in id order. Damaged ones are logged and reported by id only. */
  async readDeadLetters(range: IdRange): Promise<DeadLettersRead> {
    const entries = await this.#range(range, kinds.deadLetter)
    return { ...this.#codec.decodeDeadLetters(entries), next: keys.nextIdOf(entries, range.to) }
  }

  /** Reads kept updates of one queue that have left alone, in id order. */
  async readLeftUpdates(range: IdRange): Promise<LeftUpdatesRead> {
    const entries = await this.#range(range, kinds.leftUpdate)
    return {
      updates: this.#codec.decodeLeftUpdates(entries),
      next: keys.nextIdOf(entries, range.to),
    }
  }

  /** Reads runs of kept updates of one queue that begin in a range of ids, in id order, or from its end on. */
  async readKeptRuns(
    range: IdRange,
    { reverse }: { readonly reverse: boolean } = { reverse: false },
  ): Promise<readonly KeptRun[]> {
    const { queue, from, to, limit } = range
    let [gte, lt] = [kinds.keptRun.key(queue, from), kinds.keptRun.key(queue, to)]
    for (;;) {
      const page = { gte, lt, limit, reverse }
      const entries = await this.#read(() => this.#store.range(page))
      const runs = this.#codec.decodeKeptRuns(entries)
      const last = entries.at(-1)
      if (runs.length > 0 || last === undefined || entries.length < limit) return runs
      // All are damaged, which must not look like the end: what a run behind them keeps would be deleted, or become pending.
      if (reverse) lt = last.key
      else gte = keys.keyAfter(last.key)
    }
  }

  /** What the queues keep of updates that have left, as far as it was read. */
  get kept(): Pick<KeptCountsOfShard, 'bytes' | 'findingOf' | 'note' | 'of' | 'queues'> {
    return this.#codec.kept
  }

  /** Reads what all queues keep, unless that was done since the shard was opened. Damaged counts are counted again. */
  async readKept(): Promise<void> {
    const { kept } = this.#codec
    if (kept.isRead) return
    for (let after: QueueId = 0; ; ) {
      const page = await this.lists.keptCounts({ after, limit: countedPerReadMax })
      if (page.damaged.length > 0) await this.load(page.damaged)
      if (page.last === undefined) break
      after = page.last
    }
    kept.isRead = true
  }

  /** Frees the room on the disk that updates still take which were deleted, pending or kept. */
  async freeRoom(): Promise<void> {
    for (const kind of [kinds.update, kinds.leftUpdate]) {
      await this.#read(async () => this.#store.freeRoom?.(kind.range()))
    }
  }

  /** Deletes all that a queue keeps of updates that have left it, with the updates below its floor, before its ids are used anew. */
  async clearKept(queue: QueueId): Promise<void> {
    await this.keptChanges.run(async () => {
      await this.commit([], { waited: true })
      const floor = (await this.#stateOf(queue))?.floor ?? 0
      const all = { queue, from: 0, to: keys.updateIdEnd, limit: leftoversPerWriteMax }
      const options = { sync: false }
      await this.#deleteAll(all, options, kinds.keptRun)
      await this.#deleteAll(all, options, kinds.leftUpdate)
      const { count, bytes } = this.kept.of(queue)
      if (count === 0) return
      await this.#deleteAll({ ...all, to: floor }, options)
      const forget = { kind: 'forgetKept', queue, runs: [], updateIds: [], count, bytes } as const
      await this.commit([forget], { waited: true })
    })
  }

  /** Reads the ids of the newest stored updates of one queue: at most `range.limit`, newest first. */
  async readNewestIds(range: IdRange): Promise<readonly number[]> {
    const found = await this.#updateKeys(range, { reverse: true })
    return found.map((key) => keys.updateIdOfKey(key))
  }

  /** Returns the highest id below another one that an update of a queue has, pending or not; undefined if there is none. */
  async highestIdBelow(queue: QueueId, below: number): Promise<number | undefined> {
    const range = { queue, from: 0, to: below, limit: 1 }
    const found = await Promise.all(
      kindsOfUpdate.map((kind) => this.#updateKeys(range, { reverse: true }, kind)),
    )
    const ids = found.flat().map((key) => keys.updateIdOfKey(key))
    return ids.length === 0 ? undefined : Math.max(...ids)
  }

  /** Lists bots (`b`) or queues that have settings (`w`), as `ShardLists.records` describes. */
  list<Kind extends ListedKind>(
    kind: Kind,
    page: QueuesPage,
  ): Promise<readonly StoredRecord<Kind>[]> {
    return this.lists.records(kind, page)
  }

  /** Lists the queues that have ids and counts. The bots of some of them may have been removed. */
  listQueues(page: QueuesPage): Promise<readonly QueueId[]> {
    return this.lists.queues(page)
  }

  /** Lists expiry buckets that are due, as `ShardLists.dueQueues` describes. */
  dueQueues(page: Parameters<ShardLists['dueQueues']>[0]): Promise<readonly ExpiryBucket[]> {
    return this.lists.dueQueues(page)
  }

  /** Deletes an expiry bucket that has been swept. Like reclaiming, this is not an operation. */
  async removeBucket(bucket: ExpiryBucket): Promise<void> {
    // Forget it first, so that a push encoded during this write writes the bucket again afterward.
    this.#codec.forgetBucket(bucket)
    const key = kinds.expiry.key(bucket.minute, bucket.queue)
    await this.#writeBeside([{ type: 'del', key }], { sync: false })
  }

  /** Deletes dead records below the floor: left behind by a crash, or the few of a long and sparse range. */
  async reclaimLeftovers(queue: QueueId): Promise<void> {
    const floor = (await this.#stateOf(queue))?.floor ?? 0
    const below = { queue, from: 0, to: floor, limit: 1 }
    const [first] = await this.#updateKeys(below)
    if (first === undefined) return
    // The floor, and the run of what is below it, may be part of a group that is not synced yet.
    await this.commit([], { waited: true })
    // Dead records between runs that are kept are deleted when the runs before them are.
    const [run] = await this.readKeptRuns(below)
    const from = keys.updateIdOfKey(first)
    const dead = { queue, from, to: run?.from ?? floor, limit: leftoversPerWriteMax }
    await this.#deleteAll(dead, { sync: false })
  }

  /** Deletes every update of an empty queue, synced, before a new numbering begins. */
  async clearUpdates(queue: QueueId): Promise<void> {
    this.#reclaimer.drop(queue)
    const all = { queue, from: 0, to: keys.updateIdEnd, limit: leftoversPerWriteMax }
    await this.#deleteAll(all, { sync: true })
  }

  /**
   * Deletes the damaged records of queues that were found and may have payloads, with all copies of such records: nobody can tell
   * whose they are.
   *
   * @returns how many records were damaged
   */
  async eraseDamaged(queues: readonly QueueId[]): Promise<number> {
    await this.#copying
    const damaged = this.#codec.takeDamaged((key) => isUpdateOf(key, queues))
    await this.#writeBeside(deletionsOf(damaged), { sync: true })
    const copied = await deleteCopies(this.#purged, queues)
    return new Set([...damaged, ...copied].map((key) => key.toString('hex'))).size
  }

  /**
   * Takes payloads of queues that were deleted out of the files of the shard.
   *
   * @returns the paths of the copies of damaged files that were removed, relative to the directory of the shards
   */
  async purge(queues: readonly QueueId[]): Promise<readonly string[]> {
    return this.#read(() => purgePayloads(this.#purged, queues))
  }

  get #purged(): Parameters<typeof purgePayloads>[0] {
    return {
      purge: (options) => this.#store.purge(options),
      range: (range) => this.#read(() => this.#store.range(range)),
      write: (operations) => this.#writeBeside(operations, { sync: false }),
      nextIdOf: async (queue) => (await this.#stateOf(queue))?.nextId ?? 0,
      settled: () => this.commit([], { waited: true }),
    }
  }

  /** The store can be used no more: the shard opens it again, as after a failed write, and does not wait for one. */
  storeEnded(error: unknown): void {
    if (this.status === 'serving') this.#groups.fail(error)
  }

  /** Accepts no more operations, writes those that are waiting, then closes the database. Idempotent. */
  async close(): Promise<void> {
    if (this.status === 'closed') return
    this.#recovery.close()
    await this.#groups.flush()
    await this.#recovery.stopped()
    await this.#reclaimer.close()
    await this.#store.close()
  }

  /** Returns the ids and counts of a queue, tracked or not. */
  async #stateOf(queue: QueueId): Promise<Readonly<QueueState> | undefined> {
    const [stored] = this.stateOf(queue) === undefined ? await this.load([queue]) : []
    return this.stateOf(queue) ?? stored?.state
  }

  async #loadStored(queues: readonly QueueId[]): Promise<readonly StoredQueue[]> {
    const wanted = queues.flatMap((queue) => [
      kinds.state.key(queue),
      kinds.settings.key(queue),
      kinds.keptState.key(queue),
      kinds.attempts.key(queue),
      kinds.bot.key(keys.botIdOf(queue)),
    ])
    const values = await this.#read(() => this.#store.getMany(wanted))
    const entries = wanted.map((key, index) => {
      const value = values[index]
      return value && { key, value }
    })
    return queues.map((queue, index) => {
      const [s, w, n, a, b] = entries.slice(index * 5, index * 5 + 5)
      const stored = this.#codec.decodeQueue(queue, { s, w, n, a, b })
      const { state } = stored
      const { idMark } = this.#options
      // What is tracked has skipped already.
      if (state === undefined || idMark === undefined || this.stateOf(queue) !== undefined) {
        return stored
      }
      return { ...stored, state: { ...state, nextId: idMark.afterSkips(state.nextId) } }
    })
  }

  /** Reads what is stored of queues after what was damaged is counted. Another call may have done that meanwhile. */
  async #loadCounted(queues: readonly QueueId[]): Promise<readonly StoredQueue[]> {
    const damaged = await this.#loadStored(queues)
    const lost = queues.filter((_queue, index) => damaged[index]?.isStateLost)
    if (lost.length > 0) await this.#read(() => this.#newRecounter().recount(lost))
    for (const [index, { isKeptLost, isStateLost, state }] of damaged.entries()) {
      const queue = queues[index]
      if (queue === undefined || !isKeptLost || isStateLost) continue
      const kept = await keptOf(this, queue)
      // Everything below the floor has left.
      const end = Math.max(kept.end, state?.floor ?? 0)
      const record = keptStateRecord(kinds.keptState.key(queue), { ...kept, end })
      await this.#writeBeside([record], { sync: false })
    }
    return this.#loadStored(queues)
  }

  #newRecounter(): Recounter {
    const write = (operations: readonly StoreOperation[]): Promise<void> =>
      this.#writeBeside(operations, { sync: true })
    return new Recounter(this, this.#store, this.#options.idMark, write)
  }

  /** Undefined while the database can be read. Otherwise resolves when it can be, or after a while. */
  reopened(): Promise<void> | undefined {
    return this.#recovery.reopened()
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    const reopened = this.reopened()
    if (reopened !== undefined) await reopened
    if (this.status === 'closed') throw new PostboteError('STORE_UNAVAILABLE')
    try {
      return await read()
    } catch (error) {
      this.#options.onReadFailed?.(error)
      throw new PostboteError('STORE_UNAVAILABLE', { cause: error })
    }
  }

  #range(
    { queue, from, to, limit, bytesMax }: IdRange,
    kind: KindById,
  ): Promise<readonly StoreEntry[]> {
    return this.#read(() =>
      this.#store.range({
        gte: kind.key(queue, from),
        lt: kind.key(queue, to),
        limit,
        ...(bytesMax === undefined ? {} : { valueBytesMax: bytesMax }),
      }),
    )
  }

  async #writeGroup(operations: readonly Operation[]): Promise<void> {
    const batch = this.#codec.encode(operations)
    const reserving = this.#options.idMark?.reserve(this.#codec.highestNextId)
    if (reserving !== undefined) await reserving
    this.#reclaimer.join(batch)
    const { clock } = this.#options
    const startedMs = clock.monotonicMs()
    await this.#store.write(batch, { sync: true })
    this.#options.onSynced?.(clock.monotonicMs() - startedMs)
  }

  /** A write outside of the groups. If it fails, the groups fail too, because nothing may be written after it. */
  async #writeBeside(
    operations: readonly StoreOperation[],
    options: { readonly sync: boolean },
  ): Promise<void> {
    if (this.status !== 'serving') throw new PostboteError('STORE_UNAVAILABLE')
    try {
      await this.#store.write(operations, options)
    } catch (error) {
      this.#groups.fail(error)
      throw new PostboteError('STORE_UNAVAILABLE', { cause: error })
    }
  }

  /**
   * Deletes the records of a range in steps. Each read starts where the previous one ended: from the beginning it
   * would have to skip all deleted entries, which LevelDB keeps for a while.
   */
  async #deleteAll(
    range: IdRange,
    options: { readonly sync: boolean },
    kind: KindById = kinds.update,
  ): Promise<void> {
    let { from } = range
    for (;;) {
      const found = await this.#updateKeys({ ...range, from }, { reverse: false }, kind)
      const last = found.at(-1)
      if (last === undefined) return
      await this.#writeBeside(deletionsOf(found), options)
      from = keys.updateIdOfKey(last) + 1
    }
  }

  async #updateKeys(
    { queue, from, to, limit }: IdRange,
    { reverse }: { readonly reverse: boolean } = { reverse: false },
    kind: KindById = kinds.update,
  ): Promise<readonly Buffer[]> {
    const [gte, lt] = [kind.key(queue, from), kind.key(queue, to)]
    const entries = await this.#read(() =>
      this.#store.range({ gte, lt, limit, reverse, keysOnly: true }),
    )
    return entries.map(({ key }) => key)
  }

  #onCommitted(operations: readonly Operation[]): void {
    for (const operation of operations) {
      if (operation.kind === 'forgetKept') {
        const { queue } = operation
        for (const { from, end: floor, count: removedCount } of operation.runs) {
          this.#reclaim({ queue, from, floor, removedCount })
        }
      } else if (operation.kind === 'confirm' || operation.kind === 'drop') {
        if (operation.keptSinceMs === undefined) this.#reclaim(operation)
      }
    }
    const { index, log } = this.#options
    try {
      this.#options.onCommitted(operations)
    } catch (error) {
      // The group is stored, and its callers are told so, whatever others make of it.
      const cause = error instanceof Error ? error.stack : String(error)
      log.error({ shard: index, cause }, 'a stored group could not be followed')
    }
  }

  #reclaim({
    queue,
    from,
    floor,
    removedCount,
  }: Pick<AdvanceOperation, 'queue' | 'from' | 'floor' | 'removedCount'>): void {
    if (floor - from <= removedCount * 4 + leftoversPerWriteMax) {
      this.#reclaimer.add({ queue, from, to: floor })
    } else {
      // Deliveries have removed most of the range: finding the remaining records costs less than deleting every id.
      this.reclaimLeftovers(queue).catch(() => undefined)
    }
  }
}
