/**
 * Many pushes over one connection, each with its own result.
 *
 *   push --> unsent --take--> sent --result--> resolved
 *              ^  ^             |  `--503-----> held --after a delay--> unsent
 *              |  `--broken-----'                 ^
 *              `--pairs of a queue that has held pairs
 *
 * A request lasts until the server ends it (a reload, ten idle minutes) or the connection breaks. Pairs without a
 * result are then sent again in the next request, in the same order and with the same keys, so none is lost or stored
 * twice. A request is opened only when there is a pair to send.
 *
 * Order: the updates of a queue are stored in the order of their pushes, also across broken connections. The exception
 * is a pair that the server refused temporarily: it is stored after the pairs of its queue that were already sent. A
 * producer that cannot accept this awaits each result before the next push of the same chat.
 */
import type { Timer } from '../clock.ts'
import { type CloseOptions, closeTimeoutMs, optionNames } from './client-options.ts'
import { Flow, type FlowBounds } from './flow.ts'
import { HeldPairs } from './held-pairs.ts'
import type { Pair } from './pair.ts'
import type { PairRequest, PairRequestEvents } from './pair-request.ts'
import { callGivenUp, PostboteClientError, withUnknownOutcome } from './postbote-client-error.ts'
import { pairText, refuseUnknownPushOption } from './push-call.ts'
import { lineOutcome } from './push-outcome.ts'
import type {
  AnyPayloads,
  PushedUpdate,
  PushResult,
  StreamPushOptions,
  UpdatePayloads,
} from './pushed-update.ts'
import type { RepeatedCallsOptions } from './repeated-calls.ts'
import { retryDelayMs } from './retry-delay.ts'
import { kib } from '../limits.ts'

/** What a stream needs from the client that opens it. */
export interface PushStreamOptions extends Omit<RepeatedCallsOptions, 'attempt'> {
  openRequest(events: PairRequestEvents): PairRequest
  readonly bounds: FlowBounds
  newKey(): string | undefined
  withoutKey(error: PostboteClientError): PostboteClientError
  onClosed(): void
}

/** Pairs are passed to the connection in pieces of about this size, which is what a worker reads at a time. */
const clientPieceLength = 64 * kib

/**
 * A stream of pushes over one connection; `PostboteClient.openStream` opens it.
 *
 * @example
 * ```ts
 * const stream = client.openStream()
 * await stream.ready()
 * stream.push(botId, { message }).then(onStored, onRefused)
 * await stream.close()
 * ```
 *
 * @typeParam Payloads - The payload type of each update type, as for the client.
 */
export class PushStream<Payloads extends UpdatePayloads = AnyPayloads> {
  readonly #options: PushStreamOptions
  readonly #flow: Flow
  readonly #held: HeldPairs
  #unsent: Pair[] = []
  /** In the order in which their results arrive. */
  #sent: Pair[] = []
  #pushes = 0
  #request: PairRequest | undefined
  /** Number of results of the current request. */
  #results = 0
  /** Number of requests in a row that ended without a result. */
  #failures = 0
  #isScheduled = false
  /** Runs from a failed request to the next one. */
  #reopening: Timer | undefined
  /** Runs while pairs wait for their results. */
  #silence: Timer | undefined
  #closed: Promise<void> | undefined

  /**
   * Creates a stream; only `PostboteClient.openStream` calls this.
   *
   * @param options - The settings of the client, the bounds, and what the stream needs from the client.
   */
  constructor(options: PushStreamOptions) {
    this.#options = options
    this.#flow = new Flow(options.bounds, options.surroundings.clock)
    this.#held = new HeldPairs(options.surroundings.clock, (pairs) => {
      this.#unsent = [...pairs, ...this.#unsent]
      this.#schedule()
    })
  }

  /** Number of pushes that have no result yet. */
  get pairsInFlight(): number {
    return this.#flow.pairs
  }

  /** Bytes of the pushes that have no result yet, with their header lines. */
  get bytesUnderWay(): number {
    return this.#flow.bytes
  }

  /** Resolves when there is room for one push, or immediately once the stream is closed. Await it before each push. */
  ready(): Promise<void> {
    return this.#closed === undefined ? this.#flow.ready() : Promise.resolve()
  }

  /**
   * Pushes one update. It does not wait for the results of earlier pushes.
   *
   * @param botId - The bot that receives the update.
   * @param update - The update without its id: an object with one of the update types as its only key.
   * @param options - Ordering key, time to live in seconds, /test/ queue and idempotency key.
   * @returns Resolves when the update is synced to disk, with its update id, or when the server has filtered it because
   *   the bot does not want its type.
   * @throws PostboteClientError: TOO_MANY_UNDER_WAY if the caller does not await `ready` and twice the bounds are
   *   reached, CLOSED after `close`, BAD_REQUEST for an option that does not exist or cannot be used, BAD_UPDATE,
   *   UNKNOWN_BOT, QUEUE_FULL or any other code of docs/reference/errors.md, or the last failure of the connection when the
   *   retries are used up (CONNECTION_FAILED, CONNECTION_LOST, TIMEOUT, UNEXPECTED_ANSWER).
   */
  push(
    botId: number,
    update: PushedUpdate<Payloads>,
    options: StreamPushOptions = {},
  ): Promise<PushResult> {
    // Each push costs one promise only. An exception in this callback rejects it.
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) throw new PostboteClientError('CLOSED')
      if (this.#flow.isOverfull) throw new PostboteClientError('TOO_MANY_UNDER_WAY')
      refuseUnknownPushOption(options, optionNames.ofStreamPush)
      const { isTest = false, idempotencyKey = this.#options.newKey() } = options
      const text = pairText(botId, update, { ...options, idempotencyKey })
      const bytes = Buffer.byteLength(text)
      this.#flow.add(bytes)
      this.#unsent.push({
        nth: this.#pushes++,
        botId,
        queue: isTest ? `${botId}/test` : `${botId}`,
        text,
        bytes,
        isRepeatable: idempotencyKey !== undefined,
        refusals: 0,
        mayBeStored: false,
        resolve,
        reject,
      })
      this.#schedule()
    })
  }

  /**
   * Accepts no more pushes. Resolves when every push has its result and the connection is closed.
   *
   * Pushes without a result after `timeoutMs` are rejected with CLOSED, and `isOutcomeUnknown` is set if they were sent.
   *
   * @param options - `timeoutMs`: the longest wait, in milliseconds. Default: the client's `timeoutMs`.
   * @throws TypeError that names an option that does not exist or cannot be used.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    const { settings, surroundings } = this.#options
    const timeoutMs = closeTimeoutMs(options, settings)
    this.#closed ??= this.#finish()
    const timer = surroundings.clock.after(timeoutMs, () => this.#giveUp())
    await this.#closed
    timer.cancel()
  }

  async #finish(): Promise<void> {
    await this.#flow.empty()
    this.#request?.end()
    await this.#request?.ended
    this.#options.onClosed()
  }

  #giveUp(): void {
    this.#reopening?.cancel()
    this.#reopening = undefined
    for (const pair of this.#sent) pair.mayBeStored = true
    const pairs = [...this.#sent.splice(0), ...this.#held.clear(), ...this.#unsent.splice(0)]
    for (const pair of pairs) {
      this.#fail(pair, callGivenUp('CLOSED', { isOutcomeUnknown: pair.mayBeStored }))
    }
    this.#expectResults()
    this.#flow.wake()
    this.#request?.destroy(new PostboteClientError('CLOSED'))
  }

  /** Sends the pushes of one turn of the event loop as one piece. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#options.surroundings.clock.soon(() => {
      this.#isScheduled = false
      if (this.#request !== undefined) this.#request.wake()
      else if (this.#reopening === undefined && this.#unsent.length > 0) this.#open()
    })
  }

  #open(): void {
    this.#results = 0
    const request = this.#options.openRequest({
      take: () => this.#take(),
      onResults: (lines) => this.#settle(lines),
    })
    this.#request = request
    void request.ended.then((error) => this.#onEnd(error))
  }

  #take(): string | undefined {
    let piece = ''
    let count = 0
    const wereSent = this.#sent.length > 0
    for (const pair of this.#unsent) {
      if (piece.length >= clientPieceLength) break
      count += 1
      if (this.#held.holdIfQueueWaits(pair)) continue
      piece += pair.text
      this.#sent.push(pair)
    }
    this.#unsent.splice(0, count)
    if (piece === '') return undefined
    if (!wereSent) this.#expectResults()
    return piece
  }

  #expectResults(): void {
    const { surroundings, settings } = this.#options
    this.#silence?.cancel()
    this.#silence =
      this.#sent.length === 0
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
    for (const pair of pairs) this.#settleOne(pair, lines[at++] ?? '')
    this.#results += pairs.length
    if (pairs.length < lines.length) {
      this.#request?.destroy(new PostboteClientError('UNEXPECTED_ANSWER'))
    }
    this.#expectResults()
    this.#flow.wake()
  }

  #settleOne(pair: Pair, line: string): void {
    const read = lineOutcome(line)
    if (!(read instanceof PostboteClientError)) {
      this.#flow.remove(pair.bytes)
      pair.resolve(read)
      return
    }
    const outcome = this.#options.withoutKey(read)
    pair.refusals += 1
    pair.mayBeStored ||= outcome.isOutcomeUnknown
    const { settings, surroundings, onRetry } = this.#options
    const attempt = pair.refusals
    const { isRepeatable } = pair
    const delayMs = retryDelayMs(
      { error: outcome, attempt, isRepeatable, unreachedMs: undefined },
      settings,
      surroundings.random,
    )
    if (delayMs === undefined) {
      this.#fail(pair, outcome)
      return
    }
    onRetry?.({ error: outcome, attempt, delayMs, botId: pair.botId })
    this.#held.hold(pair, delayMs)
  }

  #fail(pair: Pair, error: PostboteClientError): void {
    this.#flow.remove(pair.bytes)
    pair.reject(pair.mayBeStored ? withUnknownOutcome(error) : error)
  }

  /** Handles the end of a request, either a normal end by the server or an error. */
  #onEnd(error: PostboteClientError | undefined): void {
    this.#request = undefined
    this.#takeBack(error)
    this.#expectResults()
    if (this.#unsent.length > 0) this.#reopen(error)
    this.#flow.wake()
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
      if (isLost && !pair.isRepeatable) this.#fail(pair, error)
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
    const { settings, surroundings, onRetry } = this.#options
    const error = ended ?? new PostboteClientError('CONNECTION_LOST')
    const unreachedMs = this.#options.unreachedMs()
    const failed = { error, attempt: this.#failures, isRepeatable: true, unreachedMs }
    const delayMs = retryDelayMs(failed, settings, surroundings.random)
    if (delayMs === undefined) {
      this.#failures = 0
      for (const pair of [...this.#held.clear(), ...this.#unsent.splice(0)]) this.#fail(pair, error)
      return
    }
    onRetry?.({ error, attempt: failed.attempt, delayMs })
    this.#reopening = surroundings.clock.after(delayMs, () => {
      this.#reopening = undefined
      this.#schedule()
    })
  }
}
