/**
 * The values of a shard's database. Every value begins with its version and ends with a CRC-32, because LevelDB drops
 * what it finds damaged without a word. On disk for ever: a new layout gets a new version number, and with it a new
 * format of the data directory (data-directory.ts). See docs/storage.md.
 *
 *   u   0 version | 1 type | 2 accepted_at_s(4) | 6 expires_at_ms(6) | 12 key_length(2) | 14 ordering key | text | crc(4)
 *   s   0 version | 1 next_id(4) | 5 floor(4) | 9 live_count(4) | 13 live_bytes(8)
 *       | 21 idempotency day(4) | 25 idempotency count(4) | 29 crc(4)
 *   d   0 version | 1 type | 2 reason | 3 buried_at_ms(6) | 9 accepted_at_s(4) | 13 attempts(4)
 *       | 17 error_length(2) | 19 key_length(2) | 21 error | ordering key | text | crc(4)
 *   i   0 version | 1 update_id(4) | 5 accepted_at_ms(6) | 11 hash of the text(16) | 27 crc(4)
 *   b, w   0 version | JSON | crc(4)
 *   x   0 version | 1 crc(4)
 *
 * Version 1: the CRC is that of the bytes before it; `x` is empty. Version 2: the CRC is that of the record's key and
 * the bytes before it, so that a record whose key was damaged is found, too. Version 1 is read, version 2 is written.
 *
 * A record is encoded into one buffer with its key in front, so that one call computes the CRC: a second call into zlib
 * would take longer than the CRC of 20 more bytes.
 */
import { crc32 } from 'node:zlib'
import type { StoreEntry } from '../store/store.ts'

const version = 2
/** Its CRC does not cover the key. */
const keylessVersion = 1
const crcBytes = 4
const updateHeaderBytes = 14
const queueStateBytes = 33
const letterHeaderBytes = 21
const keyRecordBytes = 31
const textHashBytes = 16

/** Ids and counts of one queue, as the operations so far have left them. */
export interface QueueState {
  /** The id of the next update. */
  nextId: number
  /** Ids below it are dead by definition, whatever records are still there. */
  floor: number
  liveCount: number
  /** Bytes of the stored texts. */
  liveBytes: number
  /** UTC day number of `idempotencyCount`. */
  idempotencyDay: number
  idempotencyCount: number
}

/** Of a queue that has never held an update. */
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

export interface UpdateRecord {
  readonly typeNumber: number
  readonly acceptedAtS: number
  /** To the millisecond. */
  readonly expiresAtS: number
  readonly orderingKey: string
  /** The update's bytes between its outer braces. */
  readonly text: Buffer
}

/** What an idempotency key stands for. */
export interface KeyRecord {
  readonly updateId: number
  readonly acceptedAtMs: number
  /** Of the update's text, 16 bytes as latin1: a repetition must have the same. */
  readonly textHash: string
}

/** Why an update is a dead letter. Their places are stored: append only, do not reorder. */
const letterReasons = ['expired', 'refused'] as const

/** An update that was given up. */
export interface LetterRecord {
  readonly typeNumber: number
  readonly reason: (typeof letterReasons)[number]
  /** Wall time at which it was given up. */
  readonly buriedAtMs: number
  readonly acceptedAtS: number
  readonly attempts: number
  /** What the last attempt ended with; empty where there is nothing to tell. */
  readonly lastError: string
  readonly orderingKey: string
  /** The update's bytes between its outer braces. */
  readonly text: Buffer
}

/** A stored record that is not what was written. */
export class DamagedRecordError extends Error {
  constructor(expected: string) {
    super(`damaged record: expected ${expected}`)
    this.name = 'DamagedRecordError'
  }
}

/** A record that is intact, but of a version that this code does not know: a later one has written it. */
export class UnknownRecordVersionError extends Error {
  constructor(found: number) {
    super(
      `the record has version ${found} and this version of Postbote knows versions ${keylessVersion} and ${version}; ` +
        'use the version that wrote it or a later one',
    )
    this.name = 'UnknownRecordVersionError'
  }
}

/** A buffer that begins with a key, and the value after it, to be filled and then sealed. */
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

/** Throws DamagedRecordError or UnknownRecordVersionError. */
function assertIntact({ key, value }: StoreEntry, bytesMin: number): void {
  const end = value.length - crcBytes
  const found = value[0]
  if (end < 1 || found === undefined) throw new DamagedRecordError(`at least ${bytesMin} bytes`)
  const content = value.subarray(0, end)
  const crc = found === keylessVersion ? crc32(content) : crc32(content, crc32(key))
  if (crc !== value.readUInt32BE(end)) {
    throw new DamagedRecordError('a matching CRC-32')
  }
  if (found !== version && found !== keylessVersion) throw new UnknownRecordVersionError(found)
  if (value.length < bytesMin) throw new DamagedRecordError(`at least ${bytesMin} bytes`)
}

export function encodeUpdate(key: Buffer, update: UpdateRecord): Buffer {
  const keyBytes = Buffer.byteLength(update.orderingKey)
  const drafted = draft(key, updateHeaderBytes + keyBytes + update.text.length + crcBytes)
  const { value } = drafted
  value[1] = update.typeNumber
  value.writeUInt32BE(update.acceptedAtS, 2)
  value.writeUIntBE(Math.round(update.expiresAtS * 1000), 6, 6)
  value.writeUInt16BE(keyBytes, 12)
  value.write(update.orderingKey, updateHeaderBytes)
  value.set(update.text, updateHeaderBytes + keyBytes)
  return sealed(drafted)
}

export function decodeUpdate(entry: StoreEntry): UpdateRecord {
  const { value } = entry
  assertIntact(entry, updateHeaderBytes + crcBytes)
  const textStart = updateHeaderBytes + value.readUInt16BE(12)
  return {
    typeNumber: value.readUInt8(1),
    acceptedAtS: value.readUInt32BE(2),
    expiresAtS: value.readUIntBE(6, 6) / 1000,
    orderingKey: value.toString('utf8', updateHeaderBytes, textStart),
    text: value.subarray(textStart, value.length - crcBytes),
  }
}

export function encodeLetter(key: Buffer, letter: LetterRecord): Buffer {
  const errorBytes = Buffer.byteLength(letter.lastError)
  const keyStart = letterHeaderBytes + errorBytes
  const textStart = keyStart + Buffer.byteLength(letter.orderingKey)
  const drafted = draft(key, textStart + letter.text.length + crcBytes)
  const { value } = drafted
  value[1] = letter.typeNumber
  value[2] = letterReasons.indexOf(letter.reason)
  value.writeUIntBE(letter.buriedAtMs, 3, 6)
  value.writeUInt32BE(letter.acceptedAtS, 9)
  value.writeUInt32BE(letter.attempts, 13)
  value.writeUInt16BE(errorBytes, 17)
  value.writeUInt16BE(textStart - keyStart, 19)
  value.write(letter.lastError, letterHeaderBytes)
  value.write(letter.orderingKey, keyStart)
  value.set(letter.text, textStart)
  return sealed(drafted)
}

export function decodeLetter(entry: StoreEntry): LetterRecord {
  const { value } = entry
  assertIntact(entry, letterHeaderBytes + crcBytes)
  const reason = letterReasons[value.readUInt8(2)]
  if (reason === undefined) throw new DamagedRecordError('a known reason')
  const keyStart = letterHeaderBytes + value.readUInt16BE(17)
  const textStart = keyStart + value.readUInt16BE(19)
  return {
    typeNumber: value.readUInt8(1),
    reason,
    buriedAtMs: value.readUIntBE(3, 6),
    acceptedAtS: value.readUInt32BE(9),
    attempts: value.readUInt32BE(13),
    lastError: value.toString('utf8', letterHeaderBytes, keyStart),
    orderingKey: value.toString('utf8', keyStart, textStart),
    text: value.subarray(textStart, value.length - crcBytes),
  }
}

export function encodeKey(key: Buffer, { updateId, acceptedAtMs, textHash }: KeyRecord): Buffer {
  const drafted = draft(key, keyRecordBytes)
  const { value } = drafted
  value.writeUInt32BE(updateId, 1)
  value.writeUIntBE(acceptedAtMs, 5, 6)
  value.write(textHash, 11, textHashBytes, 'latin1')
  return sealed(drafted)
}

export function decodeKey(entry: StoreEntry): KeyRecord {
  const { value } = entry
  assertIntact(entry, keyRecordBytes)
  return {
    updateId: value.readUInt32BE(1),
    acceptedAtMs: value.readUIntBE(5, 6),
    textHash: value.toString('latin1', 11, 11 + textHashBytes),
  }
}

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

export function decodeQueueState(entry: StoreEntry): QueueState {
  const { value } = entry
  assertIntact(entry, queueStateBytes)
  return {
    nextId: value.readUInt32BE(1),
    floor: value.readUInt32BE(5),
    liveCount: value.readUInt32BE(9),
    liveBytes: value.readDoubleBE(13),
    idempotencyDay: value.readUInt32BE(21),
    idempotencyCount: value.readUInt32BE(25),
  }
}

export function encodeJson(key: Buffer, record: unknown): Buffer {
  const json = JSON.stringify(record)
  const drafted = draft(key, 1 + Buffer.byteLength(json) + crcBytes)
  drafted.value.write(json, 1)
  return sealed(drafted)
}

/** The record `encodeJson` was given; its shape is the writer's word. */
export function decodeJson(entry: StoreEntry): ReturnType<typeof JSON.parse> {
  const { value } = entry
  assertIntact(entry, 1 + crcBytes)
  return JSON.parse(value.toString('utf8', 1, value.length - crcBytes))
}

/** The value of a record that is all key (`x`). */
export function encodeMark(key: Buffer): Buffer {
  return sealed(draft(key, 1 + crcBytes))
}

/** Throws where the key is not what was written. Version 1 had no value and does not tell. */
export function assertMark(entry: StoreEntry): void {
  if (entry.value.length > 0) assertIntact(entry, 1 + crcBytes)
}
