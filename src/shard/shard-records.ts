/** Checks records of any kind, for code that reads the files of a shard and not its queues. */

import * as keys from './record-keys.ts'
import * as record from './record.ts'
import type { StoreEntry } from '../store/store.ts'
import type { RecordCheck } from '../store/store-files.ts'
import { messageOf } from '../message-of.ts'

/** Length of each kind's key in bytes, and the function that decodes its value. */
const kinds: Readonly<
  Record<string, { readonly keyBytes: number; readonly decode: (entry: StoreEntry) => unknown }>
> = {
  u: { keyBytes: 17, decode: record.decodeUpdate },
  d: { keyBytes: 17, decode: record.decodeDeadLetter },
  s: { keyBytes: 9, decode: record.decodeQueueState },
  b: { keyBytes: 9, decode: record.decodeJson },
  w: { keyBytes: 9, decode: record.decodeJson },
  i: { keyBytes: 29, decode: record.decodeKey },
  x: { keyBytes: 13, decode: record.assertMark },
  k: { keyBytes: 9, decode: record.decodeJson },
  a: { keyBytes: 9, decode: record.decodeJson },
}

/**
 * Checks one record.
 *
 * @param key - as stored.
 * @param value - as stored; undefined for a deletion, for which only the key is checked.
 * @returns what is wrong with the record; undefined if it is usable.
 */
function recordFault(key: Buffer, value: Buffer | undefined): string | undefined {
  // The copy of a damaged record is as damaged as the original.
  if (key[0] === keys.startOf('q')[0]) return undefined
  const kind = kinds[String.fromCharCode(key[0] ?? 0)]
  if (kind === undefined || key.length !== kind.keyBytes) return 'a key of no known kind'
  if (value === undefined) return undefined
  try {
    kind.decode({ key, value })
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
  const fault = recordFault(key, value)
  const kind = String.fromCharCode(key[0] ?? 0)
  if (fault !== undefined) {
    return kinds[kind]?.keyBytes === key.length && !record.isIntact(entry) ? undefined : fault
  }
  const type = kind === 'u' || kind === 'd' ? (value[1] ?? 0) : 0
  return type < types ? undefined : `an update of the unknown type ${type}`
}

/** Returns whether the checksum of a value also covers its key, so that a matching checksum proves both. */
function isKeyCovered({ key, value }: StoreEntry): boolean {
  return key[0] !== keys.startOf('q')[0] && (value[0] ?? 0) >= 2
}

/** Returns whether a key may begin with this byte and have this length: the copy of a damaged record holds any key. */
function mayBeKey(firstByte: number, length: number): boolean {
  if (firstByte === keys.startOf('q')[0]) return length > 1
  return kinds[String.fromCharCode(firstByte)]?.keyBytes === length
}

/** Returns the queue of a record; undefined if the key is of no known kind, or of an access key, which belongs to no queue. */
export function queueOfRecord(key: Buffer): keys.QueueId | undefined {
  const kind = String.fromCharCode(key[0] ?? 0)
  if (key.length !== kinds[kind]?.keyBytes || kind === 'k') return undefined
  return kind === 'x' || kind === 'i' ? keys.parseExpiryKey(key).queue : keys.queueIdOfKey(key)
}

/** Describes a key in words, such as `update 7 of bot 123`. */
export function describeKey(key: Buffer): string {
  const queue = queueOfRecord(key)
  if (key[0] === keys.startOf('k')[0]) return `access key ${keys.accessKeyIdOfKey(key)}`
  if (queue === undefined) return `key ${key.toString('hex')}`
  const bot = `bot ${keys.botIdOf(queue)}${keys.isTestQueue(queue) ? ' (/test/)' : ''}`
  switch (String.fromCharCode(key[0] ?? 0)) {
    case 'u':
      return `update ${keys.updateIdOfKey(key)} of ${bot}`
    case 'd':
      return `dead letter ${keys.updateIdOfKey(key)} of ${bot}`
    case 's':
      return `ids and counts of ${bot}`
    case 'b':
      return `registration of ${bot}`
    case 'w':
      return `settings of ${bot}`
    case 'a':
      return `attempts of ${bot}`
    case 'i':
      return `idempotency key ${key.subarray(13).toString('hex')} of ${bot}`
    default:
      return `expiry of ${bot} in minute ${keys.parseExpiryKey(key).minute}`
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
  const own = queue === undefined ? shard : shardOf(keys.botIdOf(queue))
  return own === shard ? undefined : `${describeKey(key)} belongs to shard ${own}: ${foreignReason}`
}

/** Why the files of a shard have records of another one, and what to do. */
export const foreignReason =
  'these are files of another shard, or the shards were written with another number of shards than postbote.json says; ' +
  'put back what was exchanged or copied, or restore that number first'

/** The `RecordCheck` of Postbote's records, for code that reads the files of a shard without its database. */
export const shardRecords: RecordCheck = { recordFault, isKeyCovered, mayBeKey }
