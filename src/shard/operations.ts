/**
 * Everything durable that happens to a shard is a list of these operations. Folding them in order gives the
 * shard's state: in its owner, after a restart, and in a copy on another machine. An operation therefore
 * carries facts, not intentions: ids are allocated and removed counts are known before it is committed.
 */
import type { BotRecord, QueueSettings } from './bot-record.ts'
import type { QueueId } from './keys.ts'
import type { QueueState, UpdateRecord } from './record.ts'
import type { StoredLetter } from './stored.ts'

/** The key a producer gave an update, and what tells a repetition from another update with the same key. */
export interface IdempotencyFact {
  /** 16 bytes as latin1, like the other. */
  readonly keyHash: string
  readonly textHash: string
  readonly acceptedAtMs: number
}

/** An accepted update; its id is the queue's `nextId`. */
export interface PushOperation extends UpdateRecord {
  readonly kind: 'push'
  readonly queue: QueueId
  readonly updateId: number
  readonly idempotency?: IdempotencyFact | undefined
}

/** Everything below `floor` leaves the queue: confirmed by the bot, or dropped at its request. */
export interface AdvanceOperation {
  readonly kind: 'confirm' | 'drop'
  readonly queue: QueueId
  /** The floor before, where dead records begin. */
  readonly from: number
  readonly floor: number
  readonly removedCount: number
  readonly removedBytes: number
}

/** Single updates leave the queue: delivered or expired. */
export interface DeleteOperation {
  readonly kind: 'delete'
  readonly queue: QueueId
  readonly updateIds: readonly number[]
  readonly removedBytes: number
  /** Nothing below it is live any more. */
  readonly floor: number
}

/** An empty queue begins a new numbering (SPEC 4). */
export interface RenumberOperation {
  readonly kind: 'renumber'
  readonly queue: QueueId
  readonly nextId: number
}

/** Updates that were given up are kept as dead letters; a `delete` beside it takes them out of the queue. */
export interface BuryOperation {
  readonly kind: 'bury'
  readonly queue: QueueId
  readonly letters: readonly StoredLetter[]
}

/** Dead letters are gone: replayed by a `push` beside it, dropped, or kept long enough. */
export interface UnburyOperation {
  readonly kind: 'unbury'
  readonly queue: QueueId
  readonly updateIds: readonly number[]
}

/** The bot itself: registered, changed, or (null) removed. */
export interface BotOperation {
  readonly kind: 'bot'
  readonly queue: QueueId
  readonly record: BotRecord | null
}

/** A queue's webhook and allowed_updates. */
export interface SettingsOperation {
  readonly kind: 'settings'
  readonly queue: QueueId
  readonly record: QueueSettings | null
}

export type QueueOperation = PushOperation | AdvanceOperation | DeleteOperation | RenumberOperation

/** These change no ids and counts of the queue. */
export type LetterOperation = BuryOperation | UnburyOperation

export type Operation = QueueOperation | LetterOperation | BotOperation | SettingsOperation

/** Applies an operation to the ids and counts of its queue. */
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

/** Keys are counted by the UTC day. */
export function dayOf(timeMs: number): number {
  return Math.floor(timeMs / 86_400_000)
}

function foldKey(state: QueueState, { acceptedAtMs }: IdempotencyFact): void {
  const day = dayOf(acceptedAtMs)
  state.idempotencyCount = state.idempotencyDay === day ? state.idempotencyCount + 1 : 1
  state.idempotencyDay = day
}
