/**
 * One NDJSON stream: pairs in, one result line per pair out, in order, as commits land.
 *
 *   request --PairSplitter--> pairs --by owner--> this worker's BotService | another worker's stream
 *                                                        \                 /
 *   response <-- lines in order <-- Batch: one per chunk read, filled from both sides
 *
 * Nothing more is read while too many pairs wait for their results, or while the producer does not read them.
 * A stream that another worker sent on (no links) is answered here alone, and ends when the producer's does.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BotService, PushRequest } from '../bots/bot-service.ts'
import type { Clock } from '../clock.ts'
import { PostboteError, toPostboteError } from '../errors.ts'
import {
  refusedLingerMs,
  streamBytesMax,
  streamIdleMs,
  streamPairsMax,
  updateSlackBytes,
} from '../limits.ts'
import type { OwnerLinks } from './owner-links.ts'
import { OwnerFeed } from './owner-feed.ts'
import { botIdOf, parsePairHeader } from './pair-header.ts'
import { type OversizePair, type Pair, PairSplitter } from './pair-splitter.ts'
import { privateErrorText } from './private-error.ts'
import { pushResultText } from './push-result.ts'
import { ResultBatch } from './result-batch.ts'

export interface IngestStreamOptions {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly bots: BotService
  readonly clock: Clock
  readonly updateBytesMax: number
  /** Undefined for a stream that came from another worker. */
  readonly links: OwnerLinks | undefined
}

type Read = IteratorResult<Buffer> | 'stopped'

export class IngestStream {
  readonly #options: IngestStreamOptions
  readonly #splitter: PairSplitter
  readonly #feeds = new Map<number, OwnerFeed>()
  #isStopped = false
  /** Ends the wait for the next chunk. */
  #onStop: (() => void) | undefined
  #batches: ResultBatch[] = []
  #waitingPairs = 0
  #waitingBytes = 0
  #wakeReader: (() => void) | undefined
  #isProducerSlow = false
  #running: Promise<void> | undefined

  constructor(options: IngestStreamOptions) {
    this.#options = options
    this.#splitter = new PairSplitter({
      updateLineBytesMax: options.updateBytesMax + updateSlackBytes,
    })
  }

  /** Reads nothing more; what has been read is answered, then the answer ends normally. */
  stop(): void {
    this.#isStopped = true
    this.#onStop?.()
  }

  /** The same; resolves when the producer has its answer. */
  async end(): Promise<void> {
    this.stop()
    await this.#running
  }

  /** Called once. */
  run(): Promise<void> {
    this.#running = this.#run()
    return this.#running
  }

  async #run(): Promise<void> {
    const { response } = this.#options
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    response.flushHeaders()
    response.on('drain', () => {
      this.#isProducerSlow = false
      this.#wakeReader?.()
    })
    response.once('close', () => {
      this.stop()
      this.#wakeReader?.()
    })
    try {
      await this.#readAll()
    } finally {
      await this.#finish()
    }
  }

  async #readAll(): Promise<void> {
    const chunks: AsyncIterator<Buffer> = this.#options.request[Symbol.asyncIterator]()
    for (;;) {
      const read = await this.#next(chunks)
      if (read === 'stopped') return
      if (read.done === true) break
      await this.#take(this.#splitter.feed(read.value), read.value.length)
    }
    const last = this.#splitter.end()
    if (last === 'half') this.#answerAtOnce(expectedUpdate())
    else if (last !== undefined) await this.#take([last], 0)
  }

  /** A race against one long-lived promise would hold on to every chunk until that one is settled. */
  #next(chunks: AsyncIterator<Buffer>): Promise<Read> {
    if (this.#isStopped) return Promise.resolve('stopped')
    return new Promise((resolve) => {
      const { clock, links } = this.#options
      // A stream from another worker lasts as long as the producer's.
      const idle = links && clock.after(streamIdleMs, () => this.stop())
      const settle = (read: Read): void => {
        idle?.cancel()
        this.#onStop = undefined
        resolve(read)
      }
      this.#onStop = () => settle('stopped')
      // The producer may go in the middle: every complete pair has been taken.
      chunks.next().then(settle, () => settle('stopped'))
    })
  }

  /** Sends pairs on their way, in order, and waits while there are too many of them. */
  async #take(pairs: readonly (Pair | OversizePair)[], bytes: number): Promise<void> {
    if (pairs.length === 0) return
    const batch = this.#open({ pairs: pairs.length, bytes })
    const own: PushRequest[] = []
    const ownIndexes: number[] = []
    for (const [index, pair] of pairs.entries()) {
      if ('tooLarge' in pair) {
        batch.set(index, privateErrorText(tooLarge(pair)))
        continue
      }
      const feed = this.#feedOf(pair)
      if (feed !== undefined) {
        feed.add(pair, { batch, index })
        continue
      }
      const request = requestOf(pair)
      if (request instanceof PostboteError) {
        batch.set(index, privateErrorText(request))
      } else {
        own.push(request)
        ownIndexes.push(index)
      }
    }
    const flushed = [...this.#feeds.values()].map((feed) => feed.flush())
    if (own.length > 0) await this.#push(own, { batch, indexes: ownIndexes })
    await Promise.all(flushed)
    await this.#untilRoom()
  }

  /** The way to another owner; undefined where this worker answers for the pair. */
  #feedOf(pair: Pair): OwnerFeed | undefined {
    const { links } = this.#options
    const botId = links && botIdOf(pair.header)
    if (links === undefined || botId === undefined) return undefined
    const owner = links.ownerOf(botId)
    if (owner === links.self) return undefined
    let feed = this.#feeds.get(owner)
    if (feed === undefined) {
      feed = new OwnerFeed((isRepeat) => links.openStream(owner, '/v1/updates', isRepeat))
      this.#feeds.set(owner, feed)
    }
    return feed
  }

  /** Resolves when the ids are given, so that the next chunk's come behind them. */
  async #push(
    requests: readonly PushRequest[],
    place: { readonly batch: ResultBatch; readonly indexes: readonly number[] },
  ): Promise<void> {
    const { accepted, results } = this.#options.bots.push(requests)
    const answered = results.then(
      (list) => list.map((result) => pushResultText(result)),
      (error: unknown) => requests.map(() => pushResultText(toPostboteError(error))),
    )
    void this.#fill(answered, place)
    await accepted.catch(() => undefined)
  }

  async #fill(
    answered: Promise<readonly string[]>,
    place: { readonly batch: ResultBatch; readonly indexes: readonly number[] },
  ): Promise<void> {
    const lines = await answered
    for (const [position, index] of place.indexes.entries()) {
      place.batch.set(index, lines[position] ?? '')
    }
  }

  #answerAtOnce(error: PostboteError): void {
    this.#open({ pairs: 1, bytes: 0 }).set(0, privateErrorText(error))
  }

  #open(size: { readonly pairs: number; readonly bytes: number }): ResultBatch {
    const batch = new ResultBatch(size, () => this.#write())
    this.#batches.push(batch)
    this.#waitingPairs += batch.pairs
    this.#waitingBytes += batch.bytes
    return batch
  }

  /** Writes the results of all complete batches at the front. */
  #write(): void {
    const { response } = this.#options
    let text = ''
    while (this.#batches[0]?.isComplete === true) {
      const batch = this.#batches.shift()
      if (batch === undefined) break
      this.#waitingPairs -= batch.pairs
      this.#waitingBytes -= batch.bytes
      text += batch.text()
    }
    if (text !== '' && !response.destroyed) {
      this.#isProducerSlow = !response.write(text)
    }
    this.#wakeReader?.()
  }

  async #untilRoom(): Promise<void> {
    while (this.#mustWait() && !this.#options.response.destroyed) {
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
      this.#wakeReader = undefined
    }
  }

  #mustWait(): boolean {
    return (
      this.#isProducerSlow ||
      this.#waitingPairs >= streamPairsMax ||
      this.#waitingBytes >= streamBytesMax
    )
  }

  async #finish(): Promise<void> {
    const { request, response } = this.#options
    for (const feed of this.#feeds.values()) feed.end()
    while (this.#batches.length > 0) {
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve
      })
    }
    if (response.destroyed) return
    if (request.complete) response.end()
    else await this.#endEarly()
  }

  /**
   * Ends the answer to a producer that still sends. Unread bytes at close(2) would make the kernel send a reset that
   * overtakes the answer, so they are read and dropped until the producer has seen its end, or for a moment.
   */
  async #endEarly(): Promise<void> {
    const { request, response, clock } = this.#options
    const { socket } = request
    // What node:http calls behind the last answer of a connection: half-closed first, destroyed below.
    socket.destroySoon = () => void socket.end()
    await new Promise<void>((resolve) => {
      response.once('close', resolve)
      response.end()
    })
    if (!socket.destroyed) {
      await new Promise<void>((resolve) => {
        const timer = clock.after(refusedLingerMs, resolve)
        socket.once('close', () => {
          timer.cancel()
          resolve()
        })
        // The iterator that was left waits for this event, and nothing flows while somebody does.
        request.removeAllListeners('readable')
        request.resume()
        socket.end()
      })
    }
    socket.destroy()
  }
}

function requestOf(pair: Pair): PushRequest | PostboteError {
  try {
    return { ...parsePairHeader(pair.header), update: pair.update }
  } catch (error) {
    return toPostboteError(error)
  }
}

function tooLarge(pair: OversizePair): PostboteError {
  return new PostboteError('UPDATE_TOO_LARGE', {
    detail: `the ${pair.tooLarge} line of the pair is over its limit and was skipped`,
  })
}

function expectedUpdate(): PostboteError {
  return new PostboteError('BAD_REQUEST', {
    detail: 'the stream ended behind a header: expected its update on the next line',
  })
}
