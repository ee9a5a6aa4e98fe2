/**
 * One shard: the queues and settings of its bots in one database, with one door for durable change, `commit`.
 *
 *   commit --> shard-codec.ts folds and encodes --> group-commit.ts --> the database --> onCommitted
 *
 * Nothing is written once a write has failed, until shard-recovery.ts has read everything anew.
 */
import { PostboteError } from '../errors.ts'
import { leftoversPerWriteMax } from '../limits.ts'
import { GroupCommit } from './group-commit.ts'
import type { IdMark } from './id-mark.ts'
import { IdempotencyKeys } from './idempotency-keys.ts'
import * as keys from './keys.ts'
import type { QueueId } from './keys.ts'
import { operationCost } from './operation-cost.ts'
import type { AdvanceOperation, Operation } from './operations.ts'
import { Reclaimer } from './reclaimer.ts'
import { Recounter } from './recount.ts'
import type { QueueState } from './record.ts'
import { ShardCodec } from './shard-codec.ts'
import { ShardRecovery, type ShardRecoveryOptions, type ShardStatus } from './shard-recovery.ts'
import type { Store, StoreEntry, StoreOperation } from '../store/store.ts'
import type {
  ExpiryBucket,
  LettersRead,
  ListedRecord,
  QueuesPage,
  StoredQueue,
  UpdateRange,
  UpdatesRead,
} from './stored.ts'

export interface ShardOptions extends ShardRecoveryOptions {
  /** Every group, in commit order, before those who wait for it. */
  onCommitted(operations: readonly Operation[]): void
  /** A read has failed: something in the files of the shard may be damaged. */
  onReadFailed?(error: unknown): void
  readonly idempotencyKeysPerDayMax?: number
  /** Without it, as in tests, nothing outside the database bounds the ids. */
  readonly idMark?: IdMark
}

export class Shard {
  readonly index: number
  readonly idempotency: IdempotencyKeys
  readonly #options: ShardOptions
  readonly #store: Store
  readonly #codec: ShardCodec
  readonly #groups: GroupCommit<Operation>
  readonly #reclaimer: Reclaimer
  readonly #recovery: ShardRecovery
  /** Only where the logs were damaged, and all queues are to be counted anew. */
  #recounter: Recounter | undefined

  constructor(options: ShardOptions) {
    this.index = options.index
    this.#options = options
    this.#store = options.store
    this.#codec = new ShardCodec({
      ...options,
      // Where it cannot be kept the shard has a write that failed, and tells of that.
      keep: (copy) => void this.#writeBeside([copy], { sync: false }).catch(() => undefined),
    })
    this.#reclaimer = new Reclaimer({
      clock: options.clock,
      write: (operations) => this.#writeBeside(operations, { sync: false }),
    })
    this.idempotency = new IdempotencyKeys({
      keysPerDayMax: options.idempotencyKeysPerDayMax,
      stateOf: (queue) => this.#codec.stateOf(queue),
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

  get status(): ShardStatus {
    return this.#recovery.status
  }

  async open(): Promise<void> {
    await this.#store.open()
    this.#recovery.opened()
  }

  /**
   * The one door for durable change. Operations of one call are in one group, in their order. Resolves once
   * they survive power loss; a caller need not wait for `waited: false`, which may linger up to 20 ms.
   * Rejects with STORE_UNAVAILABLE (nothing was stored) or OUTCOME_UNKNOWN (a write failed half-way).
   */
  commit(
    operations: readonly Operation[],
    { waited }: { readonly waited: boolean },
  ): Promise<void> {
    if (this.status === 'serving') return this.#groups.add(operations, waited)
    if (this.status === 'poisoned' && !waited) return Promise.resolve()
    return Promise.reject(new PostboteError('STORE_UNAVAILABLE'))
  }

  /** What is stored of `queues`, in their order. From then on `commit` folds their state, until `forget`. */
  async load(queues: readonly QueueId[]): Promise<readonly StoredQueue[]> {
    await this.#read(async () => this.#recounter?.recount(queues))
    const stored = await this.#loadStored(queues)
    const lost = queues.filter((_queue, index) => stored[index]?.isStateLost)
    if (lost.length === 0) return stored
    await this.#read(() => this.#newRecounter().recount(lost))
    return this.#loadStored(queues)
  }

  /** Its logs were damaged: ids and counts of a queue are counted anew before it is loaded first. */
  distrust(): void {
    this.#recounter ??= this.#newRecounter()
  }

  /** A queue without a record of its ids begins at this id or above. */
  get firstIdMin(): number {
    return this.#options.idMark?.from ?? 0
  }

  /** Begins to fold operations of a queue into `state`; every queue needs this before its first commit. */
  track(queue: QueueId, state: QueueState): void {
    this.#codec.track(queue, state)
  }

  /** Drops the folded state of a queue that nobody holds in memory any more, all of whose operations are synced. */
  forget(queue: QueueId): void {
    this.#codec.forget(queue)
  }

  /** Stored updates of one queue in id order; a damaged record is logged and left out. */
  async readUpdates(range: UpdateRange): Promise<UpdatesRead> {
    const entries = await this.#range(range, keys.updateKey)
    const last = entries.at(-1)
    return {
      updates: this.#codec.decodeUpdates(entries),
      next: last === undefined ? range.to : keys.updateIdOfKey(last.key) + 1,
    }
  }

  /** Dead letters of one queue in id order; a damaged one is logged and left out. */
  async readDeadLetters(range: UpdateRange): Promise<LettersRead> {
    const entries = await this.#range(range, keys.letterKey)
    const last = entries.at(-1)
    return {
      ...this.#codec.decodeLetters(entries),
      next: last === undefined ? range.to : keys.updateIdOfKey(last.key) + 1,
    }
  }

  /** Ids of the newest stored updates of one queue, newest first. */
  async readNewestIds(range: UpdateRange): Promise<readonly number[]> {
    const found = await this.#updateKeys(range, { reverse: true })
    return found.map((key) => keys.updateIdOfKey(key))
  }

  /** Bots, or queues with settings. */
  async list<Kind extends 'b' | 'w'>(
    kind: Kind,
    page: QueuesPage,
  ): Promise<readonly ListedRecord<Kind>[]> {
    let after = keys.queueKey(kind, page.after)
    for (;;) {
      const gte = keys.keyBehind(after)
      const entries = await this.#read(() =>
        this.#store.range({ gte, lt: keys.endOf(kind), limit: page.limit }),
      )
      const listed = this.#codec.decodeListed<Kind>(entries)
      const last = entries.at(-1)
      // An empty list would mean the end to the caller, and not a page of damage.
      if (listed.length > 0 || last === undefined) return listed
      after = last.key
    }
  }

  /** Queues that have ids and counts; their bots may be gone. */
  async listQueues(page: QueuesPage): Promise<readonly QueueId[]> {
    const gte = keys.keyBehind(keys.queueKey('s', page.after))
    const entries = await this.#read(() =>
      this.#store.range({ gte, lt: keys.endOf('s'), limit: page.limit, keysOnly: true }),
    )
    return entries.map(({ key }) => keys.queueIdOfQueueKey(key))
  }

  /** Queues in which something expires up to `minute`, oldest first, behind the bucket `after`. */
  async dueQueues(page: {
    readonly minute: number
    readonly limit: number
    readonly after?: ExpiryBucket | undefined
  }): Promise<readonly ExpiryBucket[]> {
    const { minute, limit, after } = page
    const gte =
      after === undefined
        ? keys.startOf('x')
        : keys.keyBehind(keys.expiryKey(after.minute, after.queue))
    const entries = await this.#read(() =>
      this.#store.range({ gte, lt: keys.expiryKey(minute + 1, 0), limit }),
    )
    return this.#codec.decodeBuckets(entries)
  }

  /** Forgets an expiry bucket that has been seen to. Like reclaiming, this is no operation. */
  async removeBucket(bucket: ExpiryBucket): Promise<void> {
    // First, so that a push encoded during the write puts the bucket back behind it.
    this.#codec.forgetBucket(bucket)
    const key = keys.expiryKey(bucket.minute, bucket.queue)
    await this.#writeBeside([{ type: 'del', key }], { sync: false })
  }

  /** Deletes dead records below a queue's floor that a crash has left behind, or a long and thin range of them. */
  async reclaimLeftovers(queue: QueueId): Promise<void> {
    const [stored] = this.#codec.stateOf(queue) === undefined ? await this.load([queue]) : []
    const floor = (this.#codec.stateOf(queue) ?? stored?.state)?.floor ?? 0
    const dead = { queue, from: 0, to: floor, limit: leftoversPerWriteMax }
    const [first] = await this.#updateKeys({ ...dead, limit: 1 })
    if (first === undefined) return
    // The floor may have been folded into a group that is not synced yet.
    await this.commit([], { waited: true })
    await this.#deleteAll({ ...dead, from: keys.updateIdOfKey(first) }, { sync: false })
  }

  /** Deletes every record of an empty queue at once, before a new numbering begins. */
  async clearUpdates(queue: QueueId): Promise<void> {
    this.#reclaimer.drop(queue)
    const all = { queue, from: 0, to: keys.updateIdEnd, limit: leftoversPerWriteMax }
    await this.#deleteAll(all, { sync: true })
  }

  /** Takes nothing more, writes what is under way, then closes the database. */
  async close(): Promise<void> {
    if (this.status === 'closed') return
    this.#recovery.stop()
    await this.#groups.flush()
    await this.#recovery.stopped()
    await this.#reclaimer.close()
    await this.#store.close()
  }

  async #loadStored(queues: readonly QueueId[]): Promise<readonly StoredQueue[]> {
    const wanted = queues.flatMap((queue) => [
      keys.queueKey('s', queue),
      keys.queueKey('w', queue),
      keys.queueKey('b', keys.botIdOf(queue)),
    ])
    const values = await this.#read(() => this.#store.getMany(wanted))
    const entries = wanted.map((key, index) => {
      const value = values[index]
      return value && { key, value }
    })
    return queues.map((queue, index) => {
      const [s, w, b] = entries.slice(index * 3, index * 3 + 3)
      return this.#codec.decodeQueue(queue, { s, w, b })
    })
  }

  #newRecounter(): Recounter {
    return new Recounter({
      store: this.#store,
      readUpdates: (range) => this.readUpdates(range),
      idMark: this.#options.idMark,
      write: (operations) => this.#writeBeside(operations, { sync: true }),
    })
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    if (this.status === 'closed') throw new PostboteError('STORE_UNAVAILABLE')
    try {
      return await read()
    } catch (error) {
      this.#options.onReadFailed?.(error)
      throw new PostboteError('STORE_UNAVAILABLE', { cause: error })
    }
  }

  #range(
    { queue, from, to, limit, bytesMax }: UpdateRange,
    keyOf: (queue: QueueId, updateId: number) => Buffer,
  ): Promise<readonly StoreEntry[]> {
    return this.#read(() =>
      this.#store.range({
        gte: keyOf(queue, from),
        lt: keyOf(queue, to),
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
    await this.#store.write(batch, { sync: true })
  }

  /** A write that is no operation. Where it fails, nothing may follow it. */
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
   * Deletes the records of a range, some at a time. Each read goes on where the one before has ended: from the beginning
   * again it would pass over all that was deleted, which LevelDB keeps a while.
   */
  async #deleteAll(range: UpdateRange, options: { readonly sync: boolean }): Promise<void> {
    let { from } = range
    for (;;) {
      const found = await this.#updateKeys({ ...range, from })
      const last = found.at(-1)
      if (last === undefined) return
      await this.#writeBeside(deletionsOf(found), options)
      from = keys.updateIdOfKey(last) + 1
    }
  }

  async #updateKeys(
    { queue, from, to, limit }: UpdateRange,
    { reverse }: { readonly reverse: boolean } = { reverse: false },
  ): Promise<readonly Buffer[]> {
    const gte = keys.updateKey(queue, from)
    const lt = keys.updateKey(queue, to)
    const entries = await this.#read(() =>
      this.#store.range({ gte, lt, limit, reverse, keysOnly: true }),
    )
    return entries.map(({ key }) => key)
  }

  #onCommitted(operations: readonly Operation[]): void {
    for (const operation of operations) {
      if (operation.kind === 'confirm' || operation.kind === 'drop') {
        this.#reclaim(operation)
      }
    }
    this.#options.onCommitted(operations)
  }

  #reclaim({ queue, from, floor, removedCount }: AdvanceOperation): void {
    if (floor - from <= removedCount * 4 + leftoversPerWriteMax) {
      this.#reclaimer.add({ queue, from, to: floor })
    } else {
      // Deliveries have thinned it out: looking for the records costs less than deleting every id.
      this.reclaimLeftovers(queue).catch(() => undefined)
    }
  }
}

function deletionsOf(found: readonly Buffer[]): StoreOperation[] {
  return found.map((key) => ({ type: 'del', key }))
}
