/**
 * Translates between operations and records. Does no I/O.
 *
 * The codec holds the ids and counts of all loaded queues, because every group writes those that it changes. `encode`
 * folds each operation into the state of its queue, so it must be called once for each operation, in commit order. A
 * record that cannot be decoded is left out and reported to damaged-records.ts.
 */
import type { BotRecord, QueueSettings } from './bot-record.ts'
import { deadLetterLifeMs } from '../../kit/limits.ts'
import type { AttemptsRecord } from './attempts-record.ts'
import type { DamagedRecords } from '../recovery/damaged-records.ts'
import { GroupEncoder } from '../group-encoder.ts'
import { KeptCountsOfShard } from '../recovery/kept-counts.ts'
import { type AnyKind, jsonKinds, type KindById, kinds } from '../kinds.ts'
import * as keys from './record-keys.ts'
import type { QueueId } from './record-keys.ts'
import {
  type AddDeadLettersOperation,
  type AdvanceOperation,
  type DeleteOperation,
  type ForgetKeptOperation,
  type Operation,
  type PushOperation,
  type JsonOperation,
  type QueueOperation,
  type RemoveDeadLettersOperation,
  fold,
  isJson,
  keyedAtMs,
} from '../operations.ts'
import type { KeyParts, RecordKind, RecordOf } from './record-kind.ts'
import * as record from './record.ts'
import type { QueueState } from './record.ts'
import type { StoreEntry, StoreOperation } from '../../store/store.ts'
import type {
  ExpiryBucket,
  DeadLettersRead,
  KeptRun,
  ListedKind,
  StoredRecord,
  StoredDeadLetter,
  StoredLeftUpdate,
  StoredQueue,
  StoredUpdate,
} from './stored-records.ts'

interface TrackedQueue {
  readonly state: QueueState
  /** Minutes whose expiry bucket was written, so that it is written once and not for every update. */
  buckets: Set<number> | undefined
  /** Idempotency keys that pushes have claimed which are not encoded yet. */
  keysClaimed: number
}

/** Encodes the operations of one shard and decodes its records. */
export class ShardCodec {
  readonly #tracked = new Map<QueueId, TrackedQueue>()
  /** What the queues keep of updates that have left. */
  readonly kept = new KeptCountsOfShard()
  readonly #damaged: DamagedRecords
  readonly #encoder = new GroupEncoder()
  #highestNextId = 0

  constructor(damaged: DamagedRecords) {
    this.#damaged = damaged
  }

  /** Starts to fold operations of a queue into a copy of `state`. Has no effect on a queue that is tracked. */
  track(queue: QueueId, state: QueueState): void {
    if (!this.#tracked.has(queue)) {
      this.#tracked.set(queue, { state: { ...state }, buckets: undefined, keysClaimed: 0 })
    }
  }

  /** Returns the folded state of a queue; undefined if the queue is not tracked. */
  stateOf(queue: QueueId): Readonly<QueueState> | undefined {
    return this.#tracked.get(queue)?.state
  }

  /** Counts an idempotency key of a push that will be encoded. */
  claimKey(queue: QueueId): void {
    this.#trackedQueue(queue).keysClaimed += 1
  }

  /** Returns how many idempotency keys a queue has on a UTC day, with those that are not encoded yet. */
  keysOn(queue: QueueId, day: number): number {
    const { state, keysClaimed } = this.#trackedQueue(queue)
    return keysClaimed + (state.idempotencyDay === day ? state.idempotencyCount : 0)
  }

  /** The largest `nextId` of all queues that were encoded so far. */
  get highestNextId(): number {
    return this.#highestNextId
  }

  /** Drops the folded state of a queue. */
  forget(queue: QueueId): void {
    this.#tracked.delete(queue)
  }

  /** Drops all folded states. */
  forgetAll(): void {
    this.#tracked.clear()
    this.kept.forgetAll()
  }

  /** Forgets that a bucket was written: the next push that needs it writes it again. */
  forgetBucket({ queue, minute }: ExpiryBucket): void {
    this.#tracked.get(queue)?.buckets?.delete(minute)
  }

  /**
   * Encodes operations and folds them into the states of their queues.
   *
   * @returns the records of the operations, followed by the `s` record of every queue that they change.
   * @throws Error if a queue is not tracked.
   */
  encode(operations: readonly Operation[]): StoreOperation[] {
    const batch: StoreOperation[] = []
    const changed = new Map<QueueId, TrackedQueue>()
    const updates = { records: this.#encoder.encodeUpdates(operations.filter(isPush)), taken: 0 }
    for (const operation of operations) {
      this.kept.fold(operation)
      if (isJson(operation)) {
        batch.push(encodeJson(operation))
      } else if (operation.kind === 'addDeadLetters') {
        encodeBurial(operation, this.#tracked.get(operation.queue), batch)
      } else if (operation.kind === 'removeDeadLetters') {
        encodeDeletions(operation, kinds.deadLetter, batch)
      } else if (operation.kind === 'forgetKept') {
        encodeForgotten(operation, batch)
      } else {
        const tracked = this.#trackedQueue(operation.queue)
        changed.set(operation.queue, tracked)
        if (operation.kind === 'push') {
          takeRecords(operation, tracked, updates, batch)
          const { queue, expiresAtS } = operation
          encodeBucket({ queue, minute: Math.ceil(expiresAtS / 60) }, tracked, batch)
        }
        encodeLeaving(operation, batch)
        fold(tracked.state, operation)
      }
    }
    for (const { state } of changed.values()) {
      this.#highestNextId = Math.max(this.#highestNextId, state.nextId)
    }
    return batch.concat(this.kept.changed(), this.#encoder.encodeQueueStates(changed))
  }

  /** Decodes `u` records; leaves out damaged ones. */
  decodeUpdates(entries: readonly StoreEntry[]): StoredUpdate[] {
    return this.#decodeEach(entries, (entry) => ({
      updateId: keys.updateIdOfKey(entry.key),
      ...record.decodeUpdate(entry),
    }))
  }

  /** Decodes `d` records; returns damaged ones by id only. */
  decodeDeadLetters(entries: readonly StoreEntry[]): Omit<DeadLettersRead, 'next'> {
    const deadLetters: StoredDeadLetter[] = []
    const damagedIds: number[] = []
    for (const entry of entries) {
      const updateId = keys.updateIdOfKey(entry.key)
      const deadLetter = this.#decode(entry, record.decodeDeadLetter)
      if (deadLetter === undefined) damagedIds.push(updateId)
      else deadLetters.push({ updateId, ...deadLetter })
    }
    return { deadLetters, damagedIds }
  }

  /** Decodes `v` records; leaves out damaged ones. */
  decodeLeftUpdates(entries: readonly StoreEntry[]): StoredLeftUpdate[] {
    return this.#decodeEach(entries, (entry) => ({
      updateId: keys.updateIdOfKey(entry.key),
      ...record.decodeLeftUpdate(entry),
    }))
  }

  /** Decodes `l` records; leaves out damaged ones. */
  decodeKeptRuns(entries: readonly StoreEntry[]): KeptRun[] {
    return this.#decodeEach(entries, (entry) => ({
      from: keys.updateIdOfKey(entry.key),
      ...record.decodeKeptRun(entry),
    }))
  }

  /**
   * Takes over `n` records, as far as newer counts are not in memory.
   *
   * @returns the queues whose record is damaged, and which are not known
   */
  readKeptCounts(entries: readonly StoreEntry[]): QueueId[] {
    const damaged: QueueId[] = []
    for (const entry of entries) {
      const queue = keys.queueIdOfKey(entry.key)
      const counts = this.#decode(entry, record.decodeKeptState)
      if (counts !== undefined) this.kept.read(queue, counts)
      else if (!this.kept.has(queue)) damaged.push(queue)
    }
    return damaged
  }

  /** Returns the keys of damaged records that were found, and forgets them. */
  takeDamaged(isWanted: (key: Buffer) => boolean): readonly Buffer[] {
    return this.#damaged.take(isWanted)
  }

  /** Decodes an `i` record. Returns undefined for a damaged one: its update is then pushed again rather than lost. */
  decodeKey(entry: StoreEntry): record.KeyRecord | undefined {
    return this.#decode(entry, record.decodeKey)
  }

  /** Decodes records of one kind; leaves out damaged ones. */
  decodeRecords<const Parts extends KeyParts, Stored>(
    kind: RecordKind<Parts, Stored>,
    entries: readonly StoreEntry[],
  ): RecordOf<Parts, Stored>[] {
    return this.#decodeEach(entries, (entry) => ({
      ...kind.fields(entry.key),
      record: kind.row.codec.decode(entry),
    }))
  }

  /** Decodes what is stored once for each queue; leaves out damaged records. */
  decodeListed<Kind extends ListedKind>(
    kind: Kind,
    entries: readonly StoreEntry[],
  ): StoredRecord<Kind>[] {
    const decode = kind === 's' ? record.decodeQueueState : record.decodeJson
    return this.#decodeEach(entries, (entry) => ({
      queue: keys.queueIdOfKey(entry.key),
      record: decode(entry),
    }))
  }

  /**
   * Decodes `x` records. Also returns damaged ones, because sweeping a queue in which nothing expires is harmless.
   */
  decodeBuckets(entries: readonly StoreEntry[]): ExpiryBucket[] {
    return entries.map((entry) => {
      this.#decode(entry, record.assertMark)
      return kinds.expiry.fields(entry.key)
    })
  }

  /**
   * Decodes the `s`, `w`, `n` and `a` records of a queue and the `b` record of its bot. If the queue is tracked, the folded
   * state takes precedence over the stored one.
   */
  decodeQueue(
    queue: QueueId,
    found: Readonly<Record<'s' | 'w' | 'b' | 'n' | 'a', StoreEntry | undefined>>,
  ): StoredQueue {
    const state = found.s && this.#decode(found.s, record.decodeQueueState)
    const settings = found.w && this.#decode<QueueSettings>(found.w, record.decodeJson)
    const tracked = this.#tracked.get(queue)?.state
    return {
      state: tracked ?? state,
      settings: settings ?? {},
      ...this.#attemptsOf(found.a),
      ...(tracked === undefined && isLost(found.s, state) ? { isStateLost: true } : {}),
      ...this.#keptOf(found.n),
      ...(isLost(found.w, settings) ? { areSettingsLost: true } : {}),
      ...this.decodeBot(found.b),
    }
  }

  /** Decodes the `b` record of a bot. */
  decodeBot(entry: StoreEntry | undefined): Pick<StoredQueue, 'bot' | 'isDamaged'> {
    const bot = entry && this.#decode<BotRecord>(entry, record.decodeJson)
    return { bot, ...(isLost(entry, bot) ? { isDamaged: true } : {}) }
  }

  #keptOf(entry: StoreEntry | undefined): Pick<StoredQueue, 'isKeptLost'> {
    if (entry === undefined || this.readKeptCounts([entry]).length === 0) return {}
    return { isKeptLost: true }
  }

  #attemptsOf(entry: StoreEntry | undefined): Pick<StoredQueue, 'attempts'> {
    const attempts = entry && this.#decode<AttemptsRecord>(entry, record.decodeJson)
    return attempts === undefined ? {} : { attempts }
  }

  #decodeEach<T>(entries: readonly StoreEntry[], decode: (entry: StoreEntry) => T): T[] {
    const decoded: T[] = []
    for (const entry of entries) {
      const each = this.#decode(entry, decode)
      if (each !== undefined) decoded.push(each)
    }
    return decoded
  }

  /** Returns undefined and reports the record if it cannot be decoded. */
  #decode<T>(entry: StoreEntry, decode: (entry: StoreEntry) => T): T | undefined {
    try {
      return decode(entry)
    } catch (error) {
      this.#damaged.found(entry, error)
      return undefined
    }
  }

  #trackedQueue(queue: QueueId): TrackedQueue {
    const tracked = this.#tracked.get(queue)
    if (tracked === undefined)
      throw new Error(`queue ${queue} was committed to before it was tracked`)
    return tracked
  }
}

function isLost(entry: StoreEntry | undefined, decoded: unknown): boolean {
  return entry !== undefined && decoded === undefined
}

function isPush(operation: Operation): operation is PushOperation {
  return operation.kind === 'push'
}

/**
 * Takes the records of the next push. A key comes after its update: if damage cut the batch off between the two, a key alone would
 * lose that update.
 */
function takeRecords(
  push: PushOperation,
  tracked: TrackedQueue,
  from: { readonly records: readonly StoreOperation[]; taken: number },
  batch: StoreOperation[],
): void {
  const isKeyed = keyedAtMs(push) !== undefined
  if (isKeyed && tracked.keysClaimed > 0) tracked.keysClaimed -= 1
  for (const end = from.taken + (isKeyed ? 2 : 1); from.taken < end; from.taken++) {
    const put = from.records[from.taken]
    if (put !== undefined) batch.push(put)
  }
}

function encodeBurial(
  { queue, deadLetters }: AddDeadLettersOperation,
  tracked: TrackedQueue | undefined,
  batch: StoreOperation[],
): void {
  for (const deadLetter of deadLetters) {
    const key = kinds.deadLetter.key(queue, deadLetter.updateId)
    batch.push({ type: 'put', key, value: record.encodeLeftUpdate(key, deadLetter) })
    encodeBucket({ queue, minute: lastMinuteOf(queue, deadLetter.leftAtMs) }, tracked, batch)
  }
}

const minutesPerDay = 24 * 60

/**
 * Returns the minute in which the sweeper removes a dead letter: the first minute after its seven days that equals
 * the bot id modulo 1,440. A queue's dead letters therefore cost one bucket a day, and the bots are spread over the
 * day instead of all being swept at midnight.
 */
function lastMinuteOf(queue: QueueId, leftAtMs: number): number {
  const own = keys.botIdOf(queue) % minutesPerDay
  const minute = Math.ceil((leftAtMs + deadLetterLifeMs) / 60_000)
  return Math.ceil((minute - own) / minutesPerDay) * minutesPerDay + own
}

/**
 * This many expiry minutes are remembered per queue, so that a bucket is written once and not per update. Chosen: updates
 * of one type expire in one or two minutes; forgetting costs one small record.
 */
const expiryBucketsRememberedMax = 64

function encodeBucket(
  { queue, minute }: ExpiryBucket,
  tracked: TrackedQueue | undefined,
  batch: StoreOperation[],
): void {
  if (tracked !== undefined) {
    tracked.buckets ??= new Set()
    const { buckets } = tracked
    if (buckets.has(minute)) return
    if (buckets.size >= expiryBucketsRememberedMax) buckets.clear()
    buckets.add(minute)
  }
  const key = kinds.expiry.key(minute, queue)
  batch.push({ type: 'put', key, value: record.encodeMark(key) })
}

function encodeLeaving(operation: QueueOperation, batch: StoreOperation[]): void {
  if (operation.kind === 'delete') encodeRemoval(operation, batch)
  else if (operation.kind === 'confirm' || operation.kind === 'drop') encodeRun(operation, batch)
}

/** An update that is kept gets another key, so that nothing takes it for a pending one. */
function encodeRemoval(operation: DeleteOperation, batch: StoreOperation[]): void {
  encodeDeletions(operation, kinds.update, batch)
  for (const left of operation.kept ?? []) {
    const key = kinds.leftUpdate.key(operation.queue, left.updateId)
    batch.push({ type: 'put', key, value: record.encodeLeftUpdate(key, left) })
  }
}

function encodeRun(operation: AdvanceOperation, batch: StoreOperation[]): void {
  const { kind, queue, from, floor: end, removedCount: count, removedBytes: bytes } = operation
  const { keptSinceMs: leftAtMs } = operation
  if (leftAtMs === undefined) return
  const key = kinds.keptRun.key(queue, from)
  const reason = kind === 'confirm' ? 'confirmed' : 'dropped'
  const value = record.encodeKeptRun(key, { reason, leftAtMs, end, count, bytes })
  batch.push({ type: 'put', key, value })
}

function encodeForgotten(operation: ForgetKeptOperation, batch: StoreOperation[]): void {
  for (const { from } of operation.runs) {
    batch.push({ type: 'del', key: kinds.keptRun.key(operation.queue, from) })
  }
  encodeDeletions(operation, kinds.leftUpdate, batch)
  const { queue, shrunk } = operation
  if (shrunk === undefined) return
  encodeDeletions({ queue, updateIds: shrunk.updateIds }, kinds.update, batch)
  for (const { from, ...run } of shrunk.runs) {
    const key = kinds.keptRun.key(queue, from)
    batch.push({ type: 'put', key, value: record.encodeKeptRun(key, run) })
  }
}

function encodeDeletions(
  { queue, updateIds }: Pick<RemoveDeadLettersOperation, 'queue' | 'updateIds'>,
  kind: KindById,
  batch: StoreOperation[],
): void {
  for (const updateId of updateIds) batch.push(kind.del(queue, updateId))
}

function encodeJson(operation: JsonOperation): StoreOperation {
  const kind: AnyKind = jsonKinds[operation.kind]
  return kind.written(operation, operation.record)
}
