/**
 * A batch of pushes on its way in: checked, filtered, given ids, committed, answered.
 *
 *   load bots, look up idempotency keys -> per request, in order: check, filter, allocate -> one commit per shard
 *
 * Between allocation and commit nothing waits, so that ids go to disk in the order in which they were given.
 */
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import { PostboteError, toPostboteError } from '../errors.ts'
import { type CheckedUpdate, checkUpdate } from '../queue/check-update.ts'
import { isAllowed } from '../queue/filter.ts'
import { deriveOrderingKey, producerKey } from '../queue/ordering-key.ts'
import { expiresAtS } from '../queue/time-to-live.ts'
import type { Operation } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import { BatchKeys, type CheckedKey } from './batch-keys.ts'
import { type Bot, isBotId } from './bot.ts'
import type { BotQueue } from './bot-queue.ts'
import type { PushReceipt, PushRequest, PushResult } from './bot-service.ts'

/** What a batch needs of the registry. */
export interface PushTargets {
  isDiskLow(): boolean
  loaded(botId: number): Bot | undefined
  hasShardOf(botId: number): boolean
  load(botIds: readonly number[]): Promise<void>
  shardOf(botId: number): Shard
  /** How often a shard was read anew, and all of its bots were dropped from memory. */
  readonly resets: number
}

interface Place {
  readonly request: PushRequest
  readonly shard: Shard
  readonly index: number
}

interface ShardPart {
  readonly operations: Operation[]
  /** Places in the results that stand or fall with this shard's commit. */
  readonly indexes: number[]
}

export class PushBatch {
  readonly #targets: PushTargets
  readonly #services: { readonly clock: Clock; readonly counters: Counters }
  readonly #requests: readonly PushRequest[]
  readonly #results: PushResult[] = []
  readonly #parts = new Map<Shard, ShardPart>()
  readonly #resets: number
  /** What was not loaded may exist all the same. */
  #isLoadFailed = false
  /** Undefined where no push has a key. */
  #keys: BatchKeys | undefined

  constructor(
    targets: PushTargets,
    services: { readonly clock: Clock; readonly counters: Counters },
    requests: readonly PushRequest[],
  ) {
    this.#targets = targets
    this.#services = services
    this.#requests = requests
    this.#resets = targets.resets
  }

  receipt(): PushReceipt {
    const committed = this.#prepare().then(() => this.#accept())
    const accepted = committed.then(() => undefined)
    // Who pushes a single update looks at the results only.
    accepted.catch(() => undefined)
    return {
      accepted,
      results: committed.then((commits) => Promise.all(commits)).then(() => this.#results),
    }
  }

  /**
   * Everything that must be waited for happens here, before the first id is given. Never rejects: what fails here
   * refuses the pushes it concerns one by one below.
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
    if (hasKeys) await this.#readKeys()
  }

  /** Bots that must be read from disk. One without its shard is refused later, and no other push with it. */
  #missing(): readonly number[] {
    const missing: number[] = []
    for (const { botId } of this.#requests) {
      const bot = this.#targets.loaded(botId)
      // Else it may be dropped from memory while others are loaded.
      if (bot !== undefined) bot.lastUsedMs = this.#services.clock.monotonicMs()
      else if (isBotId(botId) && this.#targets.hasShardOf(botId)) missing.push(botId)
    }
    return missing
  }

  async #readKeys(): Promise<void> {
    const targets = this.#targets
    this.#keys = new BatchKeys(this.#requests, {
      isLoaded: (request) => this.#queueOf(request) !== undefined,
      shardOf: (botId) => targets.shardOf(botId),
    })
    await this.#keys.read(this.#services.clock.nowMs())
  }

  #queueOf({ botId, isTest }: PushRequest): BotQueue | undefined {
    const bot = this.#targets.loaded(botId)
    return isTest ? bot?.loadedTest : bot?.main
  }

  #accept(): Promise<void>[] {
    const { counters } = this.#services
    let pushed = 0
    let filtered = 0
    let duplicate = 0
    for (const [index, request] of this.#requests.entries()) {
      const result = this.#acceptOne(request, index)
      this.#results.push(result)
      if (result === 'filtered') filtered += 1
      else if (typeof result === 'number') pushed += 1
      else if (!(result instanceof PostboteError)) duplicate += 1
    }
    counters.add('updates_pushed', pushed)
    counters.add('updates_filtered', filtered)
    counters.add('updates_refused', this.#requests.length - pushed - filtered - duplicate)
    const commits = [...this.#parts].map(([shard, part]) => this.#commit(shard, part))
    if (this.#keys !== undefined) {
      counters.add('updates_duplicate', duplicate)
      this.#keys.accepted()
      commits.push(this.#keys.shareFates(this.#results))
    }
    return commits
  }

  #acceptOne(request: PushRequest, index: number): PushResult {
    try {
      if (!isBotId(request.botId)) throw new PostboteError('UNKNOWN_BOT')
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
      return refusalOf(error)
    }
  }

  #push(queue: BotQueue, place: Place): PushResult {
    const { request, shard, index } = place
    const { typeNumber, text, derivedKey } = checkedUpdate(request)
    const key = request.idempotencyKey === undefined ? undefined : this.#keyOf(place, text)
    // Also where nothing new is taken now: this update is here already.
    if (key !== undefined && 'result' in key) return key.result
    if (this.#targets.isDiskLow()) throw new PostboteError('DISK_LOW')
    if (!isAllowed(queue.allowedTypes, typeNumber)) return 'filtered'
    if (key !== undefined) shard.idempotency.assertRoom(key.held, key.fact.acceptedAtMs)
    const operation = queue.updates.push({
      typeNumber,
      text,
      orderingKey:
        request.orderingKey === undefined
          ? (derivedKey ?? deriveOrderingKey(typeNumber, text))
          : producerKey(request.orderingKey),
      expiresAtS: expiresAtS(typeNumber, request.ttlS, this.#services.clock.nowMs()),
      idempotency: key?.fact,
    })
    if (key !== undefined) this.#keys?.claim(shard, index, { key, updateId: operation.updateId })
    const part = this.#partOf(shard)
    part.operations.push(operation)
    part.indexes.push(index)
    return operation.updateId
  }

  #keyOf({ request, index }: Place, text: Buffer): CheckedKey {
    const nowMs = this.#services.clock.nowMs()
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

function checkedUpdate({ update, checked = checkUpdate(update) }: PushRequest): CheckedUpdate {
  if (checked instanceof PostboteError) throw checked
  return checked
}

/** A producer knows STORE_UNAVAILABLE as the code of a shard that takes nothing for now, and sends the update again later. */
function refusalOf(error: unknown): PostboteError {
  const refusal = toPostboteError(error)
  if (refusal.code !== 'SHARD_BROKEN') return refusal
  return new PostboteError('STORE_UNAVAILABLE', { cause: refusal })
}

function ignore(): undefined {}

/** To be called before a push. A failure shows in the push. */
export async function renumberIfDue(queue: BotQueue): Promise<void> {
  if (!queue.updates.isDueToRenumber) return
  await queue.updates.renumber().catch(ignore)
}
