/**
 * Shared memory that is lent for a while and used again.
 *
 * V8 counts no SharedArrayBuffer as garbage that is worth a collection: one made for each large update and then
 * forgotten stays until something else has filled the heap, hundreds of megabytes later. So what is given back is kept,
 * up to a bound.
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

  /** What waits to be used again. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** At least so many bytes, with anything in them. */
  take(bytes: number): SharedArrayBuffer {
    const at = this.#kept.findIndex((memory) => memory.byteLength >= bytes)
    const [memory] = at < 0 ? [] : this.#kept.splice(at, 1)
    if (memory === undefined) return new SharedArrayBuffer(this.#sizeFor(bytes))
    this.#keptBytes -= memory.byteLength
    return memory
  }

  /** Only what nobody reads any more. */
  give(memory: SharedArrayBuffer): void {
    if (this.#keptBytes + memory.byteLength > this.#keptBytesMax) return
    this.#kept.push(memory)
    this.#keptBytes += memory.byteLength
  }

  /** Powers of two, so that one fits the next need. */
  #sizeFor(bytes: number): number {
    let size = this.#bytesMin
    while (size < bytes) size *= 2
    return size
  }
}
