/**
 * The hashes of the idempotency keys of rows and of the texts of their updates, 128 bits of SHA-256 each, in one buffer:
 *
 *   0 hash of the key of row 0(16) | 16 hash of its text(16) | 32 hash of the key of row 1 ...
 *
 * A row without a key, and one whose update is not valid, has none. Native code hashes all rows by one call
 * (native-bindings/hash_keys.c): for a key and a text of 300 B that takes a third of the time of two calls of `crypto.hash`.
 */
import { hash } from 'node:crypto'
import { keyHasher } from '../../../native-bindings/key-hasher.ts'
import * as keys from '../records/record-keys.ts'

const hashBytes = keys.idempotencyHashBytes
const rowBytes = 2 * hashBytes

/** What is hashed of rows, each of which is checked, or not pushed by this worker. */
export interface HashedRows {
  readonly bytes: Buffer
  readonly numbers: Int32Array
  readonly count: number
  typeOf(nth: number): number
  idempotencyKeyOf(nth: number): string | undefined
  textOf(nth: number): Buffer
}

export class KeyHashes {
  readonly bytes: Buffer

  constructor(rows: HashedRows) {
    this.bytes = Buffer.allocUnsafe(rows.count * rowBytes)
    if (keyHasher()?.(rows.bytes, rows.numbers, rows.count, this.bytes) === 0) return
    for (let nth = 0; nth < rows.count; nth++) {
      const key = rows.typeOf(nth) < 0 ? undefined : rows.idempotencyKeyOf(nth)
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
