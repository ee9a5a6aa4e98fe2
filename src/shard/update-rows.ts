/**
 * Updates on their way from their producer to the log: their bytes, and a row of numbers for each. An update is an object
 * only where it is looked at alone.
 *
 *   bytes   ... {"bot_id":1,"ordering_key":"a"}\n{"message":{...}}\n ...
 *               ^0 start                       ^1 header end
 *                                               ^2 update start  ^3 end
 *                                                ^5 text start  ^6 text end
 *
 *   4 type           its number; -2: not checked yet; -3: not valid, and nothing says why yet; -4: not valid, as `refusalOf`
 *                    says; -1: this worker does not push it, because its header is refused or another worker has its bot
 *   7 key letter     the ordering key is this character and the id in 8 to 9, then `/` and the id in 10 to 11 unless that is
 *                    -1; `=` stands for a key that the producer has chosen. 0: the key is ''. -1: it is one of the `strings`.
 *                    -2: JavaScript derives it from the text
 *   12 | 13          the idempotency key; 0 | 0: there is none; -1: it is one of the `strings`
 *   14 ttl           in seconds; 0: that of the type
 *   15 flags         as below, and from bit 8 on the offset in the header of the place in a trace, if it is of the bytes
 *
 * All places are offsets in `bytes`. Native code fills the rows (split_pairs.c, check_updates.c) and encodes them
 * (encode_records.c), so the columns have their numbers there, too. Rare headers and keys are left to
 * JavaScript.
 */
import type { PostboteError } from '../kit/errors.ts'
import { isSampled, traceparentLength } from '../kit/tracing/traceparent.ts'
import { KeyHashes } from './idempotency/key-hashes.ts'

export const rowLength = 16
export const startColumn = 0
export const headerEndColumn = 1
export const updateStartColumn = 2
export const endColumn = 3
export const typeColumn = 4
export const textStartColumn = 5
export const textEndColumn = 6
export const keyLetterColumn = 7
const idColumn = 8
const secondIdColumn = 10
const idempotencyKeyColumn = 12
const ttlColumn = 14
export const flagsColumn = 15

const notOursType = -1
/** What is in place of the type of an update that is not checked yet. */
export const uncheckedType = -2
/** What is in place of the type of an update that is not valid, before and after the words are found. */
export const refusedType = -3
const invalidType = -4
/** What is in place of the letter of a key that native code leaves to JavaScript. */
export const underivedKey = -2

const testFlag = 1
const validatedFlag = 2
export const headerTooLargeFlag = 4
export const updateTooLargeFlag = 8
/** The update has a place in a trace. */
const tracedFlag = 16
/** The bits of the flags from here on are where that place is in the header; 0 if it is none of the bytes. */
const traceShift = 8

/** The options that an update is pushed with. */
export interface RowOptions {
  /** The producer's key; undefined to derive one from the update. */
  readonly orderingKey: string | undefined
  readonly ttlS: number | undefined
  /** The producer's key. A later push with the same key gets the result of this one. */
  readonly idempotencyKey: string | undefined
  readonly isTest: boolean
  /** Whether the update must have the fields that bot frameworks need; otherwise only the setting of the bot counts. */
  readonly isValidated: boolean
  /** The place of the producer in its trace. */
  readonly traceparent?: string | undefined
}

/** Updates of one buffer. */
export class UpdateRows {
  readonly bytes: Buffer
  readonly numbers: Int32Array
  /** The bot of each update; NaN if the header is not read yet, and -1 if it has none. */
  readonly bots: Float64Array
  /** Keys that are no ranges of the bytes, by the position of their column in `numbers`. */
  #strings: Map<number, string> | undefined
  #refusals: Map<number, PostboteError> | undefined
  #keyHashes: KeyHashes | undefined
  /** Places in traces that are none of the bytes, by the number of the row. */
  #traceparents: Map<number, string> | undefined

  constructor(bytes: Buffer, numbers: Int32Array, bots: Float64Array) {
    this.bytes = bytes
    this.numbers = numbers
    this.bots = bots
  }

  /** Returns a row without a header for an update that is not checked yet. */
  static ofOne(bytes: Buffer, botId: number, options?: RowOptions): UpdateRows {
    const numbers = new Int32Array(rowLength)
    numbers[endColumn] = bytes.length
    numbers[typeColumn] = uncheckedType
    const rows = new UpdateRows(bytes, numbers, Float64Array.of(botId))
    if (options !== undefined) rows.setOptions(0, options)
    return rows
  }

  get count(): number {
    return this.bots.length
  }

  /** The bytes of all lines, and of what is between them. */
  get lineBytes(): number {
    return this.at(this.count - 1, endColumn) - this.at(0, startColumn)
  }

  /** Returns a number of a row. */
  at(nth: number, column: number): number {
    return this.numbers[nth * rowLength + column] ?? 0
  }

  botOf(nth: number): number {
    return this.bots[nth] ?? -1
  }

  /** Why an update or its header is refused. */
  refusalOf(nth: number): PostboteError | undefined {
    return this.#refusals?.get(nth)
  }

  /** Whether the row is not pushed by this worker, because its header is refused or another worker has its bot. */
  isNotOurs(nth: number): boolean {
    return this.typeOf(nth) === notOursType
  }

  /** Another worker checks and pushes the update. */
  setNotOurs(nth: number): void {
    this.numbers[nth * rowLength + typeColumn] = notOursType
  }

  /** @param botId - -1 if the header does not even have a bot */
  refuseHeader(nth: number, error: PostboteError, botId: number): void {
    this.bots[nth] = botId
    this.#refuse(nth, notOursType, error)
  }

  /** The update is not valid. */
  refuseUpdate(nth: number, error: PostboteError): void {
    this.#refuse(nth, invalidType, error)
  }

  /** Sets what the header of an update says, which is not checked yet. */
  setOptions(nth: number, options: RowOptions): void {
    const from = nth * rowLength
    this.numbers.fill(0, from + keyLetterColumn, from + rowLength)
    this.numbers[from + typeColumn] = uncheckedType
    if (options.orderingKey !== undefined) {
      this.setOrderingKey(nth, producerKey(options.orderingKey))
    }
    if (options.idempotencyKey !== undefined) {
      this.#setString(from + idempotencyKeyColumn, options.idempotencyKey)
    }
    this.numbers[from + ttlColumn] = options.ttlS ?? 0
    this.numbers[from + flagsColumn] =
      (options.isTest ? testFlag : 0) | (options.isValidated ? validatedFlag : 0)
    if (options.traceparent !== undefined) this.setTraceparent(nth, options.traceparent)
  }

  setTraceparent(nth: number, traceparent: string): void {
    this.numbers[nth * rowLength + flagsColumn] = this.flagsOf(nth) | tracedFlag
    this.#traceparents ??= new Map()
    this.#traceparents.set(nth, traceparent)
  }

  /** Sets an ordering key in its stored form that is no range of the bytes. */
  setOrderingKey(nth: number, key: string): void {
    this.#setString(nth * rowLength + keyLetterColumn, key)
  }

  /** Sets the result of a check: the place of the text. */
  setText(nth: number, typeNumber: number, start: number, end: number): void {
    const from = nth * rowLength
    this.numbers[from + typeColumn] = typeNumber
    this.numbers[from + textStartColumn] = start
    this.numbers[from + textEndColumn] = end
  }

  typeOf(nth: number): number {
    return this.at(nth, typeColumn)
  }

  flagsOf(nth: number): number {
    return this.at(nth, flagsColumn)
  }

  isTest(nth: number): boolean {
    return (this.flagsOf(nth) & testFlag) !== 0
  }

  isValidated(nth: number): boolean {
    return (this.flagsOf(nth) & validatedFlag) !== 0
  }

  /** The time to live in seconds; 0 for that of the type, if the producer has not chosen one. */
  ttlOf(nth: number): number {
    return this.at(nth, ttlColumn)
  }

  setTtl(nth: number, ttlS: number): void {
    this.numbers[nth * rowLength + ttlColumn] = ttlS
  }

  textBytes(nth: number): number {
    return this.at(nth, textEndColumn) - this.at(nth, textStartColumn)
  }

  /** Returns a view of the text of a checked update. */
  textOf(nth: number): Buffer {
    return this.bytes.subarray(this.at(nth, textStartColumn), this.at(nth, textEndColumn))
  }

  /** The length of the update as it was sent. */
  updateBytes(nth: number): number {
    return this.at(nth, endColumn) - this.at(nth, updateStartColumn)
  }

  /** Returns a view of the header line. */
  headerOf(nth: number): Buffer {
    return this.bytes.subarray(this.at(nth, startColumn), this.at(nth, headerEndColumn))
  }

  /** Returns a view of the update as it was sent. */
  updateOf(nth: number): Buffer {
    return this.bytes.subarray(this.at(nth, updateStartColumn), this.at(nth, endColumn))
  }

  /** Whether the ordering key is a range of the bytes. */
  hasKeyInBytes(nth: number): boolean {
    return this.at(nth, keyLetterColumn) >= 0
  }

  /** The most bytes that an ordering key in the bytes has. */
  keyBytesMax(nth: number): number {
    const from = nth * rowLength
    return 2 + this.#lengthOf(from + idColumn) + this.#lengthOf(from + secondIdColumn)
  }

  /** Returns the ordering key of a checked update in its stored form. */
  orderingKeyOf(nth: number): string {
    const from = nth * rowLength
    const letter = this.at(nth, keyLetterColumn)
    if (letter < 0) return this.#strings?.get(from + keyLetterColumn) ?? ''
    if (letter === 0) return ''
    const key = String.fromCharCode(letter) + this.#range(from + idColumn)
    const hasSecond = this.at(nth, secondIdColumn) >= 0
    return hasSecond ? `${key}/${this.#range(from + secondIdColumn)}` : key
  }

  hasIdempotencyKey(nth: number): boolean {
    return this.at(nth, idempotencyKeyColumn) !== 0
  }

  idempotencyKeyOf(nth: number): string | undefined {
    if (!this.hasIdempotencyKey(nth)) return undefined
    const column = nth * rowLength + idempotencyKeyColumn
    return this.#strings?.get(column) ?? this.#range(column)
  }

  /** The hashes of the idempotency keys. Ask for them once the updates are checked. */
  get keyHashes(): KeyHashes {
    return (this.#keyHashes ??= new KeyHashes(this))
  }

  /** Whether the update has a place in a trace. */
  isTraced(nth: number): boolean {
    return (this.flagsOf(nth) & tracedFlag) !== 0
  }

  /** Whether all that is stored of a trace is in the bytes. */
  hasTraceInBytes(nth: number): boolean {
    return this.flagsOf(nth) >>> traceShift !== 0
  }

  /** Whether the update has a place in a trace that is sampled, without a text of that place. */
  isSampled(nth: number): boolean {
    if (!this.isTraced(nth)) return false
    const offset = this.flagsOf(nth) >>> traceShift
    if (offset === 0) return isSampled(this.#traceparents?.get(nth) ?? '')
    // The last digit is that of a number from 0 to 3, and odd like its character.
    const last = this.bytes[this.at(nth, startColumn) + offset + traceparentLength - 1] ?? 0
    return (last & 1) !== 0
  }

  /** The place in a trace that the update was pushed with. */
  traceparentOf(nth: number): string | undefined {
    if (!this.isTraced(nth)) return undefined
    const offset = this.flagsOf(nth) >>> traceShift
    if (offset === 0) return this.#traceparents?.get(nth)
    const start = this.at(nth, startColumn) + offset
    return this.bytes.toString('latin1', start, start + traceparentLength)
  }

  #refuse(nth: number, type: number, error: PostboteError): void {
    this.numbers[nth * rowLength + typeColumn] = type
    this.#refusals ??= new Map()
    this.#refusals.set(nth, error)
  }

  #setString(column: number, text: string): void {
    this.numbers[column] = -1
    this.#strings ??= new Map()
    this.#strings.set(column, text)
  }

  #lengthOf(column: number): number {
    return (this.numbers[column + 1] ?? 0) - (this.numbers[column] ?? 0)
  }

  /** Ranges of keys are ASCII. */
  #range(column: number): string {
    return this.bytes.toString('latin1', this.numbers[column], this.numbers[column + 1])
  }
}

/**
 * Returns the stored form of an ordering key that a producer has chosen.
 *
 * @param key - the producer's key, at most 256 bytes
 */
export function producerKey(key: string): string {
  return `=${key}`
}
