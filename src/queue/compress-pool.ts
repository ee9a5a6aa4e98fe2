/**
 * The owner's side of compressed answers: one thread a worker process, started with the first large answer and
 * ended when idle.
 *
 * Compression is a courtesy to the client's line and never a reason to answer late or not at all: where too many
 * answers wait, the thread fails or the pool is closed, `compress` gives undefined and the answer goes out as it is.
 */

import { Piscina } from 'piscina'
import { compressIdleMs, compressPendingMax } from '../limits.ts'
import type { PageSource } from './page.ts'

export interface CompressedPage {
  readonly gzipped: Uint8Array
}

export interface CompressPoolOptions {
  /** Told of every failure of the thread; not of a full or closed pool. */
  readonly onFailure: (error: unknown) => void
  readonly pendingMax?: number
}

const filename = new URL('../../workers/compress-updates.js', import.meta.url).href

export class CompressPool {
  readonly #onFailure: (error: unknown) => void
  readonly #pendingMax: number
  #piscina: Piscina<PageSource, CompressedPage> | undefined
  #pending = 0
  #isClosed = false

  constructor(options: CompressPoolOptions) {
    this.#onFailure = options.onFailure
    this.#pendingMax = options.pendingMax ?? compressPendingMax
  }

  /**
   * Never rejects. Pieces over SharedArrayBuffers are shared with the thread; of any other the whole ArrayBuffer
   * under it is copied. The bytes of the updates must not change until this resolves.
   */
  async compress(source: PageSource): Promise<CompressedPage | undefined> {
    if (this.#isClosed || this.#pending >= this.#pendingMax) return undefined
    this.#piscina ??= this.#start()
    this.#pending++
    try {
      return await this.#piscina.run(source)
    } catch (error) {
      if (!this.#isClosed) this.#onFailure(error)
      return undefined
    } finally {
      this.#pending--
    }
  }

  /** Ends the thread; what it has not begun resolves to undefined. */
  async close(): Promise<void> {
    this.#isClosed = true
    const piscina = this.#piscina
    this.#piscina = undefined
    await piscina?.close({ force: true })
  }

  #start(): Piscina<PageSource, CompressedPage> {
    const piscina = new Piscina<PageSource, CompressedPage>({
      filename,
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: compressIdleMs,
    })
    // A thread that dies between two tasks; unheard, it would end the process.
    piscina.on('error', this.#onFailure)
    return piscina
  }
}
