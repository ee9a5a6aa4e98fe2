/**
 * The values of a shard's database. Every value begins with its version and ends with the CRC-32 of all
 * bytes before it, because LevelDB drops what it finds damaged without a word. On disk for ever: a new
 * layout gets a new version number. See docs/storage.md.
 *
 *   u, version 1:   0 version | 1 type | 2 accepted_at_s(4) | 6 expires_at_ms(6) | 12 key_length(2)
 *                   | 14 ordering key | text | crc(4)
 *   s, version 1:   0 version | 1 next_id(4) | 5 floor(4) | 9 live_count(4) | 13 live_bytes(8)
 *                   | 21 idempotency day(4) | 25 idempotency count(4) | 29 crc(4)
 *   d, version 1:   0 version | 1 type | 2 reason | 3 buried_at_ms(6) | 9 accepted_at_s(4) | 13 attempts(4)
 *                   | 17 error_length(2) | 19 key_length(2) | 21 error | ordering key | text | crc(4)
 *   i, version 1:   0 version | 1 update_id(4) | 5 accepted_at_ms(6) | 11 hash of the text(16) | 27 crc(4)
 *   b, w version 1: 0 version | JSON | crc(4)
 */
import { crc32 } from 'node:zlib'

const version = 1
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

/** A stored value that is not what was written. */
export class DamagedRecordError extends Error {
  constructor(expected: string) {
    super(`damaged record: expected ${expected}`)
    this.name = 'DamagedRecordError'
  }
}

function sealed(value: Buffer): Buffer {
  const end = value.length - crcBytes
  value.writeUInt32BE(crc32(value.subarray(0, end)), end)
  return value
}

function assertIntact(value: Buffer, bytesMin: number): void {
  const end = value.length - crcBytes
  if (end < bytesMin - crcBytes || value[0] !== version) {
    throw new DamagedRecordError(`version ${version} and at least ${bytesMin} bytes`)
  }
  if (crc32(value.subarray(0, end)) !== value.readUInt32BE(end)) {
    throw new DamagedRecordError('a matching CRC-32')
  }
}

export function encodeUpdate(update: UpdateRecord): Buffer {
  const keyBytes = Buffer.byteLength(update.orderingKey)
  const value = Buffer.allocUnsafe(updateHeaderBytes + keyBytes + update.text.length + crcBytes)
  value[0] = version
  value[1] = update.typeNumber
  value.writeUInt32BE(update.acceptedAtS, 2)
  value.writeUIntBE(Math.round(update.expiresAtS * 1000), 6, 6)
  value.writeUInt16BE(keyBytes, 12)
  value.write(update.orderingKey, updateHeaderBytes)
  value.set(update.text, updateHeaderBytes + keyBytes)
  return sealed(value)
}

export function decodeUpdate(value: Buffer): UpdateRecord {
  assertIntact(value, updateHeaderBytes + crcBytes)
  const textStart = updateHeaderBytes + value.readUInt16BE(12)
  return {
    typeNumber: value.readUInt8(1),
    acceptedAtS: value.readUInt32BE(2),
    expiresAtS: value.readUIntBE(6, 6) / 1000,
    orderingKey: value.toString('utf8', updateHeaderBytes, textStart),
    text: value.subarray(textStart, value.length - crcBytes),
  }
}

export function encodeLetter(letter: LetterRecord): Buffer {
  const errorBytes = Buffer.byteLength(letter.lastError)
  const keyStart = letterHeaderBytes + errorBytes
  const textStart = keyStart + Buffer.byteLength(letter.orderingKey)
  const value = Buffer.allocUnsafe(textStart + letter.text.length + crcBytes)
  value[0] = version
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
  return sealed(value)
}

export function decodeLetter(value: Buffer): LetterRecord {
  assertIntact(value, letterHeaderBytes + crcBytes)
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

export function encodeKey({ updateId, acceptedAtMs, textHash }: KeyRecord): Buffer {
  const value = Buffer.allocUnsafe(keyRecordBytes)
  value[0] = version
  value.writeUInt32BE(updateId, 1)
  value.writeUIntBE(acceptedAtMs, 5, 6)
  value.write(textHash, 11, textHashBytes, 'latin1')
  return sealed(value)
}

export function decodeKey(value: Buffer): KeyRecord {
  assertIntact(value, keyRecordBytes)
  return {
    updateId: value.readUInt32BE(1),
    acceptedAtMs: value.readUIntBE(5, 6),
    textHash: value.toString('latin1', 11, 11 + textHashBytes),
  }
}

export function encodeQueueState(state: QueueState): Buffer {
  const value = Buffer.allocUnsafe(queueStateBytes)
  value[0] = version
  value.writeUInt32BE(state.nextId, 1)
  value.writeUInt32BE(state.floor, 5)
  value.writeUInt32BE(state.liveCount, 9)
  value.writeDoubleBE(state.liveBytes, 13)
  value.writeUInt32BE(state.idempotencyDay, 21)
  value.writeUInt32BE(state.idempotencyCount, 25)
  return sealed(value)
}

export function decodeQueueState(value: Buffer): QueueState {
  assertIntact(value, queueStateBytes)
  return {
    nextId: value.readUInt32BE(1),
    floor: value.readUInt32BE(5),
    liveCount: value.readUInt32BE(9),
    liveBytes: value.readDoubleBE(13),
    idempotencyDay: value.readUInt32BE(21),
    idempotencyCount: value.readUInt32BE(25),
  }
}

export function encodeJson(record: unknown): Buffer {
  const json = JSON.stringify(record)
  const value = Buffer.allocUnsafe(1 + Buffer.byteLength(json) + crcBytes)
  value[0] = version
  value.write(json, 1)
  return sealed(value)
}

/** The record `encodeJson` was given; its shape is the writer's word. */
export function decodeJson(value: Buffer): ReturnType<typeof JSON.parse> {
  assertIntact(value, 1 + crcBytes)
  return JSON.parse(value.toString('utf8', 1, value.length - crcBytes))
}
