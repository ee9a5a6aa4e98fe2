/**
 * Writes the results of one NDJSON stream to the producer. There is one batch per slice of pairs; batches are filled in
 * any order and written in the order of the pairs, as soon as the first ones are complete.
 *
 * It also decides when reading must stop: while too many pairs wait for their results, or while the producer does not
 * read them.
 */
import type { ServerResponse } from 'node:http'
import type { IngestShare } from './ingest-turns.ts'
import { ResultBatch } from './result-batch.ts'
import { mib } from '../../kit/limits.ts'

/** This many pairs of one NDJSON stream may wait for their results; past that the stream is not read. */
export const streamPairsMax = 8_192
/**
 * The pairs of one stream that wait for their results may have this many bytes: 16 updates of the largest default size.
 * Past that the stream is not read.
 */
const streamBytesMax = 8 * mib

export class StreamResults {
  readonly #response: ServerResponse
  readonly #share: IngestShare
  readonly #rests: (isResting: boolean) => void
  #batches: ResultBatch[] = []
  #waitingPairs = 0
  #waitingBytes = 0
  #isProducerSlow = false
  #isStopped = false
  /** Wakes the code that waits for a change; there is one waiter at a time. */
  #wake: (() => void) | undefined

  /** @param rests - called when the last batch is written, and when the next one is opened */
  constructor(response: ServerResponse, share: IngestShare, rests: (isResting: boolean) => void) {
    this.#response = response
    this.#share = share
    this.#rests = rests
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
    if (this.#batches.length === 0) this.#rests(false)
    this.#batches.push(batch)
    this.#waitingPairs += batch.pairs
    this.#waitingBytes += batch.bytes
    return batch
  }

  /** Takes back a batch and all later ones, whose pairs get no results. */
  withdraw(batch: ResultBatch): void {
    let weight = 0
    for (const each of this.#batches.splice(this.#batches.indexOf(batch)))
      weight += this.#left(each)
    this.#share.give(weight)
    this.#wake?.()
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
      weight += this.#left(batch)
      text += batch.text()
    }
    if (text === '') return
    if (!this.#response.destroyed) this.#isProducerSlow = !this.#response.write(text)
    this.#share.give(weight)
    if (this.#batches.length === 0) this.#rests(true)
    this.#wake?.()
  }

  /** Returns the weight of a batch that waits no more. */
  #left(batch: ResultBatch): number {
    this.#waitingPairs -= batch.pairs
    this.#waitingBytes -= batch.bytes
    return weightOf(batch)
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

/** A pair weighs this many bytes in addition to its own: the objects that represent it until its result is there. */
const pairWeight = 512

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
