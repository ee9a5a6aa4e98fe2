/**
 * Writes the results of one NDJSON stream to the producer. There is one batch per slice of pairs; batches are filled in
 * any order and written in the order of the pairs, as soon as the first ones are complete.
 *
 * It also decides when reading must stop: while too many pairs wait for their results, or while the producer does not
 * read them.
 */
import type { ServerResponse } from 'node:http'
import { streamBytesMax, streamPairsMax } from '../limits.ts'
import { pairWeight } from './limits.ts'
import type { IngestShare } from './ingest-turns.ts'
import { ResultBatch } from './result-batch.ts'

export class StreamResults {
  readonly #response: ServerResponse
  readonly #share: IngestShare
  #batches: ResultBatch[] = []
  #waitingPairs = 0
  #waitingBytes = 0
  #isProducerSlow = false
  #isStopped = false
  /** Wakes the code that waits for a change; there is one waiter at a time. */
  #wake: (() => void) | undefined

  constructor(response: ServerResponse, share: IngestShare) {
    this.#response = response
    this.#share = share
    response.on('drain', () => {
      this.#isProducerSlow = false
      this.#wake?.()
    })
    response.once('close', () => this.stop())
  }

  /** Ends the wait for room, because nothing more will be read. */
  stop(): void {
    this.#isStopped = true
    this.#wake?.()
  }

  /** Opens a batch for pairs whose weight was taken from the share. The weight is returned when their results are written. */
  open(size: { readonly pairs: number; readonly bytes: number }): ResultBatch {
    const batch = new ResultBatch(size, () => this.#write())
    this.#batches.push(batch)
    this.#waitingPairs += batch.pairs
    this.#waitingBytes += batch.bytes
    return batch
  }

  /** Resolves when more may be read; undefined if it may immediately, which includes a closed response. */
  untilRoom(): Promise<void> | undefined {
    return this.#mustWait() ? this.#until(() => !this.#mustWait()) : undefined
  }

  /** Resolves when all batches are filled. */
  untilFilled(): Promise<void> {
    return this.#until(() => this.#batches.length === 0)
  }

  /** Writes the results of all complete batches at the front. */
  #write(): void {
    let text = ''
    let weight = 0
    while (this.#batches[0]?.isComplete === true) {
      const batch = this.#batches.shift()
      if (batch === undefined) break
      this.#waitingPairs -= batch.pairs
      this.#waitingBytes -= batch.bytes
      weight += weightOf(batch)
      text += batch.text()
    }
    if (text === '') return
    if (!this.#response.destroyed) this.#isProducerSlow = !this.#response.write(text)
    this.#share.give(weight)
    this.#wake?.()
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
  }

  #mustWait(): boolean {
    return (
      !this.#isStopped &&
      !this.#response.destroyed &&
      (this.#isProducerSlow ||
        this.#waitingPairs >= streamPairsMax ||
        this.#waitingBytes >= streamBytesMax)
    )
  }
}

/** Returns what pairs count for among all streams until they have their results. */
export function weightOf({
  pairs,
  bytes,
}: {
  readonly pairs: number
  readonly bytes: number
}): number {
  return bytes + pairs * pairWeight
}
