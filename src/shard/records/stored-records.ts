/** Request and result types of shard reads. */
import type { AccessKeyRecord } from './access-key-record.ts'
import type { AttemptsRecord } from './attempts-record.ts'
import type { BotRecord, QueueSettings } from './bot-record.ts'
import type { QueueId } from './record-keys.ts'
import type {
  DeadLetterRecord,
  KeptRunRecord,
  LeftUpdateRecord,
  QueueState,
  UpdateRecord,
} from './record.ts'
import type { ReplayRecord } from './replay-record.ts'

/** An update as it was stored. */
export interface StoredUpdate extends UpdateRecord {
  readonly updateId: number
}

/** A dead letter as it was stored, under the id its update had. */
export interface StoredDeadLetter extends DeadLetterRecord {
  readonly updateId: number
}

/** A kept update as it was stored: it has left its queue alone. */
export interface StoredLeftUpdate extends LeftUpdateRecord {
  readonly updateId: number
}

/** Updates that left together, with ids from `from` up to, but not including, `end`. */
export interface KeptRun extends KeptRunRecord {
  readonly from: number
}

/** Which updates or dead letters of one queue to read. */
export interface IdRange {
  readonly queue: QueueId
  /** First id of the range. */
  readonly from: number
  /** First id after the range. */
  readonly to: number
  /** Maximum number of records. */
  readonly limit: number
  /** The read stops after the record with which it reaches this number of value bytes. */
  readonly bytesMax?: number
}

/** The result of reading a range of updates. */
export interface UpdatesRead {
  readonly updates: readonly StoredUpdate[]
  /** The id at which to continue: after every record that was read, including damaged ones. */
  readonly next: number
}

/** The result of reading a range of kept updates that have left alone. */
export interface LeftUpdatesRead {
  readonly updates: readonly StoredLeftUpdate[]
  /** The id at which to continue. */
  readonly next: number
}

/** The result of reading a range of dead letters. */
export interface DeadLettersRead {
  readonly deadLetters: readonly StoredDeadLetter[]
  /** Ids of dead letters whose record is damaged. */
  readonly damagedIds: readonly number[]
  /** The id at which to continue. */
  readonly next: number
}

/** A replay as it was stored. */
export interface StoredReplay {
  readonly queue: QueueId
  readonly jobId: number
  readonly record: ReplayRecord
}

/** A key of the private API as it was stored. */
export interface StoredAccessKey {
  /** 16 hexadecimal digits. */
  readonly id: string
  readonly record: AccessKeyRecord
}

/** What is stored of one queue. */
export interface StoredQueue {
  /** Undefined for a queue that has no `s` record. */
  readonly state: QueueState | undefined
  readonly settings: QueueSettings
  /** Always undefined for a /test/ queue. */
  readonly bot: BotRecord | undefined
  /** Undefined if none are stored, or if they cannot be read. */
  readonly attempts?: AttemptsRecord
  /** True if the `s` record cannot be read. `Shard.load` then recounts the queue and never returns this. */
  readonly isStateLost?: true
  /** True if the `n` record cannot be read. `Shard.load` then counts what the queue keeps and never returns this. */
  readonly isKeptLost?: true
  /** True if the `w` record cannot be read. `settings` are then those of a queue for which none were ever set. */
  readonly areSettingsLost?: true
  /** True if the `b` record cannot be read, so the bot's token is unknown. */
  readonly isDamaged?: true
}

/** What is listed: bots (`b`), settings of queues (`w`), or ids and counts of queues (`s`). */
export type ListedKind = 'b' | 'w' | 's'

/** A bot, or a queue's settings, or its ids and counts, as `ShardLists.records` returns them. */
export interface StoredRecord<Kind extends ListedKind> {
  readonly queue: QueueId
  readonly record: Kind extends 'b' ? BotRecord : Kind extends 'w' ? QueueSettings : QueueState
}

/** Identifies a dead letter of a shard. */
export interface DeadLetterId {
  readonly queue: QueueId
  readonly updateId: number
}

/** A page of queue records in id order, beginning after the queue `after`. */
export interface QueuesPage {
  readonly after: QueueId
  readonly limit: number
}

/** An expiry bucket: something in this queue may expire in this minute. */
export interface ExpiryBucket {
  /** Minutes since 1970. */
  readonly minute: number
  readonly queue: QueueId
}
