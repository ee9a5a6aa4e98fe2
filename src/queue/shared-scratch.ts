/**
 * Reusable memory that is lent for one task of a thread at a time.
 *
 *     up to the limit   shared memory, which is kept for reuse when it is returned
 *     beyond it         memory of this thread alone, of which the other one gets a copy
 *
 * V8 does not count SharedArrayBuffers as garbage worth collecting. One that nobody keeps would stay until something else has
 * filled the heap, hundreds of megabytes later. So no more of them are made than are kept.
 */
/** What is lent. */
export type ScratchMemory = ArrayBuffer | SharedArrayBuffer

export class SharedScratch {
  readonly #bytesMin: number
  readonly #keptBytesMax: number
  #kept: SharedArrayBuffer[] = []
  #keptBytes = 0
  /** What is lent of the shared memory. It grows by what is never returned, after a failure of the thread. */
  #lentBytes = 0

  constructor({ bytesMin, keptBytesMax }: { bytesMin: number; keptBytesMax: number }) {
    this.#bytesMin = bytesMin
    this.#keptBytesMax = keptBytesMax
  }

  /** The bytes that are kept for reuse. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** Returns at least `bytes` bytes with arbitrary content. */
  take(bytes: number): ScratchMemory {
    const at = this.#kept.findIndex((memory) => memory.byteLength >= bytes)
    const [kept] = at < 0 ? [] : this.#kept.splice(at, 1)
    if (kept !== undefined) this.#keptBytes -= kept.byteLength
    const memory = kept ?? this.#made(bytes)
    if (memory instanceof SharedArrayBuffer) this.#lentBytes += memory.byteLength
    return memory
  }

  /** Returns memory that nothing reads any more. */
  give(memory: ScratchMemory): void {
    if (!(memory instanceof SharedArrayBuffer)) return
    this.#lentBytes -= memory.byteLength
    this.#kept.push(memory)
    this.#keptBytes += memory.byteLength
  }

  #made(bytes: number): ScratchMemory {
    const size = this.#sizeFor(bytes)
    if (this.#lentBytes + size > this.#keptBytesMax) return new ArrayBuffer(bytes)
    // All that is kept is smaller. It makes room for one that also fits what these were for, so this happens a few times at most.
    if (this.#lentBytes + this.#keptBytes + size > this.#keptBytesMax) {
      this.#kept = []
      this.#keptBytes = 0
    }
    return new SharedArrayBuffer(size)
  }

  /** Sizes are powers of two, so that memory fits later requests. */
  #sizeFor(bytes: number): number {
    let size = this.#bytesMin
    while (size < bytes) size *= 2
    return size
  }
}
