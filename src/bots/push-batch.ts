/**
 * A batch of pushes on its way in: checked, filtered, given ids, committed, answered.
 *
 *   load what is not in memory -> per request, in order: check, filter, allocate -> one commit per shard
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
import type { Operation } from '../store/operations.ts'
import type { Shard } from '../store/shard.ts'
import { type Bot, isBotId } from './bot.ts'
import type { BotQueue } from './bot-queue.ts'
import type { PushReceipt, PushRequest, PushResult } from './bot-service.ts'

/** What a batch needs of the registry. */
export interface PushTargets {
  isDiskLow(): boolean
  loaded(botId: number): Bot | undefined
  load(botIds: readonly number[]): Promise<void>
  shardOf(botId: number): Shard
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
  /** What was not loaded may exist all the same. */
  #isLoadFailed = false

  constructor(
    targets: PushTargets,
    services: { readonly clock: Clock; readonly counters: Counters },
    requests: readonly PushRequest[],
  ) {
    this.#targets = targets
    this.#services = services
    this.#requests = requests
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
    const missing: number[] = []
    for (const { botId } of this.#requests) {
      const bot = this.#targets.loaded(botId)
      // Else it may be dropped from memory while others are loaded.
      if (bot === undefined) missing.push(botId)
      else bot.lastUsedMs = this.#services.clock.monotonicMs()
    }
    if (missing.length > 0) {
      await this.#targets.load(missing).catch(() => {
        this.#isLoadFailed = true
      })
    }
    for (const { botId, isTest } of this.#requests) {
      const bot = this.#targets.loaded(botId)
      const queue = isTest ? (bot?.loadedTest ?? (await bot?.test().catch(ignore))) : bot?.main
      if (queue !== undefined) await renumberIfDue(queue)
    }
  }

  #accept(): Promise<void>[] {
    const { counters } = this.#services
    let pushed = 0
    let filtered = 0
    for (const [index, request] of this.#requests.entries()) {
      const result = this.#acceptOne(request, index)
      this.#results.push(result)
      if (result === 'filtered') filtered += 1
      else if (typeof result === 'number') pushed += 1
    }
    counters.add('updates_pushed', pushed)
    counters.add('updates_filtered', filtered)
    counters.add('updates_refused', this.#requests.length - pushed - filtered)
    return [...this.#parts].map(([shard, part]) => this.#commit(shard, part))
  }

  #acceptOne(request: PushRequest, index: number): PushResult {
    try {
      if (!isBotId(request.botId)) throw new PostboteError('UNKNOWN_BOT')
      const bot = this.#targets.loaded(request.botId)
      const shard = this.#targets.shardOf(request.botId)
      if (shard.status !== 'serving') throw new PostboteError('STORE_UNAVAILABLE')
      if (bot === undefined && this.#isLoadFailed) throw new PostboteError('STORE_UNAVAILABLE')
      if (bot === undefined || bot.isRemoved) throw new PostboteError('UNKNOWN_BOT')
      if (this.#targets.isDiskLow()) throw new PostboteError('DISK_LOW')
      bot.lastUsedMs = this.#services.clock.monotonicMs()
      const queue = request.isTest ? bot.loadedTest : bot.main
      if (queue === undefined) throw new PostboteError('STORE_UNAVAILABLE')
      return this.#push(queue, { request, shard, index })
    } catch (error) {
      return toPostboteError(error)
    }
  }

  #push(
    queue: BotQueue,
    place: { readonly request: PushRequest; readonly shard: Shard; readonly index: number },
  ): PushResult {
    const { request, shard, index } = place
    const { typeNumber, text, derivedKey } = checkedUpdate(request)
    if (!isAllowed(queue.allowedTypes, typeNumber)) return 'filtered'
    const operation = queue.updates.push({
      typeNumber,
      text,
      orderingKey:
        request.orderingKey === undefined
          ? (derivedKey ?? deriveOrderingKey(typeNumber, text))
          : producerKey(request.orderingKey),
      expiresAtS: expiresAtS(typeNumber, request.ttlS, this.#services.clock.nowMs()),
    })
    let part = this.#parts.get(shard)
    if (part === undefined) {
      part = { operations: [], indexes: [] }
      this.#parts.set(shard, part)
    }
    part.operations.push(operation)
    part.indexes.push(index)
    return operation.updateId
  }

  async #commit(shard: Shard, part: ShardPart): Promise<void> {
    try {
      await shard.commit(part.operations, { waited: true })
    } catch (error) {
      const failure =
        error instanceof PostboteError
          ? error
          : new PostboteError('OUTCOME_UNKNOWN', { cause: error })
      for (const index of part.indexes) this.#results[index] = failure
    }
  }
}

function checkedUpdate({ update, checked = checkUpdate(update) }: PushRequest): CheckedUpdate {
  if (checked instanceof PostboteError) throw checked
  return checked
}

function ignore(): undefined {}

/** To be called before a push. A failure shows in the push. */
export async function renumberIfDue(queue: BotQueue): Promise<void> {
  if (!queue.updates.isDueToRenumber) return
  await queue.updates.renumber().catch(ignore)
}
