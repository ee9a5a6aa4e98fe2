/** Checks records of any kind, for code that reads the files of a shard and not its queues, and says in words which record a key has. */
import { copiedKey, damagedCopy, kindOf, kindOfLetter } from './kinds.ts'
import { botIdOf, isTestQueue, type QueueId } from './records/record-keys.ts'
import { isIntact } from './records/record.ts'
import type { StoreEntry } from '../store/store.ts'
import type { RecordCheck } from '../leveldb-files/files-part.ts'
import { messageOf } from '../kit/errors.ts'

/**
 * Checks one record.
 *
 * @param key - as stored.
 * @param value - as stored; undefined for a deletion, for which only the key is checked.
 * @returns what is wrong with the record; undefined if it is usable.
 */
function recordFault(key: Buffer, value: Buffer | undefined): string | undefined {
  // The copy of a damaged record is as damaged as the original.
  if (copiedKey(key) !== undefined) return undefined
  const kind = kindOf(key)
  if (kind === undefined) return 'a key of no known kind'
  if (value === undefined) return undefined
  try {
    kind.row.codec.decode({ key, value })
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

/**
 * Returns what a record has that this version does not know; undefined for a known record, and for a damaged one of a known
 * kind.
 *
 * @param types - the number of update types that this version knows.
 */
export function unknownIn(entry: StoreEntry, types: number): string | undefined {
  const { key, value } = entry
  const kind = kindOf(key)
  const fault = recordFault(key, value)
  if (fault !== undefined) return kind !== undefined && !isIntact(entry) ? undefined : fault
  const typeAt = kind?.row.codec.typeAt
  const type = typeAt === undefined ? 0 : (value[typeAt] ?? 0)
  return type < types ? undefined : `an update of the unknown type ${type}`
}

/** Returns whether the checksum of a value also covers its key, so that a matching checksum proves both. */
function isKeyCovered({ key, value }: StoreEntry): boolean {
  return copiedKey(key) === undefined && (value[0] ?? 0) >= 2
}

/** Returns whether a key may begin with this byte and have this length: the copy of a damaged record holds any key. */
function mayBeKey(firstByte: number, length: number): boolean {
  if (firstByte === damagedCopy.prefix) return length > 1
  return kindOfLetter(firstByte)?.keyBytes === length
}

/** Returns the queue of a record; undefined if the key is of no known kind, or the record belongs to no queue. */
export function queueOfRecord(key: Buffer): QueueId | undefined {
  return kindOf(key)?.queueOf(key)
}

/** Describes a key in words, such as `update 7 of bot 123`. */
export function describeKey(key: Buffer): string {
  const kind = kindOf(key)
  if (kind === undefined) return `key ${key.toString('hex')}`
  return `${kind.row.place ?? kind.row.name}${kind.words(key)}`
}

/** What a key says about its record, in the form of log fields. */
interface RecordFields {
  readonly record: string
  readonly botId?: number
  /** True for the /test/ queue. */
  readonly isTest?: boolean
  readonly updateId?: number
}

/**
 * Describes the record of a key. Accepts any bytes, because the key itself may be damaged.
 *
 * @returns the kind of the record and, if the key has the length of its kind, its bot and its update id.
 */
export function logFieldsOf(key: Buffer): RecordFields {
  const copied = copiedKey(key)
  const record =
    copied === undefined ? (kindOfLetter(key[0] ?? 0)?.row.name ?? 'unknown') : damagedCopy.name
  const kind = kindOf(key)
  const queue = kind?.queueOf(key)
  if (kind === undefined || queue === undefined) return { record }
  const { updateId } = kind.fields(key)
  return {
    record,
    botId: botIdOf(queue),
    isTest: isTestQueue(queue),
    ...(typeof updateId === 'number' ? { updateId } : {}),
  }
}

/**
 * Returns what is wrong with a record in the files of a shard if its bot belongs to another one; undefined otherwise.
 *
 * @param shardOf - returns the shard of a bot.
 */
export function foreignFault(
  key: Buffer,
  { shard, shardOf }: { readonly shard: number; readonly shardOf: (botId: number) => number },
): string | undefined {
  const queue = queueOfRecord(key)
  const own = queue === undefined ? shard : shardOf(botIdOf(queue))
  return own === shard ? undefined : `${describeKey(key)} belongs to shard ${own}: ${foreignReason}`
}

/** Why the files of a shard have records of another one, and what to do. */
export const foreignReason =
  'these are files of another shard, or the shards were written with another number of shards than postbote.json says; ' +
  'put back what was exchanged or copied, or restore that number first'

/** The `RecordCheck` of Postbote's records, for code that reads the files of a shard without its database. */
export const shardRecords: RecordCheck = { recordFault, isKeyCovered, mayBeKey }
