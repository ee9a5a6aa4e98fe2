/**
 * Reads the two encodings that all of LevelDB's structures are made of: a varint has seven bits a byte, the lowest
 * first, and a text is its length as a varint followed by its bytes. Every method returns undefined where the bytes
 * end too early; the cursor must not be used after that.
 */
export class LevelCursor {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  /** Where the next read begins. */
  get at(): number {
    return this.#at
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end
  }

  /** Exact up to 2^53; LevelDB has 64 bits. */
  varint(): number | undefined {
    let value = 0
    for (let factor = 1; factor <= 2 ** 63; factor *= 128) {
      if (this.#at >= this.#end) return undefined
      const byte = this.#bytes[this.#at++] ?? 0
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
    return undefined
  }

  /** The next `length` bytes, not copied. */
  take(length: number): Buffer | undefined {
    if (this.#at + length > this.#end) return undefined
    const start = this.#at
    this.#at += length
    return this.#bytes.subarray(start, this.#at)
  }

  text(): Buffer | undefined {
    const length = this.varint()
    return length === undefined ? undefined : this.take(length)
  }
}
