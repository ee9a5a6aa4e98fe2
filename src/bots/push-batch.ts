/**
 * Takes a batch of pushes through its steps: filter, allocate ids, commit, report.
 *
 *   load bots, look up idempotency keys -> per row, in order: filter, allocate -> one commit per shard
 *
 * Nothing waits between allocation and commit, so ids are written to disk in the order of their allocation.
 */
import assert from 'node:assert/strict'
import { PostboteError, toPostboteError } from '../kit/errors.ts'
import { isInMask } from '../kit/update-types.ts'
import { assertTelegramFields } from '../queue/check/telegram-fields.ts'
import { lifeS } from '../queue/check/time-to-live.ts'
import { type Operation, type PushedRows, RowPush } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import { queueIdOf } from '../shard/records/record-keys.ts'
import type { UpdateRows } from '../shard/update-rows.ts'
import { HeldKey } from '../shard/idempotency/idempotency-keys.ts'
import { BatchIdempotencyKeys, type RowsToPush } from './batch-idempotency-keys.ts'
import type { PushSpan, Tracer } from '../kit/tracing/tracer.ts'
import { type Bot, isBotId } from './bot.ts'
import type { BotQueue } from './bot-queue.ts'
import { countRefusal, type PushOutcome, type PushReceipt } from './push-receipt.ts'
import type { Surroundings } from '../kit/surroundings.ts'

/** What a batch needs from the registry. */
export interface PushTargets {
  isDiskLow(shard: number): boolean
  assertServed(botId: number): void
  loaded(botId: number): Bot | undefined
  hasShardOf(botId: number): boolean
  load(botIds: readonly number[]): Promise<void>
  shardOf(botId: number): Shard
  /** How many times a shard was read anew, which drops all of its bots from memory. */
  readonly resets: number
}

interface PlacedPush {
  /** The number of the row. */
  readonly nth: number
  readonly shard: Shard
  readonly index: number
}

interface ShardPart {
  readonly pushed: PushedRows
  readonly operations: Operation[]
  /** Indexes of the results that depend on this shard's commit. */
  readonly indexes: number[]
}

export interface PushServices extends Pick<Surroundings, 'clock' | 'counters'> {
  /** By bot; absent if every push that finds no shard is refused. */
  readonly hasLeft?: ((botId: number) => boolean) | undefined
  /** Absent if updates are not traced. */
  readonly tracer?: Tracer | undefined
}

/** One batch of pushes, possibly for several bots and shards. */
export class PushBatch {
  readonly #targets: PushTargets
  readonly #services: PushServices
  readonly #rows: UpdateRows
  readonly #nths: readonly number[]
  readonly #results: PushOutcome[] = []
  /** Indexes of the pushes that are left to the next owner of their shard. */
  readonly #left = new Set<number>()
  readonly #parts = new Map<Shard, ShardPart>()
  readonly #resets: number
  /** When the batch was complete, monotonic. */
  readonly #startedMs: number
  /** Whether loading failed, so that a bot that is not loaded may exist. */
  #isLoadFailed = false
  /** Undefined if no push has a key. */
  #keys: BatchIdempotencyKeys | undefined

  /**
   * Creates the batch; `receipt` runs it.
   *
   * @param targets - Finds and loads the bots and their shards.
   * @param services - The clock and the counters, and what is left to another owner.
   * @param pushes - The rows, in the order in which their ids are allocated.
   */
  constructor(targets: PushTargets, services: PushServices, { rows, nths }: RowsToPush) {
    this.#targets = targets
    this.#services = services
    this.#rows = rows
    this.#nths = nths
    this.#resets = targets.resets
    this.#startedMs = services.clock.monotonicMs()
  }

  /**
   * Runs the batch. Call this once.
   *
   * @returns `accepted` resolves when the ids are allocated. `results` resolves when everything accepted is synced,
   *   with one result per push: an id, the id of a duplicate, 'filtered', or a PostboteError.
   */
  receipt(): PushReceipt {
    const committed = this.#prepare().then(() => this.#accept())
    const accepted = committed.then(() => this.#left)
    // A single push waits only for its result.
    accepted.catch(() => undefined)
    return {
      accepted,
      results: committed
        .then((commits) => Promise.all(commits))
        .then(() => {
          this.#count()
          if (this.#services.tracer?.hasSpans === true) this.#trace()
          return this.#results
        }),
    }
  }

  /**
   * Does everything that has to wait, before the first id is allocated. Never rejects: each push that a failure
   * concerns is refused later.
   */
  async #prepare(): Promise<void> {
    const missing = this.#missing()
    if (missing.length > 0) {
      await this.#targets.load(missing).catch(() => {
        this.#isLoadFailed = true
      })
    }
    let hasKeys = false
    for (const nth of this.#nths) {
      const isTest = this.#rows.isTest(nth)
      if (isTest) await this.#botOf(nth)?.test().catch(ignore)
      const queue = this.#queueOf(nth)
      if (queue?.updates.isDueToRenumber === true) await queue.updates.renumberIfDue()
      if (this.#rows.hasIdempotencyKey(nth)) hasKeys = true
    }
    if (!hasKeys) return
    const reading = this.#readKeys()
    if (reading !== undefined) await reading
  }

  /**
   * Returns the bots that must be read from disk. A bot whose shard is not open is refused later, without affecting others.
   */
  #missing(): readonly number[] {
    const missing: number[] = []
    const nowMs = this.#services.clock.monotonicMs()
    for (const nth of this.#nths) {
      const botId = this.#rows.botOf(nth)
      const bot = this.#targets.loaded(botId)
      // Otherwise the bot might be dropped from memory while others are loaded.
      if (bot !== undefined) bot.lastUsedMs = nowMs
      else if (isBotId(botId) && this.#targets.hasShardOf(botId)) missing.push(botId)
    }
    return missing
  }

  #readKeys(): Promise<unknown> | undefined {
    const targets = this.#targets
    const pushes = { rows: this.#rows, nths: this.#nths }
    this.#keys = new BatchIdempotencyKeys(pushes, {
      isLoaded: (nth) => this.#queueOf(nth) !== undefined,
      shardOf: (botId) => targets.shardOf(botId),
    })
    return this.#keys.read()
  }

  #botOf(nth: number): Bot | undefined {
    return this.#targets.loaded(this.#rows.botOf(nth))
  }

  #queueOf(nth: number): BotQueue | undefined {
    const bot = this.#botOf(nth)
    return this.#rows.isTest(nth) ? bot?.loadedTest : bot?.main
  }

  #accept(): Promise<void>[] {
    const nowMs = this.#services.clock.monotonicMs()
    for (const nth of this.#nths) {
      const index = this.#results.length
      this.#results.push(this.#acceptOne({ nth, index, nowMs }))
    }
    const commits: Promise<void>[] = []
    for (const [shard, part] of this.#parts) {
      if (part.operations.length > 0) commits.push(this.#commit(shard, part))
    }
    if (this.#keys !== undefined) {
      this.#keys.accepted()
      commits.push(this.#keys.copyFailures(this.#results))
    }
    return commits
  }

  /** Counts the results, which a failed write has changed. */
  #count(): void {
    const { clock, counters } = this.#services
    let pushed = 0
    let filtered = 0
    let duplicate = 0
    for (const [index, result] of this.#results.entries()) {
      if (typeof result === 'number') pushed += 1
      else if (this.#left.has(index)) continue
      else if (result === 'filtered') filtered += 1
      else if (result instanceof PostboteError) countRefusal(counters, result.code)
      else duplicate += 1
    }
    counters.add('updates_pushed', pushed)
    if (pushed > 0) counters.observe('push', clock.monotonicMs() - this.#startedMs, pushed)
    counters.add('updates_filtered', filtered)
    if (duplicate > 0) counters.add('updates_duplicate', duplicate)
  }

  /** Reports the pushes whose trace is sampled. Another owner reports those that are left to it. */
  #trace(): void {
    const { clock, tracer } = this.#services
    const endMs = clock.nowMs()
    const startMs = endMs - (clock.monotonicMs() - this.#startedMs)
    for (const [index, nth] of this.#nths.entries()) {
      if (!this.#rows.isSampled(nth) || this.#left.has(index)) continue
      const traceparent = this.#rows.traceparentOf(nth)
      const result = this.#results[index]
      if (traceparent === undefined || result === undefined) continue
      const botId = this.#rows.botOf(nth)
      const isTest = this.#rows.isTest(nth)
      const of = { botId, isTest, queue: queueIdOf(botId, isTest) }
      tracer?.pushed({ ...of, ...spanResultOf(result), traceparent, startMs, endMs })
    }
  }

  #acceptOne({ nth, index, nowMs }: Omit<PlacedPush, 'shard'> & { nowMs: number }): PushOutcome {
    const botId = this.#rows.botOf(nth)
    try {
      if (!isBotId(botId)) throw new PostboteError('UNKNOWN_BOT', { detail: `${botId}` })
      this.#targets.assertServed(botId)
      const bot = this.#targets.loaded(botId)
      const shard = this.#targets.shardOf(botId)
      if (shard.status !== 'serving') throw new PostboteError('STORE_UNAVAILABLE')
      if (bot === undefined && (this.#isLoadFailed || this.#resets !== this.#targets.resets)) {
        throw new PostboteError('STORE_UNAVAILABLE')
      }
      if (bot === undefined || bot.isRemoved)
        throw new PostboteError('UNKNOWN_BOT', { detail: `${botId}` })
      bot.lastUsedMs = nowMs
      const queue = this.#rows.isTest(nth) ? bot.loadedTest : bot.main
      if (queue === undefined) throw new PostboteError('STORE_UNAVAILABLE')
      return this.#push(queue, { nth, shard, index })
    } catch (error) {
      const refusal = refusalOf(error)
      if (this.#isLeft(botId, refusal)) this.#left.add(index)
      return refusal
    }
  }

  #isLeft(botId: number, { code }: PostboteError): boolean {
    return code === 'STORE_UNAVAILABLE' && this.#services.hasLeft?.(botId) === true
  }

  #push(queue: BotQueue, place: PlacedPush): PushOutcome {
    const { nth, shard } = place
    const rows = this.#rows
    const refusal = rows.refusalOf(nth)
    if (refusal !== undefined) throw refusal
    const typeNumber = rows.typeOf(nth)
    const key = rows.hasIdempotencyKey(nth) ? this.#keyOf(place) : undefined
    // This holds even if nothing new is accepted now, because the update is already stored.
    if (key !== undefined && !(key instanceof HeldKey)) return key
    if (rows.isValidated(nth) || queue.bot.record.isValidated === true) {
      assertTelegramFields(typeNumber, rows.textOf(nth))
    }
    if (this.#targets.isDiskLow(shard.index)) throw new PostboteError('DISK_LOW')
    if (!isInMask(queue.allowedTypes, typeNumber)) return 'filtered'
    if (key !== undefined) {
      shard.idempotency.assertRoom(key, this.#partOf(shard).pushed.acceptedAtMs)
    }
    const ttlS = lifeS(typeNumber, rows.ttlOf(nth) || undefined, queue.bot.record.ttlS)
    rows.setTtl(nth, ttlS)
    return this.#accepted(queue, place)
  }

  #accepted(queue: BotQueue, { nth, shard, index }: PlacedPush): number {
    const updateId = queue.updates.allocate(this.#rows.textBytes(nth))
    const { pushed, operations, indexes } = this.#partOf(shard)
    this.#keys?.claim(shard, index, pushed, updateId)
    operations.push(new RowPush(pushed, { nth, queue: queue.id, updateId }))
    indexes.push(index)
    return updateId
  }

  #keyOf({ shard, index }: PlacedPush): HeldKey | PushOutcome {
    const key = this.#keys?.check(index, shard, this.#partOf(shard).pushed.acceptedAtMs)
    assert(key !== undefined, 'keys are looked up before their updates are stored')
    return key
  }

  #partOf(shard: Shard): ShardPart {
    let part = this.#parts.get(shard)
    if (part === undefined) {
      const pushed = { rows: this.#rows, acceptedAtMs: shard.clock.nowMs() }
      part = { pushed, operations: [], indexes: [] }
      this.#parts.set(shard, part)
    }
    return part
  }

  async #commit(shard: Shard, part: ShardPart): Promise<void> {
    try {
      await shard.commit(part.operations, { waited: true })
      this.#keys?.settle(shard)
    } catch (error) {
      const failure =
        error instanceof PostboteError
          ? error
          : new PostboteError('OUTCOME_UNKNOWN', { cause: error })
      for (const index of part.indexes) this.#results[index] = failure
      this.#keys?.settle(shard, failure)
    }
  }
}

/**
 * Converts SHARD_BROKEN to STORE_UNAVAILABLE, which producers know as the code of a shard that accepts nothing for now,
 * so they send the update again later.
 */
function refusalOf(error: unknown): PostboteError {
  const refusal = toPostboteError(error)
  if (refusal.code !== 'SHARD_BROKEN') return refusal
  return new PostboteError('STORE_UNAVAILABLE', { cause: refusal })
}

/** How a push ended, as its span says it. */
function spanResultOf(result: PushOutcome): Pick<PushSpan, 'updateId' | 'result' | 'isError'> {
  if (result instanceof PostboteError) {
    return { updateId: undefined, result: result.code, isError: true }
  }
  if (result === 'filtered') return { updateId: undefined, result, isError: false }
  if (typeof result === 'number') return { updateId: result, result: 'stored', isError: false }
  return { updateId: result.duplicateOf, result: 'duplicate', isError: false }
}

function ignore(): undefined {}
