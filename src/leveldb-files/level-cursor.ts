/**
 * Reads the two encodings that all of LevelDB's structures consist of: a varint has seven bits in each byte, the
 * lowest first; a text is its length as a varint, followed by its bytes. Every method returns undefined if the bytes
 * end too early; do not use the cursor after that.
 */
export class LevelCursor {
  readonly #bytes: Buffer
  readonly #end: number
  #at: number

  /**
   * @param bytes - the data.
   * @param at - where to begin.
   * @param end - the byte after the last one that may be read.
   */
  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  /** Offset at which the next read begins. */
  get at(): number {
    return this.#at
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end
  }

  /** Reads a varint. Exact up to 2^53; LevelDB uses 64 bits. */
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

  /** Returns the next `length` bytes as a view, not a copy. */
  take(length: number): Buffer | undefined {
    if (this.#at + length > this.#end) return undefined
    const start = this.#at
    this.#at += length
    return this.#bytes.subarray(start, this.#at)
  }

  /** Reads a length and returns that number of bytes as a view, not a copy. */
  text(): Buffer | undefined {
    const length = this.varint()
    return length === undefined ? undefined : this.take(length)
  }
}
