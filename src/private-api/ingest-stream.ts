/**
 * One NDJSON stream: reads pairs and writes one result line per pair, in order, as the commits complete.
 *
 *   request --PairSplitter--> pairs --slices, in turns with other streams--+--by owner--> BotService | OwnerFeed
 *                                                                                  \        /
 *   response <-- lines in order <--------- StreamResults: one batch per slice, filled from both sides
 *
 * A thread checks large updates in parallel; later pairs are pushed after them.
 *
 * Reading stops while too many pairs wait for their results, or while the producer does not read them. A stream that
 * another worker forwarded (it has no links) is processed here alone and ends with the producer's stream.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BotService, PushRequest, PushOutcome } from '../bots/bot-service.ts'
import { countRefusal } from '../bots/count-refusal.ts'
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { PostboteError, toPostboteError } from '../errors.ts'
import { streamIdleMs } from '../limits.ts'
import { longLineIdleMs, streamCarryBytesFree, updateSlackBytes } from './limits.ts'
import type { CheckPool, CheckResult } from '../queue/check-pool.ts'
import { endEarly } from './end-early.ts'
import type { IngestShare, IngestTurns } from './ingest-turns.ts'
import { Mutex } from '../kit/mutex.ts'
import type { Semaphore } from '../kit/semaphore.ts'
import { OwnerFeed } from './owner-feed.ts'
import type { OwnerLinks } from './owner-links.ts'
import { botIdOf, parsePairHeader } from './pair-header.ts'
import { type StreamPair, PairSplitter } from './pair-splitter.ts'
import { privateErrorText } from './private-error.ts'
import { pushOutcomeText } from './push-outcome.ts'
import type { ResultBatch } from './result-batch.ts'
import type { StreamAccess } from './stream-access.ts'
import { StreamResults, weightOf } from './stream-results.ts'

export interface IngestStreamOptions {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly bots: BotService
  readonly clock: Clock
  readonly counters: Counters
  readonly updateBytesMax: number
  readonly checkPool: Pick<CheckPool, 'takes' | 'check'>
  /** Shared by all streams of this worker, as are the long lines. */
  readonly turns: IngestTurns
  /**
   * Places for pairs that have grown long and whose end has not arrived, so that a thousand producers that stop in the
   * middle of a large update hold a bounded part of memory. The holder of a place can read its pair to the end, so places
   * become free; a stream that holds one and sends nothing is ended by its idle time.
   */
  readonly longLines: Semaphore
  /** Undefined for a stream that another worker forwarded. */
  readonly links: OwnerLinks | undefined
  readonly access: StreamAccess
}

type Read = IteratorResult<Buffer> | 'stopped'

/** Pairs for this worker, and where their results go. */
interface OwnPairs {
  readonly requests: PushRequest[]
  readonly batch: ResultBatch
  readonly indexes: number[]
}

export class IngestStream {
  readonly #options: IngestStreamOptions
  readonly #splitter: PairSplitter
  readonly #share: IngestShare
  readonly #results: StreamResults
  readonly #feeds = new Map<number, OwnerFeed>()
  #isStopped = false
  /** Ends the wait for the next chunk. */
  #onStop: (() => void) | undefined
  /** Gives back the place for a long pair. */
  #leaveLongLine: (() => void) | undefined
  /** Pairs that wait for a thread, and all later ones, which get their ids after them. */
  readonly #checking = new Mutex()
  #running: Promise<void> | undefined

  constructor(options: IngestStreamOptions) {
    this.#options = options
    this.#splitter = new PairSplitter({
      updateLineBytesMax: options.updateBytesMax + updateSlackBytes,
    })
    this.#share = options.turns.share()
    this.#results = new StreamResults(options.response, this.#share)
  }

  /** Stops reading. Pairs that were read get their results, then the response ends normally. */
  stop(): void {
    this.#isStopped = true
    this.#options.access.stop()
    this.#onStop?.()
    this.#results.stop()
  }

  /** Stops reading, as `stop` does, and resolves when the producer has its response. */
  async end(): Promise<void> {
    this.stop()
    await this.#running
  }

  /** Call this once. */
  run(): Promise<void> {
    this.#running = this.#run()
    return this.#running
  }

  async #run(): Promise<void> {
    const { request, response, links } = this.#options
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    response.flushHeaders()
    response.once('close', () => this.stop())
    // Covers a producer that neither sends nor reads, which none of the timers here detects.
    if (links !== undefined) request.socket.setTimeout(2 * streamIdleMs)
    try {
      await this.#readAll()
    } finally {
      this.#leaveLongLine?.()
      await this.#finish()
    }
  }

  async #readAll(): Promise<void> {
    const chunks: AsyncIterator<Buffer> = this.#options.request[Symbol.asyncIterator]()
    for (;;) {
      const read = await this.#next(chunks)
      if (read === 'stopped') return
      if (read.done === true) break
      await this.#take(this.#splitter.feed(read.value))
      await this.#holdLongLine()
    }
    const last = this.#splitter.end()
    if (last === 'half') await this.#answerHalf()
    else if (last !== undefined) await this.#take([last])
  }

  /** A race against one long-lived promise would retain every chunk until that promise is settled. */
  #next(chunks: AsyncIterator<Buffer>): Promise<Read> {
    if (this.#isStopped) return Promise.resolve('stopped')
    return new Promise((resolve) => {
      const { clock, links } = this.#options
      const idleMs = this.#leaveLongLine !== undefined ? longLineIdleMs : streamIdleMs
      // A stream from another worker lasts as long as the producer's stream.
      const idle = links && clock.after(idleMs, () => this.stop())
      const settle = (read: Read): void => {
        idle?.cancel()
        this.#onStop = undefined
        resolve(read)
      }
      this.#onStop = () => settle('stopped')
      // The producer may disconnect in the middle; every complete pair has been taken by then.
      chunks.next().then(settle, () => settle('stopped'))
    })
  }

  /** Holds a place for a long line. Another worker sends complete pairs only, which it holds in memory anyway. */
  async #holdLongLine(): Promise<void> {
    const { links, longLines } = this.#options
    const isLong = links !== undefined && this.#splitter.carriedBytes > streamCarryBytesFree
    if (isLong === (this.#leaveLongLine !== undefined)) return
    if (isLong) {
      await new Promise<void>((start) => {
        this.#leaveLongLine = longLines.enter(start)
      })
    } else {
      this.#leaveLongLine?.()
      this.#leaveLongLine = undefined
    }
  }

  /** Processes pairs in order, a slice at a time, and waits while there are too many of them. */
  async #take(pairs: readonly StreamPair[]): Promise<void> {
    const { access, response } = this.#options
    const { slicePairs } = access
    for (let from = 0; from < pairs.length; from += slicePairs) {
      const isAll = pairs.length <= slicePairs
      const slice = isAll ? pairs : pairs.slice(from, from + slicePairs)
      const pace = access.pace(slice.length)
      if (pace !== undefined) {
        await pace
        // The producer is gone, which ends the pace. Its pairs get no results, and pushing them would evade the limit.
        if (response.destroyed) return
      }
      const size = { pairs: slice.length, bytes: bytesOf(slice) }
      const turn = this.#share.take(weightOf(size))
      if (turn !== undefined) await turn
      await this.#send(slice, this.#results.open(size))
      const room = this.#results.untilRoom()
      if (room !== undefined) await room
    }
  }

  async #send(pairs: readonly StreamPair[], batch: ResultBatch): Promise<void> {
    const own: OwnPairs = { requests: [], batch, indexes: [] }
    const refused = this.#options.access.refusal()
    for (let index = 0; index < pairs.length; index++) {
      const pair = pairs[index]
      if (pair === undefined) break
      const refusal = refused ?? this.#botRefusal(pair)
      if (refusal !== undefined) {
        this.#refuse(refusal, batch, index)
        continue
      }
      const feed = pair.tooLarge === undefined ? this.#feedOf(pair) : undefined
      if (feed !== undefined) {
        feed.add(pair, { batch, index })
        continue
      }
      const request = requestOf(pair)
      if (request instanceof PostboteError) {
        this.#refuse(request, batch, index)
      } else {
        own.requests.push(request)
        own.indexes.push(index)
      }
    }
    const flushed = [...this.#feeds.values()].map((feed) => feed.flush())
    if (own.requests.length > 0) await this.#pushInOrder(own)
    await Promise.all(flushed)
  }

  #botRefusal({ bytes, start, headerEnd, tooLarge }: StreamPair): PostboteError | undefined {
    const { access } = this.#options
    if (!access.isRestricted || tooLarge !== undefined) return undefined
    const botId = botIdOf(bytes, start, headerEnd)
    // A header without a bot is refused for another reason.
    return botId === undefined ? undefined : access.botRefusal(botId)
  }

  /** Returns the feed to another owner, or undefined if this worker processes the pair. */
  #feedOf(pair: StreamPair): OwnerFeed | undefined {
    const { links } = this.#options
    const botId = links && botIdOf(pair.bytes, pair.start, pair.headerEnd)
    if (links === undefined || botId === undefined) return undefined
    const owner = links.ownerOf(botId)
    if (owner === links.self) return undefined
    let feed = this.#feeds.get(owner)
    if (feed === undefined) {
      feed = new OwnerFeed({
        open: (isRepeat) => links.openStream(owner, '/v1/updates', isRepeat),
        hangs: () => links.hangs(owner),
        refused: (code) => countRefusal(this.#options.counters, code),
      })
      this.#feeds.set(owner, feed)
    }
    return feed
  }

  /**
   * Pushes pairs in order and resolves when the next ones may follow, because those must get higher ids.
   *
   * Reading continues while a thread checks large updates; later pairs then wait for the earlier ones.
   */
  async #pushInOrder(own: OwnPairs): Promise<void> {
    const { checkPool } = this.#options
    const large = own.requests.filter(({ update }) => checkPool.takes(update.length))
    if (large.length === 0 && !this.#checking.isBusy) {
      await this.#push(own)
      return
    }
    const checks = large.length > 0 ? checkPool.check(large.map(({ update }) => update)) : undefined
    void this.#checking.run(async () => this.#pushChecked(own, await checks))
  }

  async #pushChecked(own: OwnPairs, results: readonly CheckResult[] | undefined): Promise<void> {
    const { checkPool } = this.#options
    let nth = 0
    const requests = own.requests.map((request) =>
      checkPool.takes(request.update.length) ? { ...request, checked: results?.[nth++] } : request,
    )
    await this.#push({ ...own, requests })
  }

  /** Resolves when the ids are allocated, so that the next slice gets higher ones. */
  async #push(own: OwnPairs): Promise<void> {
    const { accepted, results } = this.#options.bots.push(own.requests)
    void fill(own, results)
    await accepted.catch(() => undefined)
  }

  async #answerHalf(): Promise<void> {
    const size = { pairs: 1, bytes: 0 }
    await this.#share.take(weightOf(size))
    const error = new PostboteError('BAD_REQUEST', {
      detail: 'the stream ended after a header: expected its update on the next line',
    })
    this.#refuse(error, this.#results.open(size), 0)
  }

  #refuse(error: PostboteError, batch: ResultBatch, index: number): void {
    countRefusal(this.#options.counters, error.code)
    batch.set(index, privateErrorText(error))
  }

  async #finish(): Promise<void> {
    const { request, response, clock } = this.#options
    // The batches include the pairs that wait for a thread.
    for (const feed of this.#feeds.values()) feed.end()
    await this.#results.untilFilled()
    if (response.destroyed) return
    if (request.complete) response.end()
    else await endEarly({ request, response, clock })
  }
}

async function fill(own: OwnPairs, pushed: Promise<readonly PushOutcome[]>): Promise<void> {
  const { batch, indexes } = own
  try {
    const results = await pushed
    for (let at = 0; at < indexes.length; at++) {
      batch.set(indexes[at] ?? 0, pushOutcomeText(results[at] ?? new PostboteError('INTERNAL')))
    }
  } catch (error) {
    const line = pushOutcomeText(toPostboteError(error))
    for (const index of indexes) batch.set(index, line)
  }
}

function bytesOf(pairs: readonly StreamPair[]): number {
  let bytes = 0
  for (const { start, end, tooLarge } of pairs) if (tooLarge === undefined) bytes += end - start
  return bytes
}

function requestOf({
  bytes,
  start,
  headerEnd,
  updateStart,
  end,
  tooLarge,
}: StreamPair): PushRequest | PostboteError {
  if (tooLarge !== undefined) return tooLargeError(tooLarge)
  try {
    const { botId, isTest, orderingKey, ttlS, idempotencyKey } = parsePairHeader(
      bytes,
      start,
      headerEnd,
    )
    const update = bytes.subarray(updateStart, end)
    return { botId, isTest, orderingKey, ttlS, idempotencyKey, update, checked: undefined }
  } catch (error) {
    return toPostboteError(error)
  }
}

function tooLargeError(line: 'header' | 'update'): PostboteError {
  return new PostboteError('UPDATE_TOO_LARGE', {
    detail: `the ${line} line of the pair is longer than its limit and was skipped`,
  })
}
