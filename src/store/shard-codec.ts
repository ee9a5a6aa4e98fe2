/**
 * Between operations and records, with no IO of its own: what a group of operations writes, and what is read back.
 *
 * It holds the ids and counts of the queues that are in memory, because a group writes them as its operations have
 * left them: `encode` folds every operation into its queue's state, so that it must be given each operation once, in
 * commit order. A record that cannot be decoded is logged and left out.
 */
import { deadLetterLifeMs, expiryBucketsRememberedMax } from '../limits.ts'
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
import type { ShardLog } from './shard-recovery.ts'
import type { StoreEntry, StoreOperation } from './store.ts'
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
  readonly #index: number
  readonly #log: Pick<ShardLog, 'error'>

  /** `index` is the shard's, for the log. */
  constructor({ index, log }: { readonly index: number; readonly log: Pick<ShardLog, 'error'> }) {
    this.#index = index
    this.#log = log
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
      batch.push({
        type: 'put',
        key: keys.queueKey('s', queue),
        value: record.encodeQueueState(state),
      })
    }
    return batch
  }

  decodeUpdates(entries: readonly StoreEntry[]): StoredUpdate[] {
    return entries.flatMap(({ key, value }) => {
      try {
        return [{ updateId: keys.updateIdOfKey(key), ...record.decodeUpdate(value) }]
      } catch (error) {
        this.#logDamage(key, error)
        return []
      }
    })
  }

  decodeLetters(entries: readonly StoreEntry[]): Omit<LettersRead, 'next'> {
    const letters: StoredLetter[] = []
    const damagedIds: number[] = []
    for (const { key, value } of entries) {
      const updateId = keys.updateIdOfKey(key)
      try {
        letters.push({ updateId, ...record.decodeLetter(value) })
      } catch (error) {
        this.#logDamage(key, error)
        damagedIds.push(updateId)
      }
    }
    return { letters, damagedIds }
  }

  /** A damaged one stands for nothing: its update is pushed again rather than lost. */
  decodeKey(key: Buffer, value: Buffer): record.KeyRecord | undefined {
    try {
      return record.decodeKey(value)
    } catch (error) {
      this.#logDamage(key, error)
      return undefined
    }
  }

  decodeListed<Kind extends 'b' | 'w'>(entries: readonly StoreEntry[]): ListedRecord<Kind>[] {
    return entries.flatMap(({ key, value }) => {
      try {
        return [{ queue: keys.queueIdOfQueueKey(key), record: record.decodeJson(value) }]
      } catch (error) {
        this.#logDamage(key, error)
        return []
      }
    })
  }

  /** From the values of its `s` and `w` records and of its bot's; the folded state is newer than the stored one. */
  decodeQueue(queue: QueueId, values: readonly (Buffer | undefined)[]): StoredQueue {
    const [state, settings, bot] = values
    try {
      return {
        state: this.#tracked.get(queue)?.state ?? (state && record.decodeQueueState(state)),
        settings: settings === undefined ? {} : record.decodeJson(settings),
        bot: bot === undefined ? undefined : record.decodeJson(bot),
      }
    } catch (error) {
      this.#logDamage(keys.queueKey('s', queue), error)
      return { state: undefined, settings: {}, bot: undefined, isDamaged: true }
    }
  }

  #trackedQueue(queue: QueueId): TrackedQueue {
    const tracked = this.#tracked.get(queue)
    if (tracked === undefined)
      throw new Error(`queue ${queue} was committed to before it was tracked`)
    return tracked
  }

  #logDamage(key: Buffer, error: unknown): void {
    this.#log.error(
      { shard: this.#index, key: key.toString('hex'), error: String(error) },
      'a record of the store is damaged and cannot be used',
    )
  }
}

function encodePush(
  operation: PushOperation,
  tracked: TrackedQueue,
  batch: StoreOperation[],
): void {
  const { queue, updateId } = operation
  batch.push({
    type: 'put',
    key: keys.updateKey(queue, updateId),
    value: record.encodeUpdate(operation),
  })
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
  return {
    type: 'put',
    key: keys.idempotencyKey(keys.halfDayOf(acceptedAtMs), queue, keyHash),
    value: record.encodeKey({ updateId, acceptedAtMs, textHash }),
  }
}

function encodeBurial(
  { queue, letters }: BuryOperation,
  tracked: TrackedQueue | undefined,
  batch: StoreOperation[],
): void {
  for (const letter of letters) {
    const key = keys.letterKey(queue, letter.updateId)
    batch.push({ type: 'put', key, value: record.encodeLetter(letter) })
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
  batch.push({ type: 'put', key: keys.expiryKey(minute, queue), value: Buffer.alloc(0) })
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
  return { type: 'put', key, value: record.encodeJson(operation.record) }
}
