/**
 * Decodes the records of LevelDB's `*.log` files. Each record is a write batch:
 *
 *     batch   sequence of its first operation (8 LE) | count (4 LE) | count operations
 *     put     1 | key | value           del   0 | key          a text is its length (varint) and its bytes
 */
import { LevelCursor } from './level-cursor.ts'

/** Header size and tags: kHeader in LevelDB's db/write_batch.cc, ValueType in its db/dbformat.h. */
const batchHeaderBytes = 12
const delTag = 0
const putTag = 1

export type LevelOperation =
  | { readonly type: 'put'; readonly key: Buffer; readonly value: Buffer }
  | { readonly type: 'del'; readonly key: Buffer }

/** A decoded write batch. */
export interface LevelBatch {
  /**
   * Sequence of the first operation; each further operation has the next one. Exact up to 2^53; LevelDB uses 56 bits.
   */
  readonly sequence: number
  /** Number of operations that were written. `operations` are those that could be decoded. */
  readonly count: number
  readonly operations: readonly LevelOperation[]
}

/**
 * Decodes a write batch up to the first operation that is incomplete.
 *
 * @param payload - one record of a log.
 * @returns undefined if not even the header is complete.
 */
export function decodeLevelBatch(payload: Buffer): LevelBatch | undefined {
  if (payload.length < batchHeaderBytes) return undefined
  const sequence = Number(payload.readBigUInt64LE(0))
  const count = payload.readUInt32LE(8)
  const cursor = new LevelCursor(payload, batchHeaderBytes)
  const operations: LevelOperation[] = []
  while (operations.length < count) {
    const operation = readOperation(cursor)
    if (operation === undefined) break
    operations.push(operation)
  }
  return { sequence, count, operations }
}

function readOperation(cursor: LevelCursor): LevelOperation | undefined {
  const tag = cursor.varint()
  if (tag !== putTag && tag !== delTag) return undefined
  const key = cursor.text()
  if (key === undefined) return undefined
  if (tag === delTag) return { type: 'del', key }
  const value = cursor.text()
  return value === undefined ? undefined : { type: 'put', key, value }
}
