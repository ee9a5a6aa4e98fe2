/** A kind of record, and what follows from its row in kinds.ts: its keys, their ranges, and the operations on the database. */
import assert from 'node:assert'
import type { StoreOperation } from '../../store/store.ts'
import type { Codec } from './record.ts'
import { type RecordKeyPart, type QueueId, queuePart } from './record-keys.ts'
import { maskOfNumbers, numbersIn } from '../../kit/update-types.ts'
import type { QueueSettings } from './bot-record.ts'
import type { ReplayRecord } from './replay-record.ts'

export type KeyParts = readonly RecordKeyPart<string, unknown>[]

/** What a kind of record is. `says` and `lost` are Markdown, for docs/inside/storage.md. */
export interface KindRow<Parts extends KeyParts, Stored> {
  /** The first byte of its keys. It is stored: do not change it, and use none again. */
  readonly letter: string
  /** What follows. The record is of the queue that is among them; one without a queue is of the server, and in shard 0. */
  readonly key: Parts
  readonly codec: Codec<Stored>
  /** What the log calls such a record. */
  readonly name: string
  /** What a place in a file is called before its id and its bot; `name` if absent. */
  readonly place?: string
  readonly says: string
  /** What follows from a damaged one. */
  readonly lost: string
  /** Whether it may have the payload of an update: the update itself, or a response that repeats it. An erasure deletes it. */
  readonly hasPayload?: boolean
  /** Absent if it has no types of updates, which an import gives the numbers of its target. */
  retyped?(stored: Stored, moves: TypeMoves): Stored
}

/** The values of which a key is made, in their order. */
export type KeyValues<Parts extends KeyParts> = {
  [Index in keyof Parts]: Parts[Index] extends RecordKeyPart<string, infer Value> ? Value : never
}

/** The values of a key by their names. */
export type KeyFields<Parts extends KeyParts> = {
  readonly [Part in Parts[number] as Part['name']]: ReturnType<Part['read']>
}

/** The values of the keys of a kind. */
export type FieldsIn<Kind> =
  Kind extends RecordKind<infer Parts, infer _Stored> ? KeyFields<Parts> : never

/** The records of a kind. */
export type StoredIn<Kind> = Kind extends { readonly row: { readonly codec: Codec<infer Stored> } }
  ? Stored
  : never

/** A record with the values of its key. */
export type RecordOf<Parts extends KeyParts, Stored> = KeyFields<Parts> & {
  readonly record: Stored
}

/** The first ones of the values. */
type Leading<Values extends readonly unknown[]> = Values extends readonly [
  infer First,
  ...infer Others,
]
  ? [] | [First, ...Leading<Others>]
  : []

export class RecordKind<const Parts extends KeyParts = KeyParts, Stored = unknown> {
  readonly row: KindRow<Parts, Stored>
  /** The first byte of a key. */
  readonly prefix: number
  /** The length of a key. */
  readonly keyBytes: number
  readonly #queueAt: number | undefined

  constructor(row: KindRow<Parts, Stored>) {
    this.row = row
    assert(/^[a-z]$/i.test(row.letter), 'the letter of a kind is one byte below 255')
    this.prefix = row.letter.charCodeAt(0)
    let at = 1
    for (const { name, bytes } of row.key) {
      assert(name !== 'queue' || this.#queueAt === undefined, 'a record is of one queue')
      if (name === 'queue') this.#queueAt = at
      at += bytes
    }
    this.keyBytes = at
  }

  /** Returns the key of a record. */
  key(...values: KeyValues<Parts>): Buffer {
    return this.#keyOf(values, this.keyBytes)
  }

  /** Returns the values of a key. */
  fields(key: Buffer): KeyFields<Parts>
  fields(key: Buffer): Readonly<Record<string, unknown>> {
    let at = 1
    const fields: Record<string, unknown> = {}
    for (const part of this.row.key) {
      fields[part.name] = part.read(key, at)
      at += part.bytes
    }
    return fields
  }

  /** Returns the operation of the database that puts a record, or deletes it (null). */
  written(fields: KeyFields<Parts>, stored: Stored | null): StoreOperation {
    const key = this.#keyOf(valuesOf(this.row.key, fields), this.keyBytes)
    if (stored === null) return { type: 'del', key }
    return { type: 'put', key, value: this.row.codec.encode(key, stored) }
  }

  /** Says in words what a key has, such as ` 7 of bot 123`. */
  words(key: Buffer): string {
    let at = 1
    let words = ''
    for (const part of this.row.key) {
      words = part.words(part.read(key, at)) + words
      at += part.bytes
    }
    return words
  }

  /** Returns the queue of a record by its key; undefined for a record of the server. */
  queueOf(key: Buffer): QueueId | undefined {
    if (this.#queueAt === undefined) return undefined
    return queuePart.read(key, this.#queueAt)
  }

  /** Returns the range of the keys that begin with these values; of all keys without any. */
  range(...leading: Leading<KeyValues<Parts>>): { readonly gte: Buffer; readonly lt: Buffer } {
    const gte = this.start(...leading)
    const lt = Buffer.from(gte)
    // No letter is the last byte, so this ends.
    for (let at = lt.length - 1; ; at--) {
      const byte = lt[at] ?? assert.fail('expected a letter below 255')
      lt[at] = (byte + 1) % 256
      if (byte < 255) return { gte, lt }
    }
  }

  /** Returns the lower bound of the keys that begin with these values. */
  start(...leading: Leading<KeyValues<Parts>>): Buffer {
    const values: readonly unknown[] = leading
    assert(values.length <= this.row.key.length, 'a range begins with values of its key')
    const bytes = this.row.key.slice(0, values.length).reduce((sum, part) => sum + part.bytes, 1)
    return this.#keyOf(values, bytes)
  }

  put(stored: Stored, ...values: KeyValues<Parts>): StoreOperation {
    const key = this.key(...values)
    return { type: 'put', key, value: this.row.codec.encode(key, stored) }
  }

  del(...values: KeyValues<Parts>): StoreOperation {
    return { type: 'del', key: this.key(...values) }
  }

  #keyOf(values: readonly unknown[], bytes: number): Buffer {
    const key = Buffer.allocUnsafe(bytes)
    key[0] = this.prefix
    let [at, index] = [1, 0]
    for (const part of this.row.key) {
      if (at === bytes) break
      part.write(key, values[index++], at)
      at += part.bytes
    }
    return key
  }
}

function valuesOf(parts: KeyParts, fields: Readonly<Record<string, unknown>>): readonly unknown[] {
  return parts.map(({ name }) => fields[name])
}

/**
 * What becomes of the types of updates in records that go to another server: it has other numbers for them, and derives ordering
 * keys with other letters.
 */
export interface TypeMoves {
  numberOf(before: number): number
  orderingKeyOf(before: string): string
}

export function movedUpdate<
  Update extends { readonly typeNumber: number; readonly orderingKey: string },
>(update: Update, moves: TypeMoves): Update {
  const typeNumber = moves.numberOf(update.typeNumber)
  return { ...update, typeNumber, orderingKey: moves.orderingKeyOf(update.orderingKey) }
}

export function movedSettings(settings: QueueSettings, moves: TypeMoves): QueueSettings {
  const { allowedTypes } = settings
  if (allowedTypes === undefined) return settings
  const numbers = numbersIn(allowedTypes).map((before) => moves.numberOf(before))
  return { ...settings, allowedTypes: maskOfNumbers(numbers) }
}

export function movedReplay(replay: ReplayRecord, moves: TypeMoves): ReplayRecord {
  const { selection } = replay
  if (selection.typeNumber === undefined) return replay
  const typeNumber = moves.numberOf(selection.typeNumber)
  return { ...replay, selection: { ...selection, typeNumber } }
}
