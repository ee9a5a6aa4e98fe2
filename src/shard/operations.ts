/**
 * The operations of a shard. Every durable change is a list of them, and folding them in order produces the shard's
 * state: in its owner, after a restart, and in a copy on another machine. An operation therefore carries facts, not
 * intentions: ids are allocated and removed updates are counted before it is committed.
 */
import type { AccessKeyRecord } from './access-key-record.ts'
import type { AttemptsRecord } from './attempts-record.ts'
import type { BotRecord, QueueSettings } from './bot-record.ts'
import type { QueueId } from './record-keys.ts'
import type { QueueState, UpdateRecord } from './record.ts'
import type { StoredDeadLetter } from './stored.ts'

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

/** Registers or changes a bot, or removes it (null). */
export interface BotOperation {
  readonly kind: 'bot'
  readonly queue: QueueId
  readonly record: BotRecord | null
}

/** Sets the webhook and allowed_updates of a queue, or removes them (null). */
export interface SettingsOperation {
  readonly kind: 'settings'
  readonly queue: QueueId
  readonly record: QueueSettings | null
}

/** Replaces what is stored of the last attempts of a webhook, or removes it (null). */
export interface AttemptsOperation {
  readonly kind: 'attempts'
  readonly queue: QueueId
  readonly record: AttemptsRecord | null
}

/** Stores a key of the private API, or removes it (null). Only shard 0 has these. */
export interface AccessKeyOperation {
  readonly kind: 'accessKey'
  /** 16 hexadecimal digits. */
  readonly id: string
  readonly record: AccessKeyRecord | null
}

/** Operations that change the ids and counts of a queue. */
export type QueueOperation = PushOperation | AdvanceOperation | DeleteOperation | RenumberOperation

/** Operations on dead letters. They do not change the ids and counts of the queue. */
export type DeadLetterOperation = AddDeadLettersOperation | RemoveDeadLettersOperation

/** Any operation that `Shard.commit` accepts. */
export type Operation =
  | QueueOperation
  | DeadLetterOperation
  | BotOperation
  | SettingsOperation
  | AttemptsOperation
  | AccessKeyOperation

/**
 * Applies an operation to the ids and counts of its queue.
 *
 * @param state - changed in place.
 */
export function fold(state: QueueState, operation: QueueOperation): void {
  if (operation.kind === 'push') {
    state.nextId = operation.updateId + 1
    state.liveCount += 1
    state.liveBytes += operation.text.length
    if (operation.idempotency !== undefined) foldKey(state, operation.idempotency)
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

function foldKey(state: QueueState, { acceptedAtMs }: IdempotencyFact): void {
  const day = dayOf(acceptedAtMs)
  state.idempotencyCount = state.idempotencyDay === day ? state.idempotencyCount + 1 : 1
  state.idempotencyDay = day
}
