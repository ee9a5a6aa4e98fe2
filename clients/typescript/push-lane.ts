/**
 * One connection of a stream, for the pairs of some bots. Each pair has its own result.
 *
 *   add --> unsent --take--> sent --result--> the stream
 *             ^               |
 *             `----broken-----'
 *
 * A request lasts until the server ends it (a reload, ten idle minutes) or the connection breaks. Pairs without a
 * result are then sent again in the next request, in the same order and with the same keys, so none is lost or stored
 * twice. A request is opened only when there is a pair to send.
 *
 * When the stream deals its pairs to other lanes, this one retires: it takes nothing more, and is idle once it has all results.
 */
import type { Timer } from '../../src/kit/clock.ts'
import type { ClientOptions, ClientSettings, ClientSurroundings } from './client-options.ts'
import type { HeldPairs } from './held-pairs.ts'
import type { Pair } from './pair.ts'
import type { PairRequest, PairRequestEvents } from './pair-request.ts'
import { PostboteClientError } from './postbote-client-error.ts'
import { retryDelayMs } from './retry-delay.ts'
import { kib } from '../../src/kit/limits.ts'

/** What a lane needs from its stream. */
export interface LaneStream {
  readonly settings: ClientSettings
  readonly surroundings: ClientSurroundings
  readonly onRetry: ClientOptions['onRetry']
  readonly held: HeldPairs
  /** Reads the groups of shards, if that is due (ShardGroups.refreshed). */
  refreshed(): Promise<PostboteClientError | undefined> | undefined
  /** Has all lanes retire if there are other groups, and returns whether they do. */
  hasOtherLanes(): boolean
  /** Called when a request has ended that nobody in this process wanted to end. */
  onRequestEnded(): void
  /** Called when a server has refused a request that names a shard. */
  onShardRefused(): void
  /** Called when a lane that retires has become idle. */
  onIdle(): void
  onResult(pair: Pair, line: string): void
  fail(pair: Pair, error: PostboteClientError): void
  /** Called when pairs have got results or have failed. */
  onSettled(): void
}

/** What a lane needs besides. */
export interface PushLaneOptions {
  readonly stream: LaneStream
  openRequest(events: PairRequestEvents): PairRequest
  unreachedMs(): number | undefined
  /** Whether a request names a shard, which an older server refuses. */
  readonly namesShard: boolean
  /** Whether a bot is one of this lane. */
  hasBot(botId: number): boolean
  /** Number of requests in a row, of the lanes before this one, that ended without a result. */
  readonly failures: number
}

/** Pairs are passed to the connection in pieces of about this size, which is what a worker reads at a time. */
const clientPieceLength = 64 * kib

/** A lane of a stream. */
export class PushLane {
  readonly #options: PushLaneOptions
  readonly #stream: LaneStream
  #unsent: Pair[] = []
  /** In the order in which their results arrive. */
  #sent: Pair[] = []
  #request: PairRequest | undefined
  /** Number of results of the current request. */
  #results = 0
  /** Number of requests in a row that ended without a result. */
  #failures: number
  #isScheduled = false
  /** Whether the next request waits for the groups. */
  #isOpening = false
  #isRetired = false
  /** Runs from a failed request to the next one. */
  #reopening: Timer | undefined
  /** Runs while pairs wait for their results. */
  #silence: Timer | undefined

  /** Opens nothing before the first pair. */
  constructor(options: PushLaneOptions) {
    this.#options = options
    this.#stream = options.stream
    this.#failures = options.failures
  }

  get failures(): number {
    return this.#failures
  }

  /** Whether nothing of it is under way. */
  get isIdle(): boolean {
    return this.#request === undefined && !this.#isOpening && this.#reopening === undefined
  }

  /** Sends a pair after all others. */
  add(pair: Pair): void {
    this.#unsent.push(pair)
    this.#schedule()
  }

  /** Sends pairs before all others that were not sent. */
  addFirst(pairs: readonly Pair[]): void {
    this.#unsent = [...pairs, ...this.#unsent]
    this.#schedule()
  }

  /** Sends nothing more, and ends the request. The pairs that come meanwhile are unsent. */
  retire(): void {
    this.#isRetired = true
    this.#reopening?.cancel()
    this.#reopening = undefined
    this.#request?.end()
    this.#expectResults()
  }

  /** Returns the pairs that are not sent, in their order, and forgets them. */
  takeUnsent(): Pair[] {
    return this.#unsent.splice(0)
  }

  /** Breaks off what is under way. Returns the pairs that were sent and have no result. */
  giveUp(): Pair[] {
    this.#reopening?.cancel()
    this.#reopening = undefined
    const sent = this.#sent.splice(0)
    for (const pair of sent) pair.mayBeStored = true
    this.#expectResults()
    this.#request?.destroy(new PostboteClientError('CLOSED'))
    return sent
  }

  /** Ends the request. Resolves when it has ended. */
  async close(): Promise<void> {
    this.#request?.end()
    await this.#request?.ended
  }

  /** Sends the pushes of one turn of the event loop as one piece. */
  #schedule(): void {
    if (this.#isScheduled || this.#isRetired) return
    this.#isScheduled = true
    this.#stream.surroundings.clock.soon(() => {
      this.#isScheduled = false
      if (this.#request !== undefined) this.#request.wake()
      else if (this.isIdle && !this.#isRetired && this.#unsent.length > 0) this.#open()
    })
  }

  #open(): void {
    this.#results = 0
    const reading = this.#stream.refreshed()
    if (reading === undefined) this.#openRequest()
    else void this.#openAfter(reading)
  }

  async #openAfter(reading: Promise<PostboteClientError | undefined>): Promise<void> {
    this.#isOpening = true
    const failure = await reading
    this.#isOpening = false
    if (failure === undefined) this.#openRequest()
    else this.#onEnd(failure)
  }

  #openRequest(): void {
    if (this.#stream.hasOtherLanes()) this.#stream.onIdle()
    // `close` may have given them up.
    else if (this.#unsent.length > 0) {
      const request = this.#options.openRequest({
        take: () => this.#take(),
        onResults: (lines) => this.#settle(lines),
      })
      this.#request = request
      void request.ended.then((error) => this.#onEnd(error))
    }
  }

  #take(): string | undefined {
    if (this.#unsent.length === 0 || this.#stream.hasOtherLanes()) return undefined
    let piece = ''
    let count = 0
    const wereSent = this.#sent.length > 0
    for (const pair of this.#unsent) {
      if (piece.length >= clientPieceLength) break
      count += 1
      if (this.#stream.held.holdIfQueueWaits(pair)) continue
      piece += pair.text
      this.#sent.push(pair)
    }
    this.#unsent.splice(0, count)
    if (piece === '') return undefined
    if (!wereSent) this.#expectResults()
    return piece
  }

  /** A request that was ended is one to wait for, too: pairs go to other lanes after it. */
  #expectResults(): void {
    const { surroundings, settings } = this.#stream
    this.#silence?.cancel()
    const isEnding = this.#isRetired && this.#request !== undefined
    this.#silence =
      this.#sent.length === 0 && !isEnding
        ? undefined
        : surroundings.clock.after(settings.timeoutMs, () =>
            this.#request?.destroy(new PostboteClientError('TIMEOUT')),
          )
  }

  /** Matches result lines to pairs: the server sends the results in the order of the pairs. */
  #settle(lines: readonly string[]): void {
    const pairs = this.#sent.splice(0, lines.length)
    this.#failures = 0
    let at = 0
    for (const pair of pairs) this.#stream.onResult(pair, lines[at++] ?? '')
    this.#results += pairs.length
    if (pairs.length < lines.length) {
      this.#request?.destroy(new PostboteClientError('UNEXPECTED_ANSWER'))
    }
    this.#expectResults()
    this.#stream.onSettled()
  }

  /** Handles the end of a request, either a normal end by the server or an error. */
  #onEnd(error: PostboteClientError | undefined): void {
    this.#request = undefined
    this.#takeBack(error)
    this.#expectResults()
    if (error !== undefined && this.#options.namesShard && isRefusal(error)) {
      this.#stream.onShardRefused()
    } else if (!this.#isRetired) {
      this.#stream.onRequestEnded()
      if (this.#unsent.length > 0) this.#reopen(error)
    } else if (error !== undefined) {
      this.#failures += 1
      this.#stream.onRetry?.({ error, attempt: this.#failures, delayMs: 0 })
    }
    this.#stream.onSettled()
    if (this.#isRetired) this.#stream.onIdle()
  }

  /**
   * Puts the pairs without a result before all unsent ones. If the server ended its response normally, it stored none of them.
   */
  #takeBack(error: PostboteClientError | undefined): void {
    const isLost = error?.isOutcomeUnknown === true
    const unanswered = this.#sent
    this.#sent = []
    for (const pair of unanswered) {
      pair.mayBeStored ||= isLost
      if (isLost && !pair.isRepeatable) this.#stream.fail(pair, error)
    }
    const again = isLost ? unanswered.filter(({ isRepeatable }) => isRepeatable) : unanswered
    this.#unsent = [...again, ...this.#unsent]
  }

  #reopen(ended: PostboteClientError | undefined): void {
    if (ended === undefined && this.#results > 0) {
      this.#schedule()
      return
    }
    this.#failures += 1
    const { settings, surroundings, onRetry } = this.#stream
    const error = ended ?? new PostboteClientError('CONNECTION_LOST')
    const unreachedMs = this.#options.unreachedMs()
    const failed = { error, attempt: this.#failures, isRepeatable: true, unreachedMs }
    const delayMs = retryDelayMs(failed, settings, surroundings.random)
    if (delayMs === undefined) {
      this.#failures = 0
      this.#failAll(error)
      return
    }
    onRetry?.({ error, attempt: failed.attempt, delayMs })
    this.#reopening = surroundings.clock.after(delayMs, () => {
      this.#reopening = undefined
      this.#schedule()
    })
  }

  #failAll(error: PostboteClientError): void {
    const held = this.#stream.held.clear((botId) => this.#options.hasBot(botId))
    for (const pair of [...held, ...this.#unsent.splice(0)]) this.#stream.fail(pair, error)
  }
}

/** Whether a server has refused a whole request, for a reason other than its key and the limits of its key. */
function isRefusal({ status = 0, isRetryable }: PostboteClientError): boolean {
  return status >= 400 && status < 500 && status !== 401 && !isRetryable
}
