/**
 * Between operations and records, with no IO of its own: what a group of operations writes, and what is read back.
 *
 * It holds the ids and counts of the queues that are in memory, because a group writes them as its operations have
 * left them: `encode` folds every operation into its queue's state, so that it must be given each operation once, in
 * commit order. A record that cannot be decoded is left out and told to damaged-records.ts.
 */
import type { BotRecord, QueueSettings } from './bot-record.ts'
import { deadLetterLifeMs, expiryBucketsRememberedMax } from '../limits.ts'
import { DamagedRecords, type DamagedRecordsOptions } from './damaged-records.ts'
import * as keys from './keys.ts'
import type { QueueId } from './keys.ts'
import {
  type BuryOperation,
  type DeleteOperation,
  type IdempotencyFact,
  type Operation,
  type PushOperation,
  type UnburyOperation,
  fold,
} from './operations.ts'
import * as record from './record.ts'
import type { QueueState } from './record.ts'
import type { StoreEntry, StoreOperation } from '../store/store.ts'
import type {
  ExpiryBucket,
  LettersRead,
  ListedRecord,
  StoredLetter,
  StoredQueue,
  StoredUpdate,
} from './stored.ts'

interface TrackedQueue {
  readonly state: QueueState
  /** Minutes whose expiry bucket is written already, so that it is written once and not per update. */
  buckets: Set<number> | undefined
}

export class ShardCodec {
  readonly #tracked = new Map<QueueId, TrackedQueue>()
  readonly #damaged: DamagedRecords
  #highestNextId = 0

  constructor(options: DamagedRecordsOptions) {
    this.#damaged = new DamagedRecords(options)
  }

  /** Folds what is encoded of a queue into `state` from now on, unless it does so already. */
  track(queue: QueueId, state: QueueState): void {
    if (!this.#tracked.has(queue)) {
      this.#tracked.set(queue, { state: { ...state }, buckets: undefined })
    }
  }

  /** The folded state of a queue that is tracked. */
  stateOf(queue: QueueId): Readonly<QueueState> | undefined {
    return this.#tracked.get(queue)?.state
  }

  /** Of all queues that were encoded so far. */
  get highestNextId(): number {
    return this.#highestNextId
  }

  forget(queue: QueueId): void {
    this.#tracked.delete(queue)
  }

  forgetAll(): void {
    this.#tracked.clear()
  }

  /** The next push that needs this bucket writes it again. */
  forgetBucket({ queue, minute }: ExpiryBucket): void {
    this.#tracked.get(queue)?.buckets?.delete(minute)
  }

  /** What makes the operations durable: their records, and behind them the folded state of every queue they change. */
  encode(operations: readonly Operation[]): StoreOperation[] {
    const batch: StoreOperation[] = []
    const changed = new Map<QueueId, TrackedQueue>()
    for (const operation of operations) {
      if (operation.kind === 'bot' || operation.kind === 'settings') {
        batch.push(encodeMeta(operation))
      } else if (operation.kind === 'bury') {
        encodeBurial(operation, this.#tracked.get(operation.queue), batch)
      } else if (operation.kind === 'unbury') {
        encodeDeletions(operation, keys.letterKey, batch)
      } else {
        const tracked = this.#trackedQueue(operation.queue)
        changed.set(operation.queue, tracked)
        if (operation.kind === 'push') encodePush(operation, tracked, batch)
        if (operation.kind === 'delete') encodeDeletions(operation, keys.updateKey, batch)
        fold(tracked.state, operation)
      }
    }
    for (const [queue, { state }] of changed) {
      this.#highestNextId = Math.max(this.#highestNextId, state.nextId)
      const key = keys.queueKey('s', queue)
      batch.push({ type: 'put', key, value: record.encodeQueueState(key, state) })
    }
    return batch
  }

  decodeUpdates(entries: readonly StoreEntry[]): StoredUpdate[] {
    return this.#decodeEach(entries, (entry) => ({
      updateId: keys.updateIdOfKey(entry.key),
      ...record.decodeUpdate(entry),
    }))
  }

  decodeLetters(entries: readonly StoreEntry[]): Omit<LettersRead, 'next'> {
    const letters: StoredLetter[] = []
    const damagedIds: number[] = []
    for (const entry of entries) {
      const updateId = keys.updateIdOfKey(entry.key)
      const letter = this.#decode(entry, record.decodeLetter)
      if (letter === undefined) damagedIds.push(updateId)
      else letters.push({ updateId, ...letter })
    }
    return { letters, damagedIds }
  }

  /** A damaged one stands for nothing: its update is pushed again rather than lost. */
  decodeKey(entry: StoreEntry): record.KeyRecord | undefined {
    return this.#decode(entry, record.decodeKey)
  }

  decodeListed<Kind extends 'b' | 'w'>(entries: readonly StoreEntry[]): ListedRecord<Kind>[] {
    return this.#decodeEach(entries, (entry) => ({
      queue: keys.queueIdOfQueueKey(entry.key),
      record: record.decodeJson(entry),
    }))
  }

  /** A damaged one is seen to as well: to look into a queue in which nothing expires is harmless. */
  decodeBuckets(entries: readonly StoreEntry[]): ExpiryBucket[] {
    return entries.map((entry) => {
      this.#decode(entry, record.assertMark)
      return keys.parseExpiryKey(entry.key)
    })
  }

  /** From its `s` and `w` records and its bot's; the folded state is newer than the stored one. */
  decodeQueue(
    queue: QueueId,
    found: Readonly<Record<'s' | 'w' | 'b', StoreEntry | undefined>>,
  ): StoredQueue {
    const state = found.s && this.#decode(found.s, record.decodeQueueState)
    const settings = found.w && this.#decode<QueueSettings>(found.w, record.decodeJson)
    const bot = found.b && this.#decode<BotRecord>(found.b, record.decodeJson)
    const tracked = this.#tracked.get(queue)?.state
    return {
      state: tracked ?? state,
      settings: settings ?? {},
      bot,
      ...(tracked === undefined && isLost(found.s, state) ? { isStateLost: true } : {}),
      ...(isLost(found.w, settings) ? { areSettingsLost: true } : {}),
      ...(isLost(found.b, bot) ? { isDamaged: true } : {}),
    }
  }

  #decodeEach<T>(entries: readonly StoreEntry[], decode: (entry: StoreEntry) => T): T[] {
    const decoded: T[] = []
    for (const entry of entries) {
      const each = this.#decode(entry, decode)
      if (each !== undefined) decoded.push(each)
    }
    return decoded
  }

  /** Undefined where the record cannot be read. */
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

function encodePush(
  operation: PushOperation,
  tracked: TrackedQueue,
  batch: StoreOperation[],
): void {
  const { queue, updateId } = operation
  const key = keys.updateKey(queue, updateId)
  batch.push({ type: 'put', key, value: record.encodeUpdate(key, operation) })
  // Behind its update: of a batch cut off by damage a key without its update would lose it.
  if (operation.idempotency !== undefined) {
    batch.push(encodeIdempotency(operation, operation.idempotency))
  }
  encodeBucket({ queue, minute: Math.ceil(operation.expiresAtS / 60) }, tracked, batch)
}

function encodeIdempotency(
  { queue, updateId }: PushOperation,
  { keyHash, textHash, acceptedAtMs }: IdempotencyFact,
): StoreOperation {
  const key = keys.idempotencyKey(keys.halfDayOf(acceptedAtMs), queue, keyHash)
  return { type: 'put', key, value: record.encodeKey(key, { updateId, acceptedAtMs, textHash }) }
}

function encodeBurial(
  { queue, letters }: BuryOperation,
  tracked: TrackedQueue | undefined,
  batch: StoreOperation[],
): void {
  for (const letter of letters) {
    const key = keys.letterKey(queue, letter.updateId)
    batch.push({ type: 'put', key, value: record.encodeLetter(key, letter) })
    encodeBucket({ queue, minute: lastMinuteOf(queue, letter.buriedAtMs) }, tracked, batch)
  }
}

const minutesPerDay = 24 * 60

/**
 * When the sweeper looks for a letter that is past its time. Once a day for a queue, so that its letters cost it one
 * bucket a day, and each bot at a minute of its own, so that not all come at midnight.
 */
function lastMinuteOf(queue: QueueId, buriedAtMs: number): number {
  const own = keys.botIdOf(queue) % minutesPerDay
  const minute = Math.ceil((buriedAtMs + deadLetterLifeMs) / 60_000)
  return Math.ceil((minute - own) / minutesPerDay) * minutesPerDay + own
}

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
  const key = keys.expiryKey(minute, queue)
  batch.push({ type: 'put', key, value: record.encodeMark(key) })
}

function encodeDeletions(
  { queue, updateIds }: DeleteOperation | UnburyOperation,
  keyOf: (queue: QueueId, updateId: number) => Buffer,
  batch: StoreOperation[],
): void {
  for (const updateId of updateIds) batch.push({ type: 'del', key: keyOf(queue, updateId) })
}

function encodeMeta(operation: Operation & { kind: 'bot' | 'settings' }): StoreOperation {
  const key = keys.queueKey(operation.kind === 'bot' ? 'b' : 'w', operation.queue)
  if (operation.record === null) return { type: 'del', key }
  return { type: 'put', key, value: record.encodeJson(key, operation.record) }
}
