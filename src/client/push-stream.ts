/**
 * Many pushes over one connection, each with its own result.
 *
 *   push --> unsent --take--> sent --result--> resolved
 *              ^  ^             |  `--503-----> held --after a delay--> unsent
 *              |  `--broken-----'                 ^
 *              `--pairs of a bot that has some held
 *
 * One request lasts until the server ends it (a reload, ten idle minutes) or the connection breaks. What has no result
 * then is sent again in the next request, in the same order, with the same keys: none is lost and none stored twice.
 * The request is opened with the first pair and never for nothing.
 *
 * Order: a bot's updates are stored in the order of their pushes, also over broken connections. Only a pair that the
 * server refused for a moment is stored behind those that were under way with it already. Who cannot have that awaits
 * each result before the next push of the same chat.
 */
import type { Timer } from '../clock.ts'
import { clientPieceLength } from '../limits.ts'
import {
  type ClientOptions,
  type ClientSettings,
  type ClientSurroundings,
  type CloseOptions,
  closeTimeoutMs,
  optionNames,
  refuseUnknown,
} from './client-options.ts'
import { Flow, type FlowBounds } from './flow.ts'
import { HeldPairs } from './held-pairs.ts'
import type { Pair } from './pair.ts'
import type { PairRequest, PairRequestEvents } from './pair-request.ts'
import { callGivenUp, PostboteClientError, withUnknownOutcome } from './postbote-client-error.ts'
import { pairText } from './push-call.ts'
import { lineOutcome } from './push-outcome.ts'
import type {
  AnyPayloads,
  PushedUpdate,
  PushResult,
  StreamPushOptions,
  UpdatePayloads,
} from './pushed-update.ts'
import { retryDelayMs } from './retry-delay.ts'

export interface PushStreamOptions {
  openRequest(events: PairRequestEvents): PairRequest
  readonly settings: ClientSettings
  readonly bounds: FlowBounds
  readonly surroundings: ClientSurroundings
  newKey(): string | undefined
  readonly onRetry: ClientOptions['onRetry']
  onClosed(): void
}

export class PushStream<Payloads extends UpdatePayloads = AnyPayloads> {
  readonly #options: PushStreamOptions
  readonly #flow: Flow
  readonly #held: HeldPairs
  #unsent: Pair[] = []
  /** In the order of their results. */
  #sent: Pair[] = []
  #pushes = 0
  #request: PairRequest | undefined
  /** Results of the request that is open. */
  #results = 0
  /** Requests in a row that ended without a result. */
  #failures = 0
  #isScheduled = false
  /** Until the next request, after one that failed. */
  #reopening: Timer | undefined
  /** While pairs wait for their results. */
  #silence: Timer | undefined
  #closed: Promise<void> | undefined

  /** Called by the client. */
  constructor(options: PushStreamOptions) {
    this.#options = options
    this.#flow = new Flow(options.bounds, options.surroundings.clock)
    this.#held = new HeldPairs(options.surroundings.clock, (pairs) => {
      this.#unsent = [...pairs, ...this.#unsent]
      this.#schedule()
    })
  }

  /** Pushes that have no result yet. */
  get pairsUnderWay(): number {
    return this.#flow.pairs
  }

  get bytesUnderWay(): number {
    return this.#flow.bytes
  }

  /** Resolves when there is room: await it before each push, and push at once then. */
  ready(): Promise<void> {
    return this.#closed === undefined ? this.#flow.ready() : Promise.resolve()
  }

  /**
   * Resolves when the update is on disk, or the bot does not want it. Rejects with a PostboteClientError,
   * TOO_MANY_UNDER_WAY for who does not await `ready`.
   */
  push(
    botId: number,
    update: PushedUpdate<Payloads>,
    options: StreamPushOptions = {},
  ): Promise<PushResult> {
    // One promise for each push, no more: what is thrown here rejects it.
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) throw new PostboteClientError('CLOSED')
      if (this.#flow.isOverfull) throw new PostboteClientError('TOO_MANY_UNDER_WAY')
      refuseUnknown(options, optionNames.ofStreamPush)
      const { orderingKey, ttlS, isTest = false, idempotencyKey = this.#options.newKey() } = options
      const text = pairText(botId, update, { orderingKey, ttlS, isTest, idempotencyKey })
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
   * Takes nothing more; resolves when all that is under way has its result and the connection is closed. What has no
   * result after `timeoutMs` is rejected with CLOSED, and with `isOutcomeUnknown` where it was sent.
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

  /** Pushes of one turn go out in one piece. */
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
      if (this.#held.takesBehind(pair)) continue
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

  /** Results in the order of the pairs. */
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
    const outcome = lineOutcome(line)
    if (!(outcome instanceof PostboteClientError)) {
      this.#flow.remove(pair.bytes)
      pair.resolve(outcome)
      return
    }
    pair.refusals += 1
    pair.mayBeStored ||= outcome.isOutcomeUnknown
    const { settings, surroundings, onRetry } = this.#options
    const attempt = pair.refusals
    const { isRepeatable } = pair
    const delayMs = retryDelayMs(
      { error: outcome, attempt, isRepeatable },
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

  /** The request is over: in order, where the server wanted it so, or by an error. */
  #onEnd(error: PostboteClientError | undefined): void {
    this.#request = undefined
    this.#takeBack(error)
    this.#expectResults()
    if (this.#unsent.length > 0) this.#reopen(error)
    this.#flow.wake()
  }

  /** What has no result is sent again before all others. Of what the server did not answer in order it took nothing. */
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
    const failed = { error, attempt: this.#failures, isRepeatable: true }
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
