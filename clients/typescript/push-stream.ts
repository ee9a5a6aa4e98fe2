/**
 * Many pushes, each with its own result, over a connection for each group of shards.
 *
 *   push --> lane of the bot --result--> resolved
 *              ^               `--503--> held --after a delay--> lane of the bot
 *              `--pairs of a queue that has held pairs wait with them
 *
 * There is one lane until the server has told its groups (ShardGroups), and if there is one group. When there are other groups, all
 * lanes retire: each gets the results of what it has sent. Then the pairs that were not sent are dealt to new lanes, in the order of
 * their pushes. So at no time are the pairs of a bot under way in two lanes.
 *
 * Order: the updates of a queue are stored in the order of their pushes, also across broken connections. The exception
 * is a pair that the server refused temporarily: it is stored after the pairs of its queue that were already sent. A
 * producer that cannot accept this awaits each result before the next push of the same chat.
 */
import { type CloseOptions, closeTimeoutMs, optionNames } from './client-options.ts'
import { Flow, type FlowBounds } from './flow.ts'
import { HeldPairs } from './held-pairs.ts'
import type { LaneMap, LanePlace } from './lane-map.ts'
import type { Pair } from './pair.ts'
import type { PairRequest, PairRequestEvents } from './pair-request.ts'
import { callGivenUp, PostboteClientError, withUnknownOutcome } from './postbote-client-error.ts'
import { pairText, refuseUnknownPushOption } from './push-call.ts'
import { type LaneStream, PushLane } from './push-lane.ts'
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
import type { ShardGroups } from './shard-groups.ts'

/** The part of ShardGroups that a stream uses. */
export type StreamGroups = Pick<
  ShardGroups,
  'map' | 'refreshed' | 'refreshOld' | 'onRequestEnded' | 'doWithout'
>

/** What a stream needs from the client that opens it. */
export interface PushStreamOptions extends Omit<RepeatedCallsOptions, 'attempt' | 'unreachedMs'> {
  openRequest(place: LanePlace, events: PairRequestEvents): PairRequest
  readonly groups: StreamGroups
  readonly bounds: FlowBounds
  newKey(): string | undefined
  withoutKey(error: PostboteClientError): PostboteClientError
  onClosed(): void
}

/**
 * A stream of pushes; `PostboteClient.openStream` opens it.
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
  readonly #forLanes: LaneStream
  #map: LaneMap
  /** Those that have had a pair. */
  readonly #lanes = new Map<LanePlace, PushLane>()
  /** Whether all of them retire. */
  #isDealing = false
  #pushes = 0
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
      const [first] = pairs
      if (first !== undefined) this.#laneOf(first.botId).addFirst(pairs)
    })
    this.#map = options.groups.map
    this.#forLanes = this.#laneStream()
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
      this.#laneOf(botId).add({
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
    })
  }

  /**
   * Accepts no more pushes. Resolves when every push has its result and the connections are closed.
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
    await Promise.all(Array.from(this.#lanes.values(), (lane) => lane.close()))
    this.#options.onClosed()
  }

  #giveUp(): void {
    const lanes = [...this.#lanes.values()]
    const sent = lanes.flatMap((lane) => lane.giveUp())
    const unsent = lanes.flatMap((lane) => lane.takeUnsent())
    for (const pair of [...sent, ...this.#held.clear(), ...unsent]) {
      this.#fail(pair, callGivenUp('CLOSED', { isOutcomeUnknown: pair.mayBeStored }))
    }
    this.#flow.wake()
  }

  #laneStream(): LaneStream {
    const { settings, surroundings, onRetry, groups } = this.#options
    return {
      settings,
      surroundings,
      onRetry,
      held: this.#held,
      refreshed: () => groups.refreshed(),
      hasOtherLanes: () => this.#hasOtherLanes(),
      onRequestEnded: () => groups.onRequestEnded(),
      onShardRefused: () => {
        groups.doWithout()
        this.#hasOtherLanes()
      },
      onIdle: () => this.#dealWhenIdle(),
      onResult: (pair, line) => this.#settle(pair, line),
      fail: (pair, error) => this.#fail(pair, error),
      onSettled: () => this.#flow.wake(),
    }
  }

  /** @param failures - those that a new lane begins with */
  #laneOf(botId: number, failures = 0): PushLane {
    const place = this.#map.placeOf(botId)
    return this.#lanes.get(place) ?? this.#newLane(place, failures)
  }

  #newLane(place: LanePlace, failures: number): PushLane {
    const map = this.#map
    const lane = new PushLane({
      stream: this.#forLanes,
      openRequest: (events) => this.#options.openRequest(place, events),
      unreachedMs: () => place.connection.unreachedMs(),
      namesShard: place.shard !== undefined,
      hasBot: (botId) => map.placeOf(botId) === place,
      failures,
    })
    this.#lanes.set(place, lane)
    if (this.#isDealing) lane.retire()
    return lane
  }

  /** Has all lanes retire if there are other groups. */
  #hasOtherLanes(): boolean {
    const { groups } = this.#options
    groups.refreshOld()
    if (!this.#isDealing && groups.map !== this.#map) {
      this.#isDealing = true
      for (const lane of this.#lanes.values()) lane.retire()
    }
    return this.#isDealing
  }

  /** Deals all pairs to new lanes once no lane has any under way. */
  #dealWhenIdle(): void {
    const lanes = [...this.#lanes.values()]
    if (!this.#isDealing || !lanes.every(({ isIdle }) => isIdle)) return
    this.#isDealing = false
    this.#lanes.clear()
    this.#map = this.#options.groups.map
    // Other groups are no reason to try forever.
    const failures = Math.max(...lanes.map((lane) => lane.failures))
    const pairs = lanes.flatMap((lane) => lane.takeUnsent()).toSorted((a, b) => a.nth - b.nth)
    for (const pair of pairs) this.#laneOf(pair.botId, failures).add(pair)
  }

  #settle(pair: Pair, line: string): void {
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
}
