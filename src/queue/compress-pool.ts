/**
 * Compresses getUpdates replies off the event loop, in one thread per worker process. This file is the owner's side.
 *
 * Compression only saves bandwidth, so it never delays a reply: if the thread does not compress, `compress` returns
 * undefined and the reply is sent uncompressed.
 */
import { entryFiles } from '../entry-files.ts'
import { HelperThread } from '../kit/helper-thread.ts'
import type { PageSource } from './window/page.ts'

/** A complete reply, compressed with gzip. */
export interface CompressedPage {
  readonly gzipped: Uint8Array
}

/**
 * This many responses wait for the compression thread. One takes 0.5 to 5 ms, so with more the wait would be longer than
 * sending the response uncompressed.
 */
const compressPendingMax = 32
/**
 * The compression thread ends after this idle time. It costs 5 to 10 MB, and 30 ms to start, so it is kept between the
 * polls of a backlog.
 */
const compressIdleMs = 60_000

/** The compression thread of a worker. */
export class CompressPool {
  readonly #thread: HelperThread<PageSource, CompressedPage>

  /** @param onFailure - called with every failure of the thread, but not if the pool is full or closed */
  constructor(onFailure: (error: unknown) => void, pendingMax = compressPendingMax) {
    this.#thread = new HelperThread({
      filename: entryFiles.compressUpdates.href,
      pendingMax,
      idleMs: compressIdleMs,
      onFailure,
    })
  }

  /**
   * Compresses a reply in the thread. Never rejects. Pieces in SharedArrayBuffers are shared with the thread; for any
   * other piece the complete underlying ArrayBuffer is copied. The bytes of the updates must not change until the promise
   * resolves.
   *
   * @returns undefined if the thread did not compress
   */
  compress(source: PageSource): Promise<CompressedPage | undefined> {
    return this.#thread.run(() => source)
  }

  /** Ends the thread. Tasks that it has not begun resolve to undefined. */
  close(): Promise<void> {
    return this.#thread.close()
  }
}
