/**
 * What LevelDB's logs hold: a write batch in each record of a `*.log`.
 *
 *     batch   sequence of its first operation (8 LE) | count (4 LE) | count operations
 *     put     1 | key | value           del   0 | key          a text is its length (varint) and its bytes
 */

import { LevelCursor } from './files/level-cursor.ts'
import type { StoreOperation } from '../store.ts'

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
  const cursor = new LevelCursor(payload, batchHeaderBytes)
  const operations: StoreOperation[] = []
  while (operations.length < count) {
    const operation = readOperation(cursor)
    if (operation === undefined) break
    operations.push(operation)
  }
  return { sequence, count, operations }
}

function readOperation(cursor: LevelCursor): StoreOperation | undefined {
  const tag = cursor.varint()
  if (tag !== putTag && tag !== delTag) return undefined
  const key = cursor.text()
  if (key === undefined) return undefined
  if (tag === delTag) return { type: 'del', key }
  const value = cursor.text()
  return value === undefined ? undefined : { type: 'put', key, value }
}
