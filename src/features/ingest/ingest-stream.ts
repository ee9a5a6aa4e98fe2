/**
 * One NDJSON stream: reads pairs and writes one result line per pair, in order, as the commits complete.
 *
 *   request --PairSplitter--> rows, in turns with other streams --+--by owner--> BotRegistry | OwnerFeed
 *                                                                                  \        /
 *   response <-- lines in order <--------- StreamResults: one batch per slice, filled from both sides
 *
 * A thread checks large updates in parallel; later slices follow after them.
 *
 * The pairs of a bot keep their order while its shard moves from one owner to another. Slices take their way one after the
 * other, when the ids of the one before are allocated. A feed with pairs that have no result gets the next ones of its owner,
 * whoever that is now. A pair whose shard has left before it got an id follows the shard through the feed.
 *
 * Reading stops while too many pairs wait for their results, or while the producer does not read them. A stream that
 * another worker forwarded is processed here alone and ends with the producer's stream. If its shard has left, it ends without
 * the results of the pairs that are not stored, and the other worker sends them to the next owner.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BotRegistry } from '../../bots/registry.ts'
import { countRefusal, type PushReceipt } from '../../bots/push-receipt.ts'
import { PostboteError, toPostboteError } from '../../kit/errors.ts'
import { kib, streamIdleMs } from '../../kit/limits.ts'
import { updateSlackBytes } from '../../api/limits.ts'
import { checkRows } from '../../queue/check/check-batch.ts'
import type { CheckPool } from '../../queue/check/check-pool.ts'
import type { UpdateRows } from '../../shard/update-rows.ts'
import { endEarly } from './end-early.ts'
import type { IngestShare, IngestTurns } from './ingest-turns.ts'
import type { BodyReservation } from '../../http/body.ts'
import { requestOrigin } from '../../http/connection-origin.ts'
import { Mutex } from '../../kit/mutex.ts'
import type { LongLines } from './long-lines.ts'
import { type FeedTo, OwnerFeed } from './owner-feed.ts'
import type { Owners } from '../../links/ask/owner-stream.ts'
import { type HeaderTraces, readHeaders } from './pair-header.ts'
import { PairSplitter } from './pair-splitter.ts'
import type { ResultBatch } from './result-batch.ts'
import type { StreamAccess } from './stream-access.ts'
import { StreamResults, weightOf } from './stream-results.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import type { Tracer } from '../../kit/tracing/tracer.ts'

export interface IngestStreamOptions extends Pick<Surroundings, 'clock' | 'counters'> {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly bots: BotRegistry
  readonly updateBytesMax: number
  readonly checkPool: Pick<CheckPool, 'takes' | 'check'>
  /** Shared by all streams of this worker, as are the long lines. */
  readonly turns: IngestTurns
  readonly longLines: LongLines
  /** The stream's part of the budget for bodies: for a pair that is not long, and pairs that wait for the pace of their key. */
  readonly reservation: BodyReservation
  readonly owners: Owners
  /** Whether another worker forwarded the stream. */
  readonly isForwarded: boolean
  readonly access: StreamAccess
  /** Absent if updates are not traced. */
  readonly tracer?: Tracer | undefined
  /** Called when the stream begins or ends to rest: without a pair in flight it may give way to another connection. */
  rests?(isResting: boolean): void
}

type Read = IteratorResult<Buffer> | 'stopped'

/** Pairs that are handled together, and the places of their results. */
interface Slice {
  readonly rows: UpdateRows
  readonly batch: ResultBatch
}

const noneLeft: ReadonlySet<number> = new Set()

/**
 * The beginning of a pair over this size takes one of the places for long lines, so that usual pairs never wait for one. Up to
 * this size it is counted in the budget for bodies of the private listener.
 */
export const streamCarryBytesFree = 128 * kib
/**
 * A stream waits this long for the rest of a pair, and for as long as its bytes take at `pairBytesPerS`; then it is ended, so
 * that stalled producers do not keep memory and places. Chosen: half of what a single push has to arrive.
 */
export const pairWaitMs = 30_000
/** The least rate of a pair in bytes per second: the largest update of the default size arrives in a minute. */
export const pairBytesPerS = 16 * kib

export class IngestStream {
  /** The shard of all of its pairs, if another node sends it. */
  readonly shard: number | undefined
  readonly #options: IngestStreamOptions
  readonly #splitter: PairSplitter
  readonly #share: IngestShare
  readonly #results: StreamResults
  readonly #feeds = new Map<number, OwnerFeed>()
  #isStopped = false
  #givesWay = false
  /** Ends the wait for the next chunk. */
  #onStop: (() => void) | undefined
  /** Gives back the place for a long pair. */
  #leaveLongLine: (() => void) | undefined
  #chargedBytes = 0
  /** How long the stream has waited for its producer since the pair began whose end has not arrived. */
  #waitedMs = 0
  /** Slices that wait for a thread, and all later ones, which take their way after them. */
  readonly #checking = new Mutex()
  /** Whether pairs were left to the next owner of the shard, so that all later ones are, too. */
  #isWithdrawn = false
  #running: Promise<void> | undefined

  constructor(options: IngestStreamOptions) {
    this.#options = options
    this.shard = requestOrigin(options.request)?.shard
    this.#splitter = new PairSplitter({
      updateLineBytesMax: options.updateBytesMax + updateSlackBytes,
      rowsMax: options.access.slicePairs,
      isTraced: options.tracer !== undefined,
    })
    this.#share = options.turns.share()
    this.#results = new StreamResults(options.response, this.#share, (isResting) =>
      options.rests?.(isResting),
    )
  }

  /** Stops reading. Pairs that were read get their results, then the response ends normally. */
  stop(): void {
    this.#isStopped = true
    this.#options.access.stop()
    this.#onStop?.()
    this.#results.stop()
  }

  /**
   * Stops reading. Pairs in flight get their results, then the response ends normally. Those that wait for the pace of their
   * key are left to the producer's next stream: it could evade its limit if they were pushed now.
   */
  giveWay(): void {
    this.#givesWay = true
    this.stop()
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
    const { request, response, isForwarded } = this.#options
    response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
    response.flushHeaders()
    this.#options.rests?.(true)
    response.once('close', () => this.stop())
    // Covers a producer that neither sends nor reads, which none of the timers here detects.
    if (!isForwarded) request.socket.setTimeout(2 * streamIdleMs)
    try {
      await this.#readAll()
    } finally {
      this.#leaveLongLine?.()
      this.#options.reservation.end()
      await this.#finish()
    }
  }

  async #readAll(): Promise<void> {
    const chunks: AsyncIterator<Buffer> = this.#options.request[Symbol.asyncIterator]()
    for (;;) {
      const read = await this.#next(chunks)
      if (read === 'stopped') return
      if (read.done === true) break
      const slices = this.#splitter.feed(read.value)
      if (slices.length > 0) this.#waitedMs = 0
      const isPaced = slices.length > 0 && this.#options.access.isPaced
      if (isPaced && !this.#charge(read.value.length)) return
      await this.#takeAll(slices)
      await this.#holdLongLine()
      if (!this.#charge(0)) return
    }
    const last = this.#splitter.end()
    if (last === 'half') await this.#answerHalf()
    else if (last !== undefined) await this.#take(last)
  }

  /** A race against one long-lived promise would retain every chunk until that promise is settled. */
  #next(chunks: AsyncIterator<Buffer>): Promise<Read> {
    if (this.#isStopped) return Promise.resolve('stopped')
    return new Promise((resolve) => {
      const { clock, isForwarded } = this.#options
      const { pairBytes } = this.#splitter
      const sinceMs = clock.monotonicMs()
      const pairMs = pairWaitMs + (pairBytes * 1_000) / pairBytesPerS - this.#waitedMs
      const idleMs = pairBytes > 0 ? pairMs : streamIdleMs
      // A stream from another worker lasts as long as the producer's stream.
      const idle = isForwarded ? undefined : clock.after(idleMs, () => this.stop())
      const settle = (read: Read): void => {
        idle?.cancel()
        if (pairBytes > 0) this.#waitedMs += clock.monotonicMs() - sinceMs
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
    const { access, isForwarded, longLines } = this.#options
    const isLong = !isForwarded && this.#splitter.carriedBytes > streamCarryBytesFree
    if (isLong === (this.#leaveLongLine !== undefined)) return
    if (isLong) {
      if (!this.#charge(0)) return
      await new Promise<void>((start) => {
        this.#leaveLongLine = longLines.enter(access.keyId, start)
      })
    } else {
      this.#leaveLongLine?.()
      this.#leaveLongLine = undefined
    }
  }

  /**
   * Counts what the stream holds: the beginning of a pair that has no place for long lines, and pairs that wait.
   *
   * @returns false if there is no room. The stream ends then, and its producer sends these pairs in another one.
   */
  #charge(waitingBytes: number): boolean {
    const { reservation, isForwarded } = this.#options
    if (isForwarded) return true
    const bytes = waitingBytes + (this.#leaveLongLine ? 0 : this.#splitter.carriedBytes)
    if (bytes < this.#chargedBytes) reservation.end()
    this.#chargedBytes = bytes
    if (reservation.hold(bytes)) return true
    this.giveWay()
    return false
  }

  async #takeAll(slices: readonly UpdateRows[]): Promise<void> {
    for (const rows of slices) if (!(await this.#take(rows))) return
  }

  /**
   * Processes the next pairs, and waits while there are too many of them.
   *
   * @returns false if the producer is gone, or these pairs are left to its next stream.
   */
  async #take(rows: UpdateRows): Promise<boolean> {
    const { access, response, updateBytesMax } = this.#options
    const pace = access.pace(rows.count)
    if (pace !== undefined) {
      await pace
      // The producer is gone, which ends the pace. Its pairs get no results, and pushing them would evade the limit.
      if (response.destroyed || this.#givesWay) return false
    }
    const size = { pairs: rows.count, bytes: rows.lineBytes }
    const turn = this.#share.take(weightOf(size))
    if (turn !== undefined) await turn
    readHeaders(rows, updateBytesMax, this.#traces)
    await this.#send({ rows, batch: this.#results.open(size) })
    const room = this.#results.untilRoom()
    if (room !== undefined) await room
    return true
  }

  get #traces(): HeaderTraces {
    const { tracer, isForwarded } = this.#options
    if (tracer !== undefined) return 'kept'
    return isForwarded ? 'ignored' : 'refused'
  }

  /** Resolves when the next slice may follow. Reading goes on while a thread checks large updates. */
  async #send(slice: Slice): Promise<void> {
    const large = this.#largeOf(slice.rows)
    if (large.length === 0 && !this.#checking.isBusy) {
      await this.#route(slice)
      return
    }
    const { checkPool } = this.#options
    const checks = large.length > 0 ? checkPool.check(slice.rows, large) : undefined
    void this.#checking.run(async () => {
      await checks
      await this.#route(slice)
    })
  }

  /** Returns the rows that a thread checks, unless another owner does. */
  #largeOf(rows: UpdateRows): readonly number[] {
    const { checkPool } = this.#options
    const large: number[] = []
    if (!checkPool.takes(rows.bytes.length)) return large
    for (let nth = 0; nth < rows.count; nth++) {
      const isLarge = !rows.isNotOurs(nth) && checkPool.takes(rows.updateBytes(nth))
      if (isLarge && this.#feedOf(rows.botOf(nth)) === undefined) large.push(nth)
    }
    return large
  }

  /** Resolves when the ids are allocated, so that the next slice gets higher ones. */
  async #route(slice: Slice): Promise<void> {
    const { rows, batch } = slice
    if (this.#isWithdrawn) {
      this.#results.withdraw(batch)
      return
    }
    const own: number[] = []
    const refused = this.#options.access.refusal()
    for (let nth = 0; nth < rows.count; nth++) {
      const botId = rows.botOf(nth)
      const refusal = refused ?? this.#botRefusal(botId) ?? headerRefusal(rows, nth)
      if (refusal !== undefined) {
        rows.setNotOurs(nth)
        this.#refuse(refusal, batch, nth)
        continue
      }
      const feed = this.#feedOf(botId)
      if (feed === undefined) own.push(nth)
      else {
        rows.setNotOurs(nth)
        feed.add({ rows, nth, batch })
      }
    }
    const flushed = this.#flush()
    if (own.length > 0) await this.#push(own, slice)
    await flushed
  }

  async #flush(): Promise<void> {
    await Promise.all(Array.from(this.#feeds.values(), (feed) => feed.flush()))
  }

  #botRefusal(botId: number): PostboteError | undefined {
    const { access } = this.#options
    // A header without a bot is refused for another reason.
    return access.isRestricted && botId >= 0 ? access.botRefusal(botId) : undefined
  }

  /** Returns the feed to another owner, or undefined if this worker processes the pairs of the bot. */
  #feedOf(botId: number): OwnerFeed | undefined {
    const { owners, isForwarded } = this.#options
    if (isForwarded) return undefined
    const owner = owners.ownerOf(botId)
    // Pairs without a result in the feed come before this one.
    if (this.#feeds.get(owner)?.isIdle !== false && owners.isOwn(owner)) return undefined
    return this.#feedTo(owner)
  }

  #feedTo(owner: number): OwnerFeed {
    let feed = this.#feeds.get(owner)
    if (feed === undefined) {
      const { owners, counters, clock } = this.#options
      const to: FeedTo = {
        open: (isRepeat) => owners.openStream(owner, '/v1/updates', { isRepeat }),
        hangs: () => owners.hangs(owner),
        refused: (code) => countRefusal(counters, code),
      }
      feed = new OwnerFeed(to, clock)
      this.#feeds.set(owner, feed)
    }
    return feed
  }

  /** Resolves when the ids are allocated, and the pairs whose shard has left are on their way to its next owner. */
  async #push(own: readonly number[], { rows, batch }: Slice): Promise<void> {
    const { bots, owners } = this.#options
    const hasLeft = (botId: number): boolean =>
      owners.hasLeft || !owners.isOwn(owners.ownerOf(botId))
    checkRows(rows)
    const receipt = bots.push(rows, own, hasLeft)
    void fill(own, batch, receipt)
    const left = await receipt.accepted.catch(() => noneLeft)
    if (left.size === 0) return
    const nths = own.filter((_, at) => left.has(at))
    if (!this.#options.isForwarded) await this.#follow(nths, { rows, batch })
    else if (nths.length === own.length) this.#withdraw(batch)
    // After the results of later pairs, the other worker cannot send these again.
    else for (const nth of nths) this.#refuse(shardLeft(), batch, nth)
  }

  /** Sends pairs after their shards. */
  async #follow(left: readonly number[], { rows, batch }: Slice): Promise<void> {
    const { owners } = this.#options
    for (const nth of left) {
      this.#feedTo(owners.ownerOf(rows.botOf(nth))).add({ rows, nth, batch })
    }
    await this.#flush()
  }

  /** Leaves these pairs and all later ones to the worker that forwarded the stream. */
  #withdraw(batch: ResultBatch): void {
    this.#isWithdrawn = true
    this.#results.withdraw(batch)
    this.stop()
  }

  async #answerHalf(): Promise<void> {
    const size = { pairs: 1, bytes: 0 }
    await this.#share.take(weightOf(size))
    const isCurl = this.#options.request.headers['user-agent']?.startsWith('curl/') === true
    const error = new PostboteError('BAD_REQUEST', {
      detail: `the stream ended after a header: expected its update on the next line${isCurl ? '; curl removes line ends from what -d sends, and --data-binary keeps them' : ''}`,
    })
    this.#refuse(error, this.#results.open(size), 0)
  }

  #refuse(error: PostboteError, batch: ResultBatch, index: number): void {
    countRefusal(this.#options.counters, error.code)
    batch.set(index, error)
  }

  async #finish(): Promise<void> {
    const { request, response, clock } = this.#options
    await this.#checking.idle()
    for (const feed of this.#feeds.values()) feed.end()
    await this.#results.untilFilled()
    if (response.destroyed) return
    if (request.complete) response.end()
    else await endEarly({ request, response, clock })
  }
}

async function fill(
  own: readonly number[],
  batch: ResultBatch,
  { accepted, results }: PushReceipt,
): Promise<void> {
  try {
    const outcomes = await results
    const left = await accepted
    for (const [at, nth] of own.entries()) {
      if (!left.has(at)) batch.set(nth, outcomes[at] ?? new PostboteError('INTERNAL'))
    }
  } catch (error) {
    for (const nth of own) batch.set(nth, toPostboteError(error))
  }
}

function headerRefusal(rows: UpdateRows, nth: number): PostboteError | undefined {
  return rows.isNotOurs(nth) ? rows.refusalOf(nth) : undefined
}

function shardLeft(): PostboteError {
  return new PostboteError('STORE_UNAVAILABLE')
}
