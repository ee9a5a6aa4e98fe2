/**
 * The bytes of one body while it arrives, in a single piece of memory that doubles when it is full.
 *
 * A body may arrive in chunks of one byte. A Buffer per chunk would take 350 times the size of the body, so all chunks
 * but the first are copied. A body of a single chunk is that chunk, without a copy. Memory is taken for bytes that have
 * arrived and never because a Content-Length announces them; the announced length only stops the doubling.
 */
import { kib } from '../kit/limits.ts'

const nothing: Buffer = Buffer.alloc(0)

/** The memory for a body in several pieces begins with this many bytes and doubles; most bodies fit. */
export const growingBodyBytesMin = 4 * kib

/** Gathers the chunks of one body. */
export class GrowingBody {
  readonly #bytesMax: number
  readonly #hold: (bytes: number) => boolean
  /** The first chunk itself, until there is a second one. */
  #memory = nothing
  #length = 0

  /**
   * @param bytesMax - the largest size that the body can reach, in bytes; `add` is not called past it
   * @param hold - returns whether `bytes` may be held from now on, instead of what was asked for before
   */
  constructor(bytesMax: number, hold: (bytes: number) => boolean) {
    this.#bytesMax = bytesMax
    this.#hold = hold
  }

  /**
   * Appends a chunk.
   *
   * @param chunk - bytes that must not change afterwards: the first chunk is kept without a copy
   * @returns false if `hold` refused the memory; the body is empty then
   */
  add(chunk: Buffer): boolean {
    const length = this.#length + chunk.length
    if (this.#length === 0) {
      if (!this.#hold(chunk.length)) return false
      this.#memory = chunk
    } else {
      if (length > this.#memory.length && !this.#grow(length)) return false
      chunk.copy(this.#memory, this.#length)
    }
    this.#length = length
    return true
  }

  /** Returns all bytes so far as one Buffer. Nothing may be added afterwards. */
  bytes(): Buffer {
    return this.#length === this.#memory.length
      ? this.#memory
      : this.#memory.subarray(0, this.#length)
  }

  /** Releases the bytes. */
  clear(): void {
    this.#memory = nothing
    this.#length = 0
  }

  #grow(bytesMin: number): boolean {
    const doubled = Math.max(2 * this.#memory.length, growingBodyBytesMin)
    const capacity = Math.max(bytesMin, Math.min(doubled, this.#bytesMax))
    if (!this.#hold(capacity)) {
      this.clear()
      return false
    }
    // Not from the pool of small Buffers: a stalled body would keep the pool's complete 8 KiB in memory.
    const grown = Buffer.allocUnsafeSlow(capacity)
    this.#memory.copy(grown, 0, 0, this.#length)
    this.#memory = grown
    return true
  }
}
