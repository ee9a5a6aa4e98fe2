/**
 * The bytes of one body while it arrives, in a single piece of memory that doubles when it is full.
 *
 * A body may come in chunks of one byte. A Buffer per chunk would take 350 times what was sent, so all chunks but the
 * first are copied. A body of a single chunk is that chunk: nothing is copied. Memory is taken for bytes that have come
 * and never because a Content-Length announces them; the announced length only ends the doubling where it is reached.
 */
import { growingBodyBytesMin } from '../limits.ts'

export interface GrowingBodyOptions {
  /** The longest that the body can become; `add` is not called past it. */
  readonly bytesMax: number
  /** Asks whether `bytes` may be held from now on, in place of what was asked for before. */
  readonly hold: (bytes: number) => boolean
}

const nothing: Buffer = Buffer.alloc(0)

export class GrowingBody {
  readonly #options: GrowingBodyOptions
  /** The first chunk itself, until there is a second one. */
  #memory = nothing
  #length = 0

  constructor(options: GrowingBodyOptions) {
    this.#options = options
  }

  /**
   * Keeps the next chunk.
   *
   * @returns false where `hold` refused the memory for it; the body is empty then
   */
  add(chunk: Buffer): boolean {
    const length = this.#length + chunk.length
    if (this.#length === 0) {
      if (!this.#options.hold(chunk.length)) return false
      this.#memory = chunk
    } else {
      if (length > this.#memory.length && !this.#grow(length)) return false
      chunk.copy(this.#memory, this.#length)
    }
    this.#length = length
    return true
  }

  /** All bytes so far, in one piece. Nothing may be added afterwards. */
  bytes(): Buffer {
    return this.#length === this.#memory.length
      ? this.#memory
      : this.#memory.subarray(0, this.#length)
  }

  /** Lets go of the bytes. */
  clear(): void {
    this.#memory = nothing
    this.#length = 0
  }

  #grow(bytesMin: number): boolean {
    const { bytesMax, hold } = this.#options
    const doubled = Math.max(2 * this.#memory.length, growingBodyBytesMin)
    const capacity = Math.max(bytesMin, Math.min(doubled, bytesMax))
    if (!hold(capacity)) {
      this.clear()
      return false
    }
    // Not from the pool of small Buffers: a body that stalls would hold on to all of a pool's 8 KiB.
    const grown = Buffer.allocUnsafeSlow(capacity)
    this.#memory.copy(grown, 0, 0, this.#length)
    this.#memory = grown
    return true
  }
}
