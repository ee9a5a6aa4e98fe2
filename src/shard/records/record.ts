/**
 * Encodes and decodes the values of a shard's database. Every value begins with its version and ends with a CRC-32,
 * because LevelDB silently drops what it finds damaged. Values are stored permanently: a new layout gets a new
 * version number and a new format of the data directory (data-directory.ts). See docs/inside/storage.md.
 *
 *   u   0 version | 1 type | 2 accepted_at_s(4) | 6 expires_at_ms(6) | 12 key_length(2) | 14 ordering key | text | crc(4)
 *   s   0 version | 1 next_id(4) | 5 floor(4) | 9 live_count(4) | 13 live_bytes(8)
 *       | 21 idempotency day(4) | 25 idempotency count(4) | 29 crc(4)
 *   d, v   0 version | 1 type | 2 reason | 3 left_at_ms(6) | 9 accepted_at_s(4) | 13 attempts(4)
 *       | 17 error_length(2) | 19 key_length(2) | 21 error | ordering key | text | crc(4)
 *   l   0 version | 1 reason | 2 left_at_ms(6) | 8 end(4) | 12 count(4) | 16 bytes(8) | 24 crc(4)
 *   n   0 version | 1 count(4) | 5 bytes(8) | 13 end(4) | 17 crc(4)
 *   i   0 version | 1 update_id(4) | 5 accepted_at_ms(6) | 11 hash of the text(16) | 27 crc(4)
 *   b, w, k, a, j   0 version | JSON | crc(4)
 *   x   0 version | 1 crc(4)
 *
 * The CRC covers the record's key and the bytes before it, so that a damaged key is detected too. Version 3 is version 2 of a `u`, `d` or `v`
 * record with the place of the update in a trace (kit/tracing/traceparent.ts) after its numbers:
 *
 *   u   ... | 12 key_length(2) | 14 trace(25) | 39 ordering key | text | crc(4)
 *   d, v   ... | 19 key_length(2) | 21 trace(25) | 46 error | ordering key | text | crc(4)
 *
 *   trace   trace id(16) | span id(8) | flags(1)
 *
 * Version 3 is written for updates that have a trace, and version 2 for all others. Version 1 was that of servers before 1.0.
 *
 * A record is encoded into one buffer that begins with its key, so that one call computes the CRC. A second call into
 * zlib would take longer than the CRC of 20 more bytes. The `u`, `i` and `s` records of a group are encoded by native code, which
 * has these layouts, too (group-encoder.ts).
 */
import { crc32 } from 'node:zlib'
import type { StoreEntry } from '../../store/store.ts'
import { updateIdEnd, updateIdOfKey } from './record-keys.ts'
import { traceBytes, traceHexOf, traceparentOfHex } from '../../kit/tracing/traceparent.ts'

const version = 2
/** Version 3, which only `u`, `d` and `v` records have. */
const tracedVersion = 3
const crcBytes = 4
const updateHeaderBytes = 14
/** Bytes of the value of a `u` record besides its ordering key and text. */
export const updateFixedBytes = updateHeaderBytes + crcBytes
/** Length of the value of an `s` record. */
export const queueStateBytes = 33
const leftUpdateHeaderBytes = 21
/** Length of the value of an `i` record. */
export const keyRecordBytes = 31
const keptRunBytes = 28
const keptStateBytes = 21
const textHashBytes = 16
/** Times in seconds have four bytes, which end in 2106. A clock that is later must not keep updates from being stored. */
export const storedSMax = 2 ** 32 - 1

/** Ids and counts of one queue after the operations so far. */
export interface QueueState {
  /** Id of the next update. */
  nextId: number
  /** Updates with smaller ids are out of the queue, even if their records are still stored. */
  floor: number
  /** Number of pending updates. */
  liveCount: number
  /** Total size of the pending updates' texts. */
  liveBytes: number
  /** UTC day of `idempotencyCount`, in days since 1970. */
  idempotencyDay: number
  /** Number of idempotency keys that the queue received on that day. */
  idempotencyCount: number
}

/** Returns the state of a queue that has never held an update. */
export function emptyQueueState(nextId: number): QueueState {
  return {
    nextId,
    floor: nextId,
    liveCount: 0,
    liveBytes: 0,
    idempotencyDay: 0,
    idempotencyCount: 0,
  }
}

/** The value of a `u` record. */
export interface UpdateRecord {
  /** Index of the type in kit/update-types.ts. */
  readonly typeNumber: number
  /** Wall time of acceptance in seconds. */
  readonly acceptedAtS: number
  /** Wall time in seconds, stored with millisecond precision. */
  readonly expiresAtS: number
  readonly orderingKey: string
  /** The place of the update in a trace; absent if its producer has none. */
  readonly traceparent?: string | undefined
  /** The update's bytes between its outer braces. */
  readonly text: Buffer
}

/** The value of an `i` record: what an idempotency key stands for. */
export interface KeyRecord {
  readonly updateId: number
  readonly acceptedAtMs: number
  /** Hash of the update's text, 16 bytes as a latin1 string. A repeat must have the same. */
  readonly textHash: string
}

/** How an update left its queue. The index is stored: append only, do not reorder. */
export const leaveReasons = ['expired', 'refused', 'delivered', 'dropped', 'confirmed'] as const
export type LeaveReason = (typeof leaveReasons)[number]

/** The value of a `v` record: an update that has left its queue and is kept to be looked at. */
export interface LeftUpdateRecord {
  /** Index of the type in kit/update-types.ts. */
  readonly typeNumber: number
  readonly reason: LeaveReason
  /** Wall time in milliseconds at which the update left its queue. */
  readonly leftAtMs: number
  readonly acceptedAtS: number
  /** Number of delivery attempts; 0 if it is not known. */
  readonly attempts: number
  /** The error of the last attempt; empty if there is none. */
  readonly lastError: string
  readonly orderingKey: string
  /** The place of the update in a trace; absent if its producer has none. */
  readonly traceparent?: string | undefined
  /** The update's bytes between its outer braces. */
  readonly text: Buffer
}

/** The value of a `d` record: an update that was given up. */
export interface DeadLetterRecord extends LeftUpdateRecord {
  readonly reason: 'expired' | 'refused'
}

/** The number of some updates, and the bytes of their texts. */
export interface KeptCounts {
  count: number
  bytes: number
}

/** The value of an `n` record: what a queue keeps. */
export interface KeptState extends KeptCounts {
  /** The first id after the last run. As the floor of the queue, it tells what has left if other records are damaged. */
  end: number
}

/** The value of an `l` record: a run of updates that left together and whose `u` records are kept. */
export interface KeptRunRecord extends Readonly<KeptCounts> {
  readonly reason: LeaveReason
  /** Wall time in milliseconds at which they left. */
  readonly leftAtMs: number
  /** The first id after the run. Its first id is in the key. */
  readonly end: number
}

/** Encodes and decodes the values of one kind of record. */
export interface Codec<Stored> {
  encode(key: Buffer, stored: Stored): Buffer
  /**
   * @throws DamagedRecordError
   * @throws UnknownRecordVersionError
   */
  decode(entry: StoreEntry): Stored
  /** The place of the number of a type in the value of an update. */
  readonly typeAt?: number
}

/** Thrown for a stored record that differs from what was written. */
export class DamagedRecordError extends Error {
  constructor(expected: string) {
    super(`damaged record: expected ${expected}`)
    this.name = 'DamagedRecordError'
  }
}

/** Thrown for a record that is intact but was written by a later version of Postbote. */
export class UnknownRecordVersionError extends Error {
  constructor(found: number, mayBeTraced: boolean) {
    const known = mayBeTraced ? `versions ${version} and ${tracedVersion}` : `version ${version}`
    super(
      `the record has version ${found}, but this version of Postbote knows only ${known}; ` +
        'use the version that wrote it, or a later one',
    )
    this.name = 'UnknownRecordVersionError'
  }
}

/** A buffer that begins with a key and has room for the value, to be filled and then sealed. */
interface Draft {
  readonly whole: Buffer
  readonly value: Buffer
}

function draft(key: Buffer, valueBytes: number): Draft {
  const whole = Buffer.allocUnsafe(key.length + valueBytes)
  whole.set(key)
  const value = whole.subarray(key.length)
  value[0] = version
  return { whole, value }
}

function sealed({ whole, value }: Draft): Buffer {
  const end = whole.length - crcBytes
  whole.writeUInt32BE(crc32(whole.subarray(0, end)), end)
  return value
}

/**
 * @param mayBeTraced - whether records of this kind may have version 3
 * @returns the bytes of the trace in the record; 0 without one
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
function assertIntact({ key, value }: StoreEntry, bytesMin: number, mayBeTraced = false): number {
  const end = value.length - crcBytes
  const found = value[0]
  if (end < 1 || found === undefined) throw new DamagedRecordError(`at least ${bytesMin} bytes`)
  const content = value.subarray(0, end)
  if (crc32(content, crc32(key)) !== value.readUInt32BE(end)) {
    throw new DamagedRecordError('a matching CRC-32')
  }
  const ownTraceBytes = traceBytesIn(found, mayBeTraced)
  if (value.length < bytesMin + ownTraceBytes) {
    throw new DamagedRecordError(`at least ${bytesMin + ownTraceBytes} bytes`)
  }
  return ownTraceBytes
}

/** @throws UnknownRecordVersionError */
function traceBytesIn(found: number, mayBeTraced: boolean): number {
  if (mayBeTraced && found === tracedVersion) return traceBytes
  if (found === version) return 0
  throw new UnknownRecordVersionError(found, mayBeTraced)
}

/** Writes the trace of an update, if it has one, and returns where the record continues. */
function writeTrace(value: Buffer, at: number, traceparent: string | undefined): number {
  if (traceparent === undefined) return at
  value[0] = tracedVersion
  return at + value.write(traceHexOf(traceparent), at, 'hex')
}

/** Returns an update with its trace, if its record has one, which begins at `at`. */
function withTrace<Update extends object>(
  update: Update,
  value: Buffer,
  at: number,
  bytes: number,
): Update & { readonly traceparent?: string } {
  if (bytes === 0) return update
  return { ...update, traceparent: traceparentOfHex(value.toString('hex', at, at + bytes)) }
}

/** Returns whether the checksum of a value is right, whatever the version of its layout. */
export function isIntact(entry: StoreEntry): boolean {
  try {
    assertIntact(entry, 0)
    return true
  } catch (error) {
    return error instanceof UnknownRecordVersionError
  }
}

/**
 * Encodes the value of a `u` record.
 *
 * @param key - the record's key, which the CRC covers.
 */
export function encodeUpdate(key: Buffer, update: UpdateRecord): Buffer {
  const { traceparent } = update
  const keyBytes = Buffer.byteLength(update.orderingKey)
  const ownTraceBytes = traceparent === undefined ? 0 : traceBytes
  const fixedBytes = updateHeaderBytes + ownTraceBytes + crcBytes
  const drafted = draft(key, fixedBytes + keyBytes + update.text.length)
  const { value } = drafted
  value[1] = update.typeNumber
  value.writeUInt32BE(Math.min(update.acceptedAtS, storedSMax), 2)
  value.writeUIntBE(Math.round(update.expiresAtS * 1000), 6, 6)
  value.writeUInt16BE(keyBytes, 12)
  const keyStart = writeTrace(value, updateHeaderBytes, traceparent)
  value.write(update.orderingKey, keyStart)
  value.set(update.text, keyStart + keyBytes)
  return sealed(drafted)
}

/**
 * Decodes a `u` record.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function decodeUpdate(entry: StoreEntry): UpdateRecord {
  const { value } = entry
  const ownTraceBytes = assertIntact(entry, updateHeaderBytes + crcBytes, true)
  const keyStart = updateHeaderBytes + ownTraceBytes
  const textStart = keyStart + value.readUInt16BE(12)
  const update = {
    typeNumber: value.readUInt8(1),
    acceptedAtS: value.readUInt32BE(2),
    expiresAtS: value.readUIntBE(6, 6) / 1000,
    orderingKey: value.toString('utf8', keyStart, textStart),
    text: value.subarray(textStart, value.length - crcBytes),
  }
  return withTrace(update, value, updateHeaderBytes, ownTraceBytes)
}

/**
 * Encodes the value of a `d` or `v` record.
 *
 * @param key - the record's key, which the CRC covers.
 */
export function encodeLeftUpdate(key: Buffer, left: LeftUpdateRecord): Buffer {
  const { traceparent } = left
  const errorBytes = Buffer.byteLength(left.lastError)
  const errorStart = leftUpdateHeaderBytes + (traceparent === undefined ? 0 : traceBytes)
  const keyStart = errorStart + errorBytes
  const textStart = keyStart + Buffer.byteLength(left.orderingKey)
  const drafted = draft(key, textStart + left.text.length + crcBytes)
  const { value } = drafted
  value[1] = left.typeNumber
  value[2] = leaveReasons.indexOf(left.reason)
  value.writeUIntBE(left.leftAtMs, 3, 6)
  value.writeUInt32BE(Math.min(left.acceptedAtS, storedSMax), 9)
  value.writeUInt32BE(left.attempts, 13)
  value.writeUInt16BE(errorBytes, 17)
  value.writeUInt16BE(textStart - keyStart, 19)
  writeTrace(value, leftUpdateHeaderBytes, traceparent)
  value.write(left.lastError, errorStart)
  value.write(left.orderingKey, keyStart)
  value.set(left.text, textStart)
  return sealed(drafted)
}

/**
 * Decodes a `v` record.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function decodeLeftUpdate(entry: StoreEntry): LeftUpdateRecord {
  const { value } = entry
  const ownTraceBytes = assertIntact(entry, leftUpdateHeaderBytes + crcBytes, true)
  const errorStart = leftUpdateHeaderBytes + ownTraceBytes
  const keyStart = errorStart + value.readUInt16BE(17)
  const textStart = keyStart + value.readUInt16BE(19)
  const left = {
    typeNumber: value.readUInt8(1),
    reason: leaveReasonOf(value.readUInt8(2)),
    leftAtMs: value.readUIntBE(3, 6),
    acceptedAtS: value.readUInt32BE(9),
    attempts: value.readUInt32BE(13),
    lastError: value.toString('utf8', errorStart, keyStart),
    orderingKey: value.toString('utf8', keyStart, textStart),
    text: value.subarray(textStart, value.length - crcBytes),
  }
  return withTrace(left, value, leftUpdateHeaderBytes, ownTraceBytes)
}

/**
 * Decodes a `d` record.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function decodeDeadLetter(entry: StoreEntry): DeadLetterRecord {
  const { reason, ...left } = decodeLeftUpdate(entry)
  if (reason === 'expired' || reason === 'refused') return { reason, ...left }
  throw new DamagedRecordError('the reason of a dead letter')
}

/**
 * Encodes the value of an `l` record.
 *
 * @param key - the record's key, which the CRC covers.
 */
export function encodeKeptRun(key: Buffer, run: KeptRunRecord): Buffer {
  const drafted = draft(key, keptRunBytes)
  const { value } = drafted
  value[1] = leaveReasons.indexOf(run.reason)
  value.writeUIntBE(run.leftAtMs, 2, 6)
  value.writeUInt32BE(run.end, 8)
  value.writeUInt32BE(run.count, 12)
  value.writeDoubleBE(run.bytes, 16)
  return sealed(drafted)
}

/**
 * Decodes an `l` record.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function decodeKeptRun(entry: StoreEntry): KeptRunRecord {
  const { key, value } = entry
  assertIntact(entry, keptRunBytes)
  const end = value.readUInt32BE(8)
  const count = value.readUInt32BE(12)
  const bytes = value.readDoubleBE(16)
  assertId(end)
  // What a run has is deleted with it, in the turn of a commit.
  assertPossible(end >= updateIdOfKey(key), 'an end that is not before the first id')
  assertCounts({ count, bytes }, end - updateIdOfKey(key))
  const reason = leaveReasonOf(value.readUInt8(1))
  return { reason, leftAtMs: value.readUIntBE(2, 6), end, count, bytes }
}

/**
 * No id of a record is above this. Those of updates are below 2^31, a count, a restart or an import skips some thousands, and
 * what is skipped from here still has four bytes.
 */
const storedIdMax = 3 * 2 ** 30

/** @throws DamagedRecordError if no server has written this as a next id, or as the end of a run */
function assertId(id: number): void {
  assertPossible(id <= storedIdMax, `an id up to ${storedIdMax}`)
}

/** An import may bring any record with a CRC. One with numbers that no server writes is damaged. */
function assertPossible(isPossible: boolean, expected: string): void {
  if (!isPossible) throw new DamagedRecordError(expected)
}

/** @param ids - the number of ids that the updates may have */
function assertCounts({ count, bytes }: Readonly<KeptCounts>, ids: number): void {
  assertPossible(count <= ids, `a count of at most ${ids}`)
  assertPossible(Number.isSafeInteger(bytes) && bytes >= 0, 'a number of bytes')
}

/**
 * Encodes the value of an `n` record.
 *
 * @param key - the record's key, which the CRC covers.
 */
export function encodeKeptState(key: Buffer, kept: Readonly<KeptState>): Buffer {
  const drafted = draft(key, keptStateBytes)
  drafted.value.writeUInt32BE(kept.count, 1)
  drafted.value.writeDoubleBE(kept.bytes, 5)
  drafted.value.writeUInt32BE(kept.end, 13)
  return sealed(drafted)
}

/**
 * Decodes an `n` record.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function decodeKeptState(entry: StoreEntry): KeptState {
  const { value } = entry
  assertIntact(entry, keptStateBytes)
  const kept = {
    count: value.readUInt32BE(1),
    bytes: value.readDoubleBE(5),
    end: value.readUInt32BE(13),
  }
  assertId(kept.end)
  // What has left alone is above the end, so only ids as such bound the count.
  assertCounts(kept, updateIdEnd)
  return kept
}

function leaveReasonOf(index: number): LeaveReason {
  const reason = leaveReasons[index]
  if (reason === undefined) throw new DamagedRecordError('a known reason')
  return reason
}

/**
 * Encodes the value of an `i` record.
 *
 * @param key - the record's key, which the CRC covers.
 */
export function encodeKey(key: Buffer, { updateId, acceptedAtMs, textHash }: KeyRecord): Buffer {
  const drafted = draft(key, keyRecordBytes)
  const { value } = drafted
  value.writeUInt32BE(updateId, 1)
  value.writeUIntBE(acceptedAtMs, 5, 6)
  value.write(textHash, 11, textHashBytes, 'latin1')
  return sealed(drafted)
}

/**
 * Decodes an `i` record.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function decodeKey(entry: StoreEntry): KeyRecord {
  const { value } = entry
  assertIntact(entry, keyRecordBytes)
  return {
    updateId: value.readUInt32BE(1),
    acceptedAtMs: value.readUIntBE(5, 6),
    textHash: value.toString('latin1', 11, 11 + textHashBytes),
  }
}

/**
 * Encodes the value of an `s` record.
 *
 * @param key - the record's key, which the CRC covers.
 */
export function encodeQueueState(key: Buffer, state: QueueState): Buffer {
  const drafted = draft(key, queueStateBytes)
  const { value } = drafted
  value.writeUInt32BE(state.nextId, 1)
  value.writeUInt32BE(state.floor, 5)
  value.writeUInt32BE(state.liveCount, 9)
  value.writeDoubleBE(state.liveBytes, 13)
  value.writeUInt32BE(state.idempotencyDay, 21)
  value.writeUInt32BE(state.idempotencyCount, 25)
  return sealed(drafted)
}

/**
 * Decodes an `s` record.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function decodeQueueState(entry: StoreEntry): QueueState {
  const { value } = entry
  assertIntact(entry, queueStateBytes)
  const state = {
    nextId: value.readUInt32BE(1),
    floor: value.readUInt32BE(5),
    liveCount: value.readUInt32BE(9),
    liveBytes: value.readDoubleBE(13),
    idempotencyDay: value.readUInt32BE(21),
    idempotencyCount: value.readUInt32BE(25),
  }
  const { nextId, floor, liveCount: count, liveBytes: bytes } = state
  assertId(nextId)
  assertPossible(floor <= nextId, 'a floor that is not above the next id')
  assertCounts({ count, bytes }, nextId - floor)
  return state
}

/**
 * Encodes the value of a record of JSON.
 *
 * @param key - the record's key, which the CRC covers.
 */
export function encodeJson(key: Buffer, record: unknown): Buffer {
  const json = JSON.stringify(record)
  const drafted = draft(key, 1 + Buffer.byteLength(json) + crcBytes)
  drafted.value.write(json, 1)
  return sealed(drafted)
}

/**
 * Decodes a record of JSON. The shape of the JSON is not checked.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function decodeJson(entry: StoreEntry): ReturnType<typeof JSON.parse> {
  const { value } = entry
  assertIntact(entry, 1 + crcBytes)
  return JSON.parse(value.toString('utf8', 1, value.length - crcBytes))
}

/** The codec of records of JSON. */
export function ofJson<Stored>(): Codec<Stored> {
  return { encode: encodeJson, decode: decodeJson }
}

/** Encodes the value of an `x` record, which holds nothing but the CRC of its key. */
export function encodeMark(key: Buffer): Buffer {
  return sealed(draft(key, 1 + crcBytes))
}

/**
 * Checks an `x` record.
 *
 * @throws DamagedRecordError
 * @throws UnknownRecordVersionError
 */
export function assertMark(entry: StoreEntry): void {
  assertIntact(entry, 1 + crcBytes)
}
