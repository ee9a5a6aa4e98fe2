/**
 * Reusable shared memory that is lent for one task at a time.
 *
 * V8 does not count SharedArrayBuffers as garbage worth collecting. A new one per large update would stay until something
 * else has filled the heap, hundreds of megabytes later. So returned memory is kept for reuse, up to a limit.
 */
export class SharedScratch {
  readonly #bytesMin: number
  readonly #keptBytesMax: number
  readonly #kept: SharedArrayBuffer[] = []
  #keptBytes = 0

  constructor({ bytesMin, keptBytesMax }: { bytesMin: number; keptBytesMax: number }) {
    this.#bytesMin = bytesMin
    this.#keptBytesMax = keptBytesMax
  }

  /** The bytes that are kept for reuse. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** Returns at least `bytes` bytes with arbitrary content. */
  take(bytes: number): SharedArrayBuffer {
    const at = this.#kept.findIndex((memory) => memory.byteLength >= bytes)
    const [memory] = at < 0 ? [] : this.#kept.splice(at, 1)
    if (memory === undefined) return new SharedArrayBuffer(this.#sizeFor(bytes))
    this.#keptBytes -= memory.byteLength
    return memory
  }

  /** Returns memory that nothing reads any more. */
  give(memory: SharedArrayBuffer): void {
    if (this.#keptBytes + memory.byteLength > this.#keptBytesMax) return
    this.#kept.push(memory)
    this.#keptBytes += memory.byteLength
  }

  /** Sizes are powers of two, so that memory fits later requests. */
  #sizeFor(bytes: number): number {
    let size = this.#bytesMin
    while (size < bytes) size *= 2
    return size
  }
}
