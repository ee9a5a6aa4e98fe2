/**
 * The hashes of the idempotency keys of rows and of the texts of their updates, 128 bits of SHA-256 each, in one buffer:
 *
 *   0 hash of the key of row 0(16) | 16 hash of its text(16) | 32 hash of the key of row 1 ...
 *
 * A row without a key, and one whose update is not valid, has none.
 */
import { hash } from 'node:crypto'
import * as keys from './record-keys.ts'
import type { UpdateRows } from './update-rows.ts'

const hashBytes = keys.idempotencyHashBytes
const rowBytes = 2 * hashBytes

export class KeyHashes {
  readonly bytes: Buffer

  /** @param rows - each of which is checked, or belongs to another worker. */
  constructor(rows: UpdateRows) {
    this.bytes = Buffer.allocUnsafe(rows.count * rowBytes)
    for (let nth = 0; nth < rows.count; nth++) {
      if (rows.typeOf(nth) < 0) continue
      const key = rows.idempotencyKeyOf(nth)
      if (key === undefined) continue
      this.bytes.write(hash128(key), nth * rowBytes, 'latin1')
      this.bytes.write(hash128(rows.textOf(nth)), nth * rowBytes + hashBytes, 'latin1')
    }
  }

  /** Returns the hash of a key as a latin1 string, like `textHash`. */
  keyHash(nth: number): string {
    return this.bytes.toString('latin1', nth * rowBytes, nth * rowBytes + hashBytes)
  }

  textHash(nth: number): string {
    return this.bytes.toString('latin1', nth * rowBytes + hashBytes, (nth + 1) * rowBytes)
  }

  /** Returns four bytes of the hash of a key. */
  word(nth: number, word: number): number {
    return this.bytes.readInt32LE(nth * rowBytes + 4 * word)
  }
}

/** Returns the first 128 bits of SHA-256 of a key or of an update's text, as a latin1 string. */
export function hash128(bytes: string | Buffer): string {
  return hash('sha256', bytes, 'binary').slice(0, hashBytes)
}
