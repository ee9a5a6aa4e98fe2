/** What a shard gives of that which it has stored, and how it is asked for it. */
import type { BotRecord, QueueSettings } from './bot-record.ts'
import type { QueueId } from './keys.ts'
import type { LetterRecord, QueueState, UpdateRecord } from './record.ts'

/** An update as it was stored. */
export interface StoredUpdate extends UpdateRecord {
  readonly updateId: number
}

/** A dead letter as it was stored, under the id its update had. */
export interface StoredLetter extends LetterRecord {
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

export interface LettersRead {
  readonly letters: readonly StoredLetter[]
  /** Ids of letters that cannot be read. */
  readonly damagedIds: readonly number[]
  /** Where to read on. */
  readonly next: number
}

export interface StoredQueue {
  readonly state: QueueState | undefined
  readonly settings: QueueSettings
  /** Always undefined for a /test/ queue. */
  readonly bot: BotRecord | undefined
  /** The record of its ids and counts cannot be read. A shard counts the queue anew and does not hand this out. */
  readonly isStateLost?: true
  /** The record of its settings cannot be read: `settings` are those of a queue for which none were ever made. */
  readonly areSettingsLost?: true
  /** The record of its bot cannot be read, so that nobody knows its token. */
  readonly isDamaged?: true
}

export interface ListedRecord<Kind extends 'b' | 'w'> {
  readonly queue: QueueId
  readonly record: Kind extends 'b' ? BotRecord : QueueSettings
}

/** Records of queues with ids above `after`, in the order of their ids. */
export interface QueuesPage {
  readonly after: QueueId
  readonly limit: number
}

/** Something of this queue may expire in this minute. */
export interface ExpiryBucket {
  readonly minute: number
  readonly queue: QueueId
}
