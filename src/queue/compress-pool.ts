/**
 * The owner's side of compressed answers: one thread a worker process.
 *
 * Compression is a courtesy to the client's line and never a reason to answer late or not at all: where the thread does
 * not do it, `compress` gives undefined and the answer goes out as it is.
 */

import { compressIdleMs, compressPendingMax } from '../limits.ts'
import { HelperThread } from './helper-thread.ts'
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
  readonly #thread: HelperThread<PageSource, CompressedPage>

  constructor({ onFailure, pendingMax = compressPendingMax }: CompressPoolOptions) {
    this.#thread = new HelperThread({ filename, pendingMax, idleMs: compressIdleMs, onFailure })
  }

  /**
   * Never rejects. Pieces over SharedArrayBuffers are shared with the thread; of any other the whole ArrayBuffer
   * under it is copied. The bytes of the updates must not change until this resolves.
   */
  compress(source: PageSource): Promise<CompressedPage | undefined> {
    return this.#thread.run(() => source)
  }

  /** Ends the thread; what it has not begun resolves to undefined. */
  close(): Promise<void> {
    return this.#thread.close()
  }
}
