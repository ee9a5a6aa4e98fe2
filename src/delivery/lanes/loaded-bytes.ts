/**
 * Counts the updates that all webhooks of a worker have loaded. One webhook may load 4 MiB, but thousands of endpoints may hang at
 * a time, each with large updates before it. Once all together have as much as they may, each may load only a little more than the
 * updates that are in flight.
 */
import { kib } from '../../kit/limits.ts'

/**
 * The loaded updates of one webhook may have this many bytes while the webhooks of the worker hold as much as they may
 * together. Chosen: a page of usual updates still fits, so only large ones are read again more often.
 */
const webhookTightBytesMax = 256 * kib

export class LoadedBytes {
  readonly #bytesMax: number
  readonly #tightBytesMax: number
  #bytes = 0

  /**
   * @param bytesMax - how much all webhooks may load without restriction
   * @param tightBytesMax - how much each may load after that
   */
  constructor(bytesMax: number, tightBytesMax: number = webhookTightBytesMax) {
    this.#bytesMax = bytesMax
    this.#tightBytesMax = tightBytesMax
  }

  /** How much one webhook may load now. */
  get bytesMaxOfEach(): number {
    return this.#bytes < this.#bytesMax ? Number.POSITIVE_INFINITY : this.#tightBytesMax
  }

  add(bytes: number): void {
    this.#bytes += bytes
  }
}
