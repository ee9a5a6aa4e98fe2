/**
 * Takes a batch of pushes through its steps: filter, allocate ids, commit, report.
 *
 *   load bots, look up idempotency keys -> per request, in order: filter, allocate -> one commit per shard
 *
 * Nothing waits between allocation and commit, so ids are written to disk in the order of their allocation.
 */
import { PostboteError, toPostboteError } from '../errors.ts'
import type { CheckedUpdate } from '../queue/check-update.ts'
import { isAllowed } from '../queue/filter.ts'
import { producerKey } from '../queue/ordering-key.ts'
import { assertTelegramFields } from '../queue/telegram-fields.ts'
import { expiresAtS } from '../queue/time-to-live.ts'
import type { Operation } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import { BatchIdempotencyKeys, type CheckedKey } from './batch-idempotency-keys.ts'
import { type Bot, isBotId } from './bot.ts'
import type { BotQueue } from './bot-queue.ts'
import type { PushReceipt, PushRequest, PushOutcome } from './bot-service.ts'
import { countRefusal } from './count-refusal.ts'
import type { Surroundings } from '../surroundings.ts'

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

interface Place {
  readonly request: PushRequest
  readonly shard: Shard
  readonly index: number
}

interface ShardPart {
  readonly operations: Operation[]
  /** Indexes of the results that depend on this shard's commit. */
  readonly indexes: number[]
}

export interface PushServices extends Pick<Surroundings, 'clock' | 'counters'> {
  /** By bot; absent if every push that finds no shard is refused. */
  readonly hasLeft?: ((botId: number) => boolean) | undefined
}

/** One batch of pushes, possibly for several bots and shards. */
export class PushBatch {
  readonly #targets: PushTargets
  readonly #services: PushServices
  readonly #requests: readonly PushRequest[]
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
   * @param requests - The pushes, in the order in which their ids are allocated.
   */
  constructor(targets: PushTargets, services: PushServices, requests: readonly PushRequest[]) {
    this.#targets = targets
    this.#services = services
    this.#requests = requests
    this.#resets = targets.resets
    this.#startedMs = services.clock.monotonicMs()
  }

  /**
   * Runs the batch. Call this once.
   *
   * @returns `accepted` resolves when the ids are allocated. `results` resolves when everything accepted is synced,
   *   with one result per request: an id, the id of a duplicate, 'filtered', or a PostboteError.
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
    for (const request of this.#requests) {
      if (request.isTest) await this.#targets.loaded(request.botId)?.test().catch(ignore)
      const queue = this.#queueOf(request)
      if (queue?.updates.isDueToRenumber === true) await renumberIfDue(queue)
      if (request.idempotencyKey !== undefined) hasKeys = true
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
    for (const { botId } of this.#requests) {
      const bot = this.#targets.loaded(botId)
      // Otherwise the bot might be dropped from memory while others are loaded.
      if (bot !== undefined) bot.lastUsedMs = this.#services.clock.monotonicMs()
      else if (isBotId(botId) && this.#targets.hasShardOf(botId)) missing.push(botId)
    }
    return missing
  }

  #readKeys(): Promise<unknown> | undefined {
    const targets = this.#targets
    this.#keys = new BatchIdempotencyKeys(this.#requests, {
      isLoaded: (request) => this.#queueOf(request) !== undefined,
      shardOf: (botId) => targets.shardOf(botId),
    })
    return this.#keys.read()
  }

  #queueOf({ botId, isTest }: PushRequest): BotQueue | undefined {
    const bot = this.#targets.loaded(botId)
    return isTest ? bot?.loadedTest : bot?.main
  }

  #accept(): Promise<void>[] {
    for (const [index, request] of this.#requests.entries()) {
      this.#results.push(this.#acceptOne(request, index))
    }
    const commits = [...this.#parts].map(([shard, part]) => this.#commit(shard, part))
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
      if (this.#left.has(index)) continue
      if (result === 'filtered') filtered += 1
      else if (typeof result === 'number') pushed += 1
      else if (result instanceof PostboteError) countRefusal(counters, result.code)
      else duplicate += 1
    }
    counters.add('updates_pushed', pushed)
    if (pushed > 0) counters.observe('push', clock.monotonicMs() - this.#startedMs, pushed)
    counters.add('updates_filtered', filtered)
    if (duplicate > 0) counters.add('updates_duplicate', duplicate)
  }

  #acceptOne(request: PushRequest, index: number): PushOutcome {
    try {
      if (!isBotId(request.botId)) throw new PostboteError('UNKNOWN_BOT')
      this.#targets.assertServed(request.botId)
      const bot = this.#targets.loaded(request.botId)
      const shard = this.#targets.shardOf(request.botId)
      if (shard.status !== 'serving') throw new PostboteError('STORE_UNAVAILABLE')
      if (bot === undefined && (this.#isLoadFailed || this.#resets !== this.#targets.resets)) {
        throw new PostboteError('STORE_UNAVAILABLE')
      }
      if (bot === undefined || bot.isRemoved) throw new PostboteError('UNKNOWN_BOT')
      bot.lastUsedMs = this.#services.clock.monotonicMs()
      const queue = this.#queueOf(request)
      if (queue === undefined) throw new PostboteError('STORE_UNAVAILABLE')
      return this.#push(queue, { request, shard, index })
    } catch (error) {
      const refusal = refusalOf(error)
      if (this.#isLeft(request, refusal)) this.#left.add(index)
      return refusal
    }
  }

  #isLeft({ botId }: PushRequest, { code }: PostboteError): boolean {
    return code === 'STORE_UNAVAILABLE' && this.#services.hasLeft?.(botId) === true
  }

  #push(queue: BotQueue, place: Place): PushOutcome {
    const { request, shard, index } = place
    if (request.checked instanceof PostboteError) throw request.checked
    const { typeNumber, text, derivedKey } = request.checked
    const key = request.idempotencyKey === undefined ? undefined : this.#keyOf(place, text)
    // This holds even if nothing new is accepted now, because the update is already stored.
    if (key !== undefined && 'result' in key) return key.result
    assertValid(queue, request, { typeNumber, text })
    if (this.#targets.isDiskLow(shard.index)) throw new PostboteError('DISK_LOW')
    if (!isAllowed(queue.allowedTypes, typeNumber)) return 'filtered'
    if (key !== undefined) shard.idempotency.assertRoom(key.held, key.fact.acceptedAtMs)
    const operation = queue.updates.push({
      typeNumber,
      text,
      orderingKey:
        request.orderingKey === undefined ? derivedKey : producerKey(request.orderingKey),
      expiresAtS: expiresAtS(typeNumber, request.ttlS, queue.clock.nowMs()),
      idempotency: key?.fact,
    })
    if (key !== undefined) this.#keys?.claim(shard, index, { key, updateId: operation.updateId })
    const part = this.#partOf(shard)
    part.operations.push(operation)
    part.indexes.push(index)
    return operation.updateId
  }

  #keyOf({ request, shard, index }: Place, text: Buffer): CheckedKey {
    const nowMs = shard.clock.nowMs()
    const key = this.#keys?.check(index, { botId: request.botId, text, nowMs })
    if (key === undefined) throw new Error('expected the keys to have been looked up')
    return key
  }

  #partOf(shard: Shard): ShardPart {
    let part = this.#parts.get(shard)
    if (part === undefined) {
      part = { operations: [], indexes: [] }
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

/** Checks the fields that bot frameworks need, if the push or the bot asks for it. */
function assertValid(
  { bot }: BotQueue,
  { isValidated }: PushRequest,
  { typeNumber, text }: CheckedUpdate,
): void {
  if (isValidated === true || bot.record.isValidated === true) {
    assertTelegramFields(typeNumber, text)
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

function ignore(): undefined {}

/**
 * Renumbers an empty queue whose ids approach their limit. Call this before a push. It never rejects: if it fails, the
 * push reports the error.
 *
 * @param queue - The queue that is about to be pushed to.
 */
export async function renumberIfDue(queue: BotQueue): Promise<void> {
  if (!queue.updates.isDueToRenumber) return
  await queue.updates.renumber().catch(ignore)
}
