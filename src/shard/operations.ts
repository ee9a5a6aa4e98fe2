/**
 * The operations of a shard. Every durable change is a list of them, and folding them in order produces the shard's
 * state: in its owner, after a restart, and in a copy on another machine. An operation therefore carries facts, not
 * intentions: ids are allocated and removed updates are counted before it is committed.
 */
import { jsonKinds } from './kinds.ts'
import type { QueueId } from './records/record-keys.ts'
import type { FieldsIn, StoredIn } from './records/record-kind.ts'
import type { KeptCounts, QueueState, UpdateRecord } from './records/record.ts'
import type { KeptRun, StoredDeadLetter, StoredLeftUpdate } from './records/stored-records.ts'
import type { UpdateRows } from './update-rows.ts'
import { kib } from '../kit/limits.ts'
import type { AttemptsRecord } from './records/attempts-record.ts'

/**
 * The idempotency key of an update, and the hash that distinguishes a repeat from another update with the same key.
 */
export interface IdempotencyFact {
  /** The first 16 bytes of SHA-256 as a latin1 string, like `textHash`. */
  readonly keyHash: string
  readonly textHash: string
  /** Wall time of acceptance in milliseconds. */
  readonly acceptedAtMs: number
}

/** Stores an accepted update. Its id is the queue's `nextId`. */
export interface PushOperation extends UpdateRecord {
  readonly kind: 'push'
  readonly queue: QueueId
  readonly updateId: number
  readonly idempotency?: IdempotencyFact | undefined
}

/** Rows of updates that one call pushes to one shard. */
export interface PushedRows {
  readonly rows: UpdateRows
  /** Wall time of acceptance in milliseconds. The times to live of the rows count from here. */
  readonly acceptedAtMs: number
}

/** A push of an update that is a row. Whatever is not needed for every update is taken from the row when it is asked for. */
export class RowPush implements PushOperation {
  readonly kind = 'push'
  readonly of: PushedRows
  /** The number of the row. */
  readonly nth: number
  readonly queue: QueueId
  readonly updateId: number

  constructor(of: PushedRows, push: Pick<RowPush, 'nth' | 'queue' | 'updateId'>) {
    this.of = of
    this.nth = push.nth
    this.queue = push.queue
    this.updateId = push.updateId
  }

  get typeNumber(): number {
    return this.of.rows.typeOf(this.nth)
  }

  get acceptedAtS(): number {
    return Math.floor(this.of.acceptedAtMs / 1000)
  }

  get expiresAtS(): number {
    return (this.of.acceptedAtMs + this.of.rows.ttlOf(this.nth) * 1000) / 1000
  }

  get orderingKey(): string {
    return this.of.rows.orderingKeyOf(this.nth)
  }

  get traceparent(): string | undefined {
    return this.of.rows.traceparentOf(this.nth)
  }

  get text(): Buffer {
    return this.of.rows.textOf(this.nth)
  }

  get idempotency(): IdempotencyFact | undefined {
    const { rows, acceptedAtMs } = this.of
    if (!rows.hasIdempotencyKey(this.nth)) return undefined
    const { nth } = this
    const { keyHashes } = rows
    return { keyHash: keyHashes.keyHash(nth), textHash: keyHashes.textHash(nth), acceptedAtMs }
  }
}

/** Returns when the idempotency key of a push was accepted; undefined if it has none. */
export function keyedAtMs(push: PushOperation): number | undefined {
  if (!(push instanceof RowPush)) return push.idempotency?.acceptedAtMs
  return push.of.rows.hasIdempotencyKey(push.nth) ? push.of.acceptedAtMs : undefined
}

/** Returns the length of the text of a push, without a view of it. */
export function textBytesOf(push: PushOperation): number {
  return push instanceof RowPush ? push.of.rows.textBytes(push.nth) : push.text.length
}

/** Removes every update below `floor` from the queue: the bot confirmed them, or asked for them to be dropped. */
export interface AdvanceOperation {
  readonly kind: 'confirm' | 'drop'
  readonly queue: QueueId
  /** The previous floor, at which the dead records begin. */
  readonly from: number
  readonly floor: number
  readonly removedCount: number
  /** Total size of the removed updates' texts. */
  readonly removedBytes: number
  /** The wall time at which they left, if their records are kept to be looked at. */
  readonly keptSinceMs?: number | undefined
}

/** Removes single updates from the queue: they were delivered or have expired. */
export interface DeleteOperation {
  readonly kind: 'delete'
  readonly queue: QueueId
  readonly updateIds: readonly number[]
  /** Total size of the removed updates' texts. */
  readonly removedBytes: number
  /** The queue's new floor: no update below it is pending any more. */
  readonly floor: number
  /** Those of them that are kept to be looked at. */
  readonly kept?: readonly StoredLeftUpdate[] | undefined
}

/** Deletes what was kept of updates that have left. */
export interface ForgetKeptOperation extends Readonly<KeptCounts> {
  readonly kind: 'forgetKept'
  readonly queue: QueueId
  readonly runs: readonly Pick<KeptRun, 'from' | 'end' | 'count'>[]
  /** Updates that have left alone. */
  readonly updateIds: readonly number[]
  /** Runs that lose some updates, as they are then, and the ids of those updates. */
  readonly shrunk?: {
    readonly runs: readonly KeptRun[]
    readonly updateIds: readonly number[]
  }
}

/** Begins a new numbering in an empty queue (protocol.md §4). */
export interface RenumberOperation {
  readonly kind: 'renumber'
  readonly queue: QueueId
  readonly nextId: number
}

/**
 * Stores dead letters for updates that were given up. A `delete` in the same group removes the updates from the
 * queue.
 */
export interface AddDeadLettersOperation {
  readonly kind: 'addDeadLetters'
  readonly queue: QueueId
  readonly deadLetters: readonly StoredDeadLetter[]
}

/** Removes dead letters: replayed by a `push` in the same group, dropped, evicted or expired. */
export interface RemoveDeadLettersOperation {
  readonly kind: 'removeDeadLetters'
  readonly queue: QueueId
  readonly updateIds: readonly number[]
}

type JsonKinds = typeof jsonKinds

/**
 * Puts a record of JSON, or deletes it (null): the name of its kind in kinds.ts, the values of its key, and the record. The pushes of
 * a slice of a replay are in the same group as its record.
 */
export type OperationOf<Name extends keyof JsonKinds> = {
  readonly kind: Name
  readonly record: StoredIn<JsonKinds[Name]> | null
} & FieldsIn<JsonKinds[Name]>

/** An operation on any record of JSON. */
export type JsonOperation = { [Name in keyof JsonKinds]: OperationOf<Name> }[keyof JsonKinds]

export function isJson(operation: Operation): operation is JsonOperation {
  return operation.kind in jsonKinds
}

/** Operations that change the ids and counts of a queue. */
export type QueueOperation = PushOperation | AdvanceOperation | DeleteOperation | RenumberOperation

/** Operations on dead letters. They do not change the ids and counts of the queue. */
export type DeadLetterOperation = AddDeadLettersOperation | RemoveDeadLettersOperation

/** Any operation that `Shard.commit` accepts. */
export type Operation = QueueOperation | DeadLetterOperation | ForgetKeptOperation | JsonOperation

/**
 * Applies an operation to the ids and counts of its queue.
 *
 * @param state - changed in place.
 */
export function fold(state: QueueState, operation: QueueOperation): void {
  if (operation.kind === 'push') {
    state.nextId = operation.updateId + 1
    state.liveCount += 1
    state.liveBytes += textBytesOf(operation)
    const keyAtMs = keyedAtMs(operation)
    if (keyAtMs !== undefined) foldKey(state, keyAtMs)
  } else if (operation.kind === 'renumber') {
    state.nextId = operation.nextId
    state.floor = operation.nextId
  } else {
    const removedCount =
      operation.kind === 'delete' ? operation.updateIds.length : operation.removedCount
    state.floor = Math.max(state.floor, operation.floor)
    state.liveCount -= removedCount
    state.liveBytes -= operation.removedBytes
  }
}

/** Returns the UTC day by which idempotency keys are counted, in days since 1970. */
export function dayOf(timeMs: number): number {
  return Math.floor(timeMs / 86_400_000)
}

function foldKey(state: QueueState, acceptedAtMs: number): void {
  const day = dayOf(acceptedAtMs)
  state.idempotencyCount = state.idempotencyDay === day ? state.idempotencyCount + 1 : 1
  state.idempotencyDay = day
}

/**
 * Returns how much work an operation is for the event loop, with one small push as the unit: the cost of encoding its
 * records and passing them to the database. A group is limited by cost and not by the number of operations, because
 * one operation can delete a thousand records or carry half a megabyte.
 */
export function operationCost(operation: Operation): number {
  const { kind } = operation
  if (kind === 'push') return costOfText(textBytesOf(operation))
  if (kind === 'delete') return operation.updateIds.length + costOfTexts(operation.kept ?? [])
  if (kind === 'removeDeadLetters') return operation.updateIds.length
  if (kind === 'forgetKept') {
    const { runs, updateIds, shrunk } = operation
    return runs.length + updateIds.length + (shrunk?.updateIds.length ?? 0)
  }
  if (kind === 'attempts') return costOfAttempts(operation.record)
  return kind === 'addDeadLetters' ? costOfTexts(operation.deadLetters) : 1
}

/**
 * This many bytes of an update add 1 to its cost, because they are copied and summed. Chosen, not measured: with less,
 * groups of large updates become small; with more, they block longer.
 */
const groupCostBytes = 2 * kib

function costOfTexts(updates: readonly { readonly text: Buffer }[]): number {
  return updates.reduce((cost, { text }) => cost + costOfText(text.length), 0)
}

function costOfAttempts(record: AttemptsRecord | null): number {
  return costOfText(record?.texts.reduce((sum, text) => sum + text.length, 0) ?? 0)
}

function costOfText(bytes: number): number {
  return 1 + Math.floor(bytes / groupCostBytes)
}
