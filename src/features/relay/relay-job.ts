/**
 * The relay of one bot: polls its origin for as long as its worker has the bot, and stores what it is sent.
 *
 *   polling --a poll fails, or nothing can be stored--> paused --a poll succeeds--> polling
 *                                                       |    ^
 *                                                       +----+ tried again, ever later
 *
 * Only the record of the bot says how far the relay is: each poll begins at its offset, which was written in one group with
 * the updates before it. So the origin is told of an update only after it is synced, and an answer is dropped if the relay
 * has changed since its poll began.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import type { ReportEvent } from '../../kit/operator-event.ts'
import { relayBatchMax, relayPollS } from './limits.ts'
import type { OriginAnswer, OriginFailure, RefusedUpdate, RelayServices } from './origin.ts'
import type { RefusedUpdates } from './refused-updates.ts'
import { typesOf } from '../../kit/update-types.ts'
import type { StoredRelay } from '../../shard/records/bot-record.ts'
import type { Shard } from '../../shard/shard.ts'
import type { Counters, Log } from '../../kit/surroundings.ts'
import type { Bot } from '../../bots/bot.ts'
import { pollOffset, storeRelayed } from './relay-batch.ts'

/** What a relay needs of its worker. */
export interface RelayJobServices {
  readonly clock: Clock
  readonly counters: Counters
  readonly random: () => number
  readonly log: Pick<Log, 'error'> | undefined
  readonly report: ReportEvent
  readonly relays: Omit<RelayServices, 'sealToken'>
  readonly refused: Pick<RefusedUpdates, 'keep'>
  find(botId: number): Bot | undefined | Promise<Bot | undefined>
  /** Throws if the bot accepts no updates now. */
  assertAccepting(bot: Bot): void
}

/**
 * Polls that store no update begin at least this far apart, because an origin without long polls answers them immediately, and
 * may send only updates that are skipped. So do polls that end because the bot wants other types, which it may change all the
 * time.
 */
const relayEmptyRestMs = 1_000
/** When updates could not be stored, the next poll begins after at most this time, because the queue may soon have room. */
const relayStoreRetryMsMax = 10_000
/** The wait after the second failure in a row; each further one doubles it. Chosen: a restart of an origin is over then. */
const relayPauseMsMin = 2_000
/** The wait grows to this. Chosen: with the spread it stays below two minutes, and a thousand relays cost an origin that is down 11 polls a second. */
const relayPauseMsMax = 90_000

/** What a relay does now. */
export interface RelayState {
  readonly state: 'polling' | 'paused'
  /** Why it is paused, as one sentence. */
  readonly reason: string | undefined
  /** Wall time of the last change between the two. */
  readonly sinceMs: number
  /** Wall time of the next poll, if it is paused. */
  readonly nextPollMs: number | undefined
  /** Since the worker has the bot. */
  readonly relayed: number
  readonly refused: number
}

export class RelayJob {
  readonly botId: number
  readonly #services: RelayJobServices
  readonly #shard: Shard
  readonly #onEnd: () => void
  readonly #stopping = new AbortController()
  /** Ends the poll that waits; undefined once its answer has arrived. */
  #asking: AbortController | undefined
  #running: Promise<void> | undefined
  #state: RelayState
  /** Polls in a row that failed. */
  #failures = 0
  /** After a failure, a poll does not wait, so that the pause is over when the origin answers and not when it has an update. */
  #waitS = relayPollS
  #limit = relayBatchMax
  /** Refused updates with lower ids are already kept. */
  #keptBelow = 0

  /** @param onEnd - called when it has ended, before `stop` resolves */
  constructor(services: RelayJobServices, shard: Shard, botId: number, onEnd: () => void) {
    this.#services = services
    this.#onEnd = onEnd
    this.#shard = shard
    this.botId = botId
    this.#state = {
      state: 'polling',
      reason: undefined,
      sinceMs: shard.clock.nowMs(),
      nextPollMs: undefined,
      relayed: 0,
      refused: 0,
    }
    services.counters.add('relays_polling', 1)
  }

  get state(): RelayState {
    return this.#state
  }

  /** Works until the bot has no relay, or it is stopped. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      const { counters } = this.#services
      counters.add(this.#state.state === 'polling' ? 'relays_polling' : 'relays_paused', -1)
      this.#onEnd()
    })
    return this.#running
  }

  /** Ends a poll that waits, so that the next one asks for what the bot wants: an origin makes no update of another type. */
  askAnew(): void {
    this.#asking?.abort()
  }

  /** Resolves when nothing of it is in progress. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#asking?.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#services
    const { signal } = this.#stopping
    while (!signal.aborted) {
      let waitMs: number | undefined
      try {
        waitMs = await this.#next()
      } catch (error) {
        // A shard whose write has failed is read anew, which starts its relays again.
        if (signal.aborted || this.#shard.status !== 'serving') return
        if (!(error instanceof PostboteError)) {
          log?.error({ shard: this.#shard.index, error: String(error) }, failed)
        }
        waitMs = this.#cannotStore(error)
      }
      if (waitMs === undefined) return
      if (waitMs > 0) await sleep(clock, waitMs, signal)
    }
  }

  /** Polls once. Returns how many milliseconds later the next poll may begin; undefined if the bot has no relay any more. */
  async #next(): Promise<number | undefined> {
    const { clock } = this.#services
    const { signal } = this.#stopping
    const bot = await this.#services.find(this.botId)
    const relay = bot?.record.relay
    if (bot === undefined || relay === undefined || signal.aborted) return undefined
    const origin = this.#services.relays.originOf(relay.from)
    if (origin === undefined) return this.#fail({ reason: relayNotListed })
    const token = this.#services.relays.openToken(relay.sealedToken)
    if (token === undefined) return this.#fail({ reason: relayTokenVoid })
    const startedMs = clock.monotonicMs()
    const poll = {
      token,
      offset: pollOffset(relay, bot.main.clock.nowMs()),
      types: typesOf(bot.main.allowedTypes),
      limit: this.#limit,
      waitS: this.#waitS,
    }
    const asking = new AbortController()
    this.#asking = asking
    try {
      return await origin.poll(
        poll,
        (answer) => {
          this.#asking = undefined
          return this.#take(relay, answer, clock.monotonicMs() - startedMs)
        },
        asking.signal,
      )
    } catch (error) {
      if (signal.aborted || !asking.signal.aborted) throw error
      return Math.max(0, relayEmptyRestMs - (clock.monotonicMs() - startedMs))
    }
  }

  async #take(polled: StoredRelay, answer: OriginAnswer, tookMs: number): Promise<number> {
    if ('failure' in answer) {
      const { isTooLarge = false } = answer.failure
      if (isTooLarge && this.#limit > 1) {
        this.#limit = Math.max(1, Math.floor(this.#limit / 4))
        return 0
      }
      return this.#fail(answer.failure)
    }
    const { updates } = answer
    // A full answer after one that was too large would be too large again, so the limit grows in steps.
    this.#limit = Math.min(this.#limit * 2, relayBatchMax)
    if (updates.length === 0) {
      this.#toPolling()
      return Math.max(0, relayEmptyRestMs - tookMs)
    }
    // The bot may have left memory during the poll.
    const bot = await this.#services.find(this.botId)
    if (bot === undefined) return 0
    await bot.main.updates.renumberIfDue()
    const target = {
      bot,
      counters: this.#services.counters,
      assertAccepting: () => {
        this.#stopping.signal.throwIfAborted()
        this.#services.assertAccepting(bot)
      },
    }
    const batch = await storeRelayed(target, { polled, updates }, (refused) => this.#keep(refused))
    if (batch === undefined) return 0
    const { pushed, refused, isRepeated, stopped } = batch
    if (stopped === undefined) this.#keptBelow = 0
    this.#count(pushed, refused)
    if (stopped !== undefined) return this.#cannotStore(stopped)
    if (isRepeated) return this.#fail({ reason: relayRepeats })
    this.#toPolling()
    return pushed > 0 ? 0 : Math.max(0, relayEmptyRestMs - tookMs)
  }

  /** Keeps each refused update once. It comes again as long as one before it cannot be stored. */
  async #keep(refused: readonly RefusedUpdate[]): Promise<void> {
    const unkept = refused.filter(({ updateId }) => updateId >= this.#keptBelow)
    if (unkept.length === 0) return
    await this.#services.refused.keep({ botId: this.botId, shard: this.#shard.index }, unkept)
    this.#keptBelow = (unkept.at(-1)?.updateId ?? 0) + 1
  }

  #count(pushed: number, refused: readonly RefusedUpdate[]): void {
    const { clock, report } = this.#services
    const before = this.#state
    this.#state = {
      ...before,
      relayed: before.relayed + pushed,
      refused: before.refused + refused.length,
    }
    const [first] = refused
    if (first === undefined) return
    report({
      type: 'relay.refused',
      timeMs: clock.nowMs(),
      botId: this.botId,
      count: refused.length,
      reason: first.reason,
    })
  }

  #cannotStore(error: unknown): number {
    const why = error instanceof PostboteError ? error.message : 'An error within this server'
    this.#failures = Math.max(1, this.#failures)
    return Math.min(
      this.#fail({ reason: `Updates cannot be stored now: ${why}` }),
      relayStoreRetryMsMax,
    )
  }

  /** Returns how long to wait, in milliseconds. */
  #fail(failure: OriginFailure): number {
    const { reason, retryAfterMs, isPassing = false, isOfWaiting = false } = failure
    const { random, clock } = this.#services
    this.#failures += 1
    this.#waitS = isOfWaiting ? relayPollS : 0
    // Only the first of several failures that may pass is tried again at once.
    const failures = isPassing ? this.#failures : Math.max(2, this.#failures)
    const waitMs = retryAfterMs ?? pollPauseMs(failures, random)
    if (waitMs > 0 || !isPassing) this.#to('paused', reason)
    if (this.#state.state === 'paused') {
      this.#state = { ...this.#state, nextPollMs: clock.nowMs() + waitMs }
    }
    return waitMs
  }

  #toPolling(): void {
    this.#failures = 0
    this.#waitS = relayPollS
    this.#to('polling')
  }

  #to(state: RelayState['state'], reason?: string): void {
    const before = this.#state
    const { clock, counters, report } = this.#services
    const isChange = before.state !== state
    const sinceMs = isChange ? this.#shard.clock.nowMs() : before.sinceMs
    this.#state = { ...before, state, reason, sinceMs, nextPollMs: undefined }
    if (isChange) {
      counters.add('relays_polling', state === 'polling' ? 1 : -1)
      counters.add('relays_paused', state === 'paused' ? 1 : -1)
    }
    if (!isChange && before.reason === reason) return
    const type = state === 'polling' ? 'relay.resumed' : 'relay.paused'
    report({ type, timeMs: clock.nowMs(), botId: this.botId, reason })
  }
}

const failed = 'a relay failed; it is tried again soon'
const relayNotListed = '--relay-from does not list the origin: list it, or remove the relay'
const relayTokenVoid =
  'The token cannot be read, because the admin key has changed: set the relay again with its token'
const relayRepeats =
  'The origin repeats updates that were confirmed, and sends nothing else: if it counts anew, remove the relay and set it again'

/**
 * Returns how many milliseconds after a failure the next poll begins: not at all after the first failure, then 2, 4, 8 ... s. The
 * delay is spread, so that the relays of an origin that was down do not return together.
 *
 * @param failures - polls in a row that failed, including this one
 * @param random - returns numbers in [0, 1)
 */
export function pollPauseMs(failures: number, random: () => number): number {
  if (failures <= 1) return 0
  const spread = 0.75 + random() / 2
  return Math.min(relayPauseMsMin * 2 ** (failures - 2), relayPauseMsMax) * spread
}
