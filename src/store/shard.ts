/**
 * One shard: the queues and settings of its bots in one database, with one door for durable change, `commit`.
 *
 *   serving  --a write fails--> poisoned --probe file can be fsynced--> reopened from disk --> serving
 *
 * After one failed write LevelDB goes on acknowledging writes that are gone at the next start, so a poisoned
 * shard writes nothing more through its handle: pushes are refused, reads go on, confirms move heads in
 * memory only, and recovery re-reads everything from disk (`onReset`), never from memory.
 */
import { type Clock, sleep } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import type { BotRecord, QueueSettings } from './bot-record.ts'
import { GroupCommit } from './group-commit.ts'
import * as keys from './keys.ts'
import type { QueueId } from './keys.ts'
import { type AdvanceOperation, type Operation, fold } from './operations.ts'
import { Reclaimer } from './reclaimer.ts'
import { Recounter } from './recount.ts'
import * as record from './record.ts'
import type { QueueState, UpdateRecord } from './record.ts'
import type { Store, StoreEntry, StoreOperation } from './store.ts'

const probePeriodMs = 1_000
const leftoversPerWrite = 1_000
/** Expiry minutes remembered per queue, so that a bucket is written once and not per update. */
const bucketsRememberedMax = 64

export interface ShardLog {
  error(details: object, message: string): void
  info(details: object, message: string): void
}

export interface ShardOptions {
  readonly index: number
  readonly store: Store
  readonly clock: Clock
  readonly log: ShardLog
  /** Every group, in commit order, before those who wait for it. */
  onCommitted(operations: readonly Operation[]): void
  /** The shard was read anew from disk: whatever is in memory of its queues is void. */
  onReset(): void
  onFailed?(): void
  /** Whether a file can be written and fsynced beside the database. */
  probe(): Promise<boolean>
}

/** An update as it was stored. */
export interface StoredUpdate extends UpdateRecord {
  readonly updateId: number
}

export interface UpdateRange {
  readonly queue: QueueId
  /** First id. */
  readonly from: number
  /** First id behind the range. */
  readonly to: number
  readonly limit: number
  readonly bytesMax?: number
}

export interface UpdatesRead {
  readonly updates: readonly StoredUpdate[]
  /** Where to read on: behind everything read, damaged records included. */
  readonly next: number
}

export interface StoredQueue {
  readonly state: QueueState | undefined
  readonly settings: QueueSettings
  /** Always undefined for a /test/ queue. */
  readonly bot: BotRecord | undefined
  /** One of its records cannot be read: nothing may be made of this queue. */
  readonly isDamaged?: true
}

export interface ListedRecord<Kind extends 'b' | 'w'> {
  readonly queue: QueueId
  readonly record: Kind extends 'b' ? BotRecord : QueueSettings
}

/** Something of this queue may expire in this minute. */
export interface ExpiryBucket {
  readonly minute: number
  readonly queue: QueueId
}

interface LoadedState {
  readonly state: QueueState
  readonly buckets: Set<number>
}

export class Shard {
  readonly index: number
  readonly #options: ShardOptions
  readonly #store: Store
  readonly #groups: GroupCommit<Operation>
  readonly #reclaimer: Reclaimer
  readonly #loaded = new Map<QueueId, LoadedState>()
  readonly #closing = new AbortController()
  /** Only where the logs were damaged. */
  #recounter: Recounter | undefined
  #status: 'closed' | 'serving' | 'poisoned' = 'closed'
  #recovery: Promise<void> = Promise.resolve()

  constructor(options: ShardOptions) {
    this.index = options.index
    this.#options = options
    this.#store = options.store
    this.#reclaimer = new Reclaimer({
      clock: options.clock,
      write: (operations) => this.#writeBeside(operations, { sync: false }),
    })
    this.#groups = new GroupCommit<Operation>({
      clock: options.clock,
      write: (operations) => this.#store.write(this.#encode(operations), { sync: true }),
      onCommitted: (operations) => this.#onCommitted(operations),
      onFailed: (error) => this.#poison(error),
    })
  }

  get status(): 'closed' | 'serving' | 'poisoned' {
    return this.#status
  }

  async open(): Promise<void> {
    await this.#store.open()
    this.#status = 'serving'
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
    if (this.#status === 'serving') return this.#groups.add(operations, waited)
    if (this.#status === 'poisoned' && !waited) return Promise.resolve()
    return Promise.reject(new PostboteError('STORE_UNAVAILABLE'))
  }

  /** What is stored of `queues`, in their order. From then on `commit` folds their state, until `forget`. */
  async load(queues: readonly QueueId[]): Promise<readonly StoredQueue[]> {
    const wanted: Buffer[] = []
    for (const queue of queues) {
      wanted.push(
        keys.queueKey('s', queue),
        keys.queueKey('w', queue),
        keys.queueKey('b', keys.botIdOf(queue)),
      )
    }
    await this.#read(async () => this.#recounter?.recount(queues))
    const values = await this.#read(() => this.#store.getMany(wanted))
    return queues.map((queue, index) =>
      this.#decodeQueue(queue, values.slice(index * 3, index * 3 + 3)),
    )
  }

  /** Its logs were damaged: ids and counts of a queue are counted anew before it is loaded first. */
  distrust(): void {
    this.#recounter ??= new Recounter(this.#store, (range) => this.readUpdates(range))
  }

  /** Begins to fold operations of a queue into `state`; every queue needs this before its first commit. */
  track(queue: QueueId, state: QueueState): void {
    if (!this.#loaded.has(queue)) {
      this.#loaded.set(queue, { state: { ...state }, buckets: new Set() })
    }
  }

  /** Drops the folded state of a queue that nobody holds in memory any more, all of whose operations are synced. */
  forget(queue: QueueId): void {
    this.#loaded.delete(queue)
  }

  /** Stored updates of one queue in id order; a damaged record is logged and left out. */
  async readUpdates(range: UpdateRange): Promise<UpdatesRead> {
    const entries = await this.#read(() =>
      this.#store.range({
        gte: keys.updateKey(range.queue, range.from),
        lt: keys.updateKey(range.queue, range.to),
        limit: range.limit,
        ...(range.bytesMax === undefined ? {} : { valueBytesMax: range.bytesMax }),
      }),
    )
    const last = entries.at(-1)
    return {
      updates: entries.flatMap((entry) => this.#decodeUpdate(entry)),
      next: last === undefined ? range.to : keys.updateIdOfKey(last.key) + 1,
    }
  }

  /** Ids of the newest stored updates of one queue, newest first. */
  async readNewestIds(range: UpdateRange): Promise<readonly number[]> {
    const entries = await this.#read(() =>
      this.#store.range({
        gte: keys.updateKey(range.queue, range.from),
        lt: keys.updateKey(range.queue, range.to),
        limit: range.limit,
        reverse: true,
        keysOnly: true,
      }),
    )
    return entries.map(({ key }) => keys.updateIdOfKey(key))
  }

  /** Bots, or queues with settings, with ids above `after`, in the order of their ids. */
  async list<Kind extends 'b' | 'w'>(
    kind: Kind,
    page: { readonly after: QueueId; readonly limit: number },
  ): Promise<readonly ListedRecord<Kind>[]> {
    let after = keys.queueKey(kind, page.after)
    for (;;) {
      const gte = keys.keyBehind(after)
      const entries = await this.#read(() =>
        this.#store.range({ gte, lt: keys.endOf(kind), limit: page.limit }),
      )
      const listed = entries.flatMap((entry) => this.#decodeListed<Kind>(entry))
      const last = entries.at(-1)
      // An empty list would mean the end to the caller, and not a page of damage.
      if (listed.length > 0 || last === undefined) return listed
      after = last.key
    }
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
      this.#store.range({ gte, lt: keys.expiryKey(minute + 1, 0), limit, keysOnly: true }),
    )
    return entries.map(({ key }) => keys.parseExpiryKey(key))
  }

  /** Forgets an expiry bucket that has been seen to. Like reclaiming, this is no operation. */
  async removeBucket(bucket: ExpiryBucket): Promise<void> {
    // First, so that a push encoded during the write puts the bucket back behind it.
    this.#loaded.get(bucket.queue)?.buckets.delete(bucket.minute)
    const key = keys.expiryKey(bucket.minute, bucket.queue)
    await this.#writeBeside([{ type: 'del', key }], { sync: false })
  }

  /** Deletes dead records below a queue's floor that a crash has left behind, or a long and thin range of them. */
  async reclaimLeftovers(queue: QueueId): Promise<void> {
    const [stored] = this.#loaded.has(queue) ? [] : await this.load([queue])
    const floor = (this.#loaded.get(queue)?.state ?? stored?.state)?.floor ?? 0
    const dead = { queue, to: floor }
    let first = await this.#updateKeys(dead, 1)
    // The floor may have been folded into a group that is not synced yet.
    if (first.length > 0) await this.commit([], { waited: true })
    while (first.length > 0) {
      const found = await this.#updateKeys(dead, leftoversPerWrite)
      await this.#writeBeside(deletionsOf(found), { sync: false })
      first = await this.#updateKeys(dead, 1)
    }
  }

  /** Deletes every record of an empty queue at once, before a new numbering begins. */
  async clearUpdates(queue: QueueId): Promise<void> {
    this.#reclaimer.drop(queue)
    for (;;) {
      const found = await this.#updateKeys({ queue, to: 2 ** 32 - 1 }, leftoversPerWrite)
      if (found.length === 0) return
      await this.#writeBeside(deletionsOf(found), { sync: true })
    }
  }

  /** Takes nothing more, writes what is under way, then closes the database. */
  async close(): Promise<void> {
    if (this.#status === 'closed') return
    this.#closing.abort()
    this.#status = 'closed'
    await this.#groups.flush()
    await this.#recovery
    // The last write may have failed.
    this.#status = 'closed'
    await this.#reclaimer.close()
    await this.#store.close()
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    if (this.#status === 'closed') throw new PostboteError('STORE_UNAVAILABLE')
    try {
      return await read()
    } catch (error) {
      throw new PostboteError('STORE_UNAVAILABLE', { cause: error })
    }
  }

  /** A write that is no operation. Where it fails, nothing may follow it (ARCHITECTURE 9). */
  async #writeBeside(
    operations: readonly StoreOperation[],
    options: { readonly sync: boolean },
  ): Promise<void> {
    if (this.#status !== 'serving') throw new PostboteError('STORE_UNAVAILABLE')
    try {
      await this.#store.write(operations, options)
    } catch (error) {
      this.#groups.fail(error)
      throw new PostboteError('STORE_UNAVAILABLE', { cause: error })
    }
  }

  async #updateKeys(
    range: { readonly queue: QueueId; readonly to: number },
    limit: number,
  ): Promise<readonly Buffer[]> {
    const entries = await this.#read(() =>
      this.#store.range({
        gte: keys.updateKey(range.queue, 0),
        lt: keys.updateKey(range.queue, range.to),
        limit,
        keysOnly: true,
      }),
    )
    return entries.map(({ key }) => key)
  }

  #decodeUpdate({ key, value }: StoreEntry): StoredUpdate[] {
    try {
      return [{ updateId: keys.updateIdOfKey(key), ...record.decodeUpdate(value) }]
    } catch (error) {
      this.#logDamage(key, error)
      return []
    }
  }

  #decodeListed<Kind extends 'b' | 'w'>({ key, value }: StoreEntry): ListedRecord<Kind>[] {
    try {
      return [{ queue: keys.queueIdOfQueueKey(key), record: record.decodeJson(value) }]
    } catch (error) {
      this.#logDamage(key, error)
      return []
    }
  }

  /** From the values of its `s` and `w` records and of its bot's. */
  #decodeQueue(queue: QueueId, values: readonly (Buffer | undefined)[]): StoredQueue {
    const [state, settings, bot] = values
    try {
      return {
        state: this.#loaded.get(queue)?.state ?? (state && record.decodeQueueState(state)),
        settings: settings === undefined ? {} : record.decodeJson(settings),
        bot: bot === undefined ? undefined : record.decodeJson(bot),
      }
    } catch (error) {
      this.#logDamage(keys.queueKey('s', queue), error)
      return { state: undefined, settings: {}, bot: undefined, isDamaged: true }
    }
  }

  #logDamage(key: Buffer, error: unknown): void {
    this.#options.log.error(
      { shard: this.index, key: key.toString('hex'), error: String(error) },
      'a record of the store is damaged and cannot be used',
    )
  }

  #encode(operations: readonly Operation[]): StoreOperation[] {
    const batch: StoreOperation[] = []
    const changed = new Map<QueueId, LoadedState>()
    for (const operation of operations) {
      if (operation.kind === 'bot' || operation.kind === 'settings') {
        batch.push(encodeMeta(operation))
        continue
      }
      const loaded = this.#stateOf(operation.queue)
      changed.set(operation.queue, loaded)
      if (operation.kind === 'push') this.#encodePush(operation, loaded, batch)
      if (operation.kind === 'delete') {
        for (const updateId of operation.updateIds) {
          batch.push({ type: 'del', key: keys.updateKey(operation.queue, updateId) })
        }
      }
      fold(loaded.state, operation)
    }
    for (const [queue, { state }] of changed) {
      batch.push({
        type: 'put',
        key: keys.queueKey('s', queue),
        value: record.encodeQueueState(state),
      })
    }
    this.#reclaimer.join(batch)
    return batch
  }

  #encodePush(
    operation: Operation & { kind: 'push' },
    loaded: LoadedState,
    batch: StoreOperation[],
  ): void {
    const { queue, updateId } = operation
    batch.push({
      type: 'put',
      key: keys.updateKey(queue, updateId),
      value: record.encodeUpdate(operation),
    })
    const minute = Math.ceil(operation.expiresAtS / 60)
    if (loaded.buckets.has(minute)) return
    if (loaded.buckets.size >= bucketsRememberedMax) loaded.buckets.clear()
    loaded.buckets.add(minute)
    batch.push({ type: 'put', key: keys.expiryKey(minute, queue), value: Buffer.alloc(0) })
  }

  #stateOf(queue: QueueId): LoadedState {
    const loaded = this.#loaded.get(queue)
    if (loaded === undefined)
      throw new Error(`queue ${queue} was committed to before it was tracked`)
    return loaded
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
    if (floor - from <= removedCount * 4 + leftoversPerWrite) {
      this.#reclaimer.add({ queue, from, to: floor })
    } else {
      // Deliveries have thinned it out: looking for the records costs less than deleting every id.
      this.reclaimLeftovers(queue).catch(() => undefined)
    }
  }

  #poison(error: unknown): void {
    this.#status = 'poisoned'
    this.#options.log.error(
      { shard: this.index, error: String(error) },
      'a write failed: the shard accepts nothing until its disk can be written again',
    )
    this.#options.onFailed?.()
    this.#recovery = this.#recover()
  }

  async #recover(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      await sleep(this.#options.clock, probePeriodMs, signal)
      if (signal.aborted) return
      try {
        if (!(await this.#options.probe())) continue
        await this.#store.close()
        await this.#store.open()
      } catch (error) {
        this.#options.log.error({ shard: this.index, error: String(error) }, 'reopening failed')
        continue
      }
      if (signal.aborted) return
      this.#loaded.clear()
      this.#reclaimer.clear()
      this.#groups.reset()
      this.#status = 'serving'
      this.#options.log.info({ shard: this.index }, 'the shard was read anew and serves again')
      this.#options.onReset()
      return
    }
  }
}

function deletionsOf(found: readonly Buffer[]): StoreOperation[] {
  return found.map((key) => ({ type: 'del', key }))
}

function encodeMeta(operation: Operation & { kind: 'bot' | 'settings' }): StoreOperation {
  const key = keys.queueKey(operation.kind === 'bot' ? 'b' : 'w', operation.queue)
  if (operation.record === null) return { type: 'del', key }
  return { type: 'put', key, value: record.encodeJson(operation.record) }
}
