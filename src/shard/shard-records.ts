/** Checks records of any kind, for code that reads the files of a shard and not its queues. */

import * as keys from './records/record-keys.ts'
import * as record from './records/record.ts'
import type { StoreEntry } from '../store/store.ts'
import type { RecordCheck } from '../store/store-files.ts'
import { messageOf } from '../kit/text/message-of.ts'

interface Kind {
  /** The length of the key. */
  readonly keyBytes: number
  readonly name: string
  readonly decode: (entry: StoreEntry) => unknown
}

const kinds: Readonly<Record<string, Kind>> = {
  u: { keyBytes: 17, name: 'update', decode: record.decodeUpdate },
  d: { keyBytes: 17, name: 'dead letter', decode: record.decodeDeadLetter },
  v: { keyBytes: 17, name: 'kept update', decode: record.decodeLeftUpdate },
  l: { keyBytes: 17, name: 'run of kept updates from', decode: record.decodeKeptRun },
  n: { keyBytes: 9, name: 'counts of kept updates', decode: record.decodeKeptState },
  s: { keyBytes: 9, name: 'ids and counts', decode: record.decodeQueueState },
  b: { keyBytes: 9, name: 'registration', decode: record.decodeJson },
  w: { keyBytes: 9, name: 'settings', decode: record.decodeJson },
  i: { keyBytes: 29, name: 'idempotency key', decode: record.decodeKey },
  x: { keyBytes: 13, name: 'expiry', decode: record.assertMark },
  k: { keyBytes: 9, name: 'access key', decode: record.decodeJson },
  c: { keyBytes: 11, name: 'recorded call', decode: record.decodeJson },
  a: { keyBytes: 9, name: 'attempts', decode: record.decodeJson },
  j: { keyBytes: 17, name: 'replay', decode: record.decodeJson },
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
  const type = kind === 'u' || kind === 'd' || kind === 'v' ? (value[1] ?? 0) : 0
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

/** The kinds of records that belong to no queue, and are in shard 0. */
const queueless: ReadonlySet<string> = new Set(['k', 'c'])

/** Returns the queue of a record; undefined if the key is of no known kind, or the record belongs to no queue. */
export function queueOfRecord(key: Buffer): keys.QueueId | undefined {
  const kind = String.fromCharCode(key[0] ?? 0)
  if (key.length !== kinds[kind]?.keyBytes || queueless.has(kind)) return undefined
  return kind === 'x' || kind === 'i' ? keys.parseExpiryKey(key).queue : keys.queueIdOfKey(key)
}

/** Describes a key in words, such as `update 7 of bot 123`. */
export function describeKey(key: Buffer): string {
  const queue = queueOfRecord(key)
  if (key[0] === keys.startOf('k')[0]) return `access key ${keys.accessKeyIdOfKey(key)}`
  if (key[0] === keys.startOf('c')[0]) return `recorded call ${keys.auditIdOfKey(key)}`
  if (queue === undefined) return `key ${key.toString('hex')}`
  const bot = `bot ${keys.botIdOf(queue)}${keys.isTestQueue(queue) ? ' (/test/)' : ''}`
  const kind = String.fromCharCode(key[0] ?? 0)
  const name = kinds[kind]?.name ?? ''
  if (key.length === keys.updateKeyBytes) return `${name} ${keys.updateIdOfKey(key)} of ${bot}`
  if (kind === 'i') return `${name} ${key.subarray(13).toString('hex')} of ${bot}`
  if (kind === 'x') return `${name} of ${bot} in minute ${keys.parseExpiryKey(key).minute}`
  return `${name} of ${bot}`
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
