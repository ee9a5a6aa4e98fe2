/**
 * What LevelDB's files hold: a write batch in each record of a `*.log`, an edit of its list of files in each
 * record of a `MANIFEST-*`.
 *
 *     batch   sequence of its first operation (8 LE) | count (4 LE) | count operations
 *     put     1 | key | value           del   0 | key          a text is its length (varint) and its bytes
 *     edit    tag (varint) and what belongs to it, repeated
 */

import type { StoreOperation } from './store.ts'

const batchHeaderBytes = 12
const delTag = 0
const putTag = 1

export interface LevelBatch {
  /** Sequence of the first operation; those of a batch count up by one. Exact up to 2^53; LevelDB has 56 bits. */
  readonly sequence: number
  /** How many operations were written, of which `operations` are those that could be read. */
  readonly count: number
  readonly operations: readonly StoreOperation[]
}

/** Undefined where not even the header is there. Stops at the first operation that is not whole. */
export function decodeLevelBatch(payload: Buffer): LevelBatch | undefined {
  if (payload.length < batchHeaderBytes) return undefined
  const sequence = Number(payload.readBigUInt64LE(0))
  const count = payload.readUInt32LE(8)
  const cursor = new Cursor(payload, batchHeaderBytes)
  const operations: StoreOperation[] = []
  while (operations.length < count) {
    const operation = cursor.operation()
    if (operation === undefined) break
    operations.push(operation)
  }
  return { sequence, count, operations }
}

export interface LevelEdit {
  /** Logs with smaller numbers are in tables already, but for `previousLog`. */
  readonly log: number | undefined
  readonly previousLog: number | undefined
}

/** The two numbers of logs that an edit sets; undefined where it cannot be read to its end. */
export function decodeLevelEdit(payload: Buffer): LevelEdit | undefined {
  const cursor = new Cursor(payload, 0)
  let log: number | undefined
  let previousLog: number | undefined
  while (!cursor.isAtEnd) {
    const tag = cursor.varint()
    const fields = tag === undefined ? undefined : editFields.get(tag)
    if (fields === undefined) return undefined
    let number: number | undefined
    for (const field of fields) {
      if (field === 'number') {
        number = cursor.varint()
        if (number === undefined) return undefined
      } else if (cursor.text() === undefined) {
        return undefined
      }
    }
    if (tag === 2) log = number
    if (tag === 9) previousLog = number
  }
  return { log, previousLog }
}

/** version_edit.cc of LevelDB 1.20. */
const editFields: ReadonlyMap<number, readonly ('number' | 'text')[]> = new Map([
  [1, ['text']], // comparator
  [2, ['number']], // log
  [3, ['number']], // next file
  [4, ['number']], // last sequence
  [5, ['number', 'text']], // compaction pointer: level, key
  [6, ['number', 'number']], // deleted file: level, file
  [7, ['number', 'number', 'number', 'text', 'text']], // new file: level, file, size, smallest, largest key
  [9, ['number']], // previous log
])

class Cursor {
  readonly #bytes: Buffer
  #at: number

  constructor(bytes: Buffer, at: number) {
    this.#bytes = bytes
    this.#at = at
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  operation(): StoreOperation | undefined {
    const tag = this.varint()
    if (tag !== putTag && tag !== delTag) return undefined
    const key = this.text()
    if (key === undefined) return undefined
    if (tag === delTag) return { type: 'del', key }
    const value = this.text()
    return value === undefined ? undefined : { type: 'put', key, value }
  }

  /** Seven bits a byte, the lowest first. */
  varint(): number | undefined {
    let value = 0
    for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) return undefined
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
    return undefined
  }

  text(): Buffer | undefined {
    const length = this.varint()
    if (length === undefined || this.#at + length > this.#bytes.length) return undefined
    const start = this.#at
    this.#at += length
    return this.#bytes.subarray(start, this.#at)
  }
}
