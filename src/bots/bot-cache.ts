/**
 * The bots of the shards that this worker owns: found by id, loaded when they are first used, and dropped from memory when
 * they have been idle for a while.
 */
import assert from 'node:assert/strict'
import { type Clock, every, nextTurn, type Timer } from '../kit/clock.ts'
import { PostboteError } from '../kit/errors.ts'
import { requestTimeoutMs } from '../kit/limits.ts'
import type { Operation } from '../shard/operations.ts'
import type { BotRecord } from '../shard/records/bot-record.ts'
import { botIdOf, isTestQueue, type QueueId, queueIdOf } from '../shard/records/record-keys.ts'
import type { StoredQueue } from '../shard/records/stored-records.ts'
import type { Shard } from '../shard/shard.ts'
import { Bot, type BotHome, isBotId } from './bot.ts'
import type { BotQueue, BotQueueServices } from './bot-queue.ts'

export interface BotCacheOptions {
  readonly services: BotQueueServices
  readonly clock: Clock
  shardOf(botId: number): number
  /** Whether pushes for a shard are refused because its disk is nearly full. */
  isDiskLow(shard: number): boolean
  /** Whether `--filter` includes a bot. An excluded bot may exist: it was registered before the filter excluded it. */
  isServed(botId: number): boolean
}

/** One call reads this many bots from disk, because three records of each are in memory together. */
export const botLoadCountMax = 500
/** Idle bots are searched for this often: an eighth of `botIdleMs`, so that they leave memory soon after it. */
const botSweepPeriodMs = 15_000
/** Each sweep checks at most this many bots, so that a worker with many of them spreads the work over several sweeps. */
const botSweepCountMax = 20_000
/** A sweep checks this many bots in one turn of the event loop: dropping 20,000 in one turn took 120 ms, so this is 3 ms. */
export const botSweepSliceMax = 500
/** A start begins this many webhooks in one turn of the event loop, since each reads its queue and looks up a name. */
export const webhooksStartedMax = 20
/**
 * A bot leaves memory after this idle time. It is longer than any request takes to arrive, so no request is left with a
 * queue that was dropped.
 */
const botIdleMs = 2 * requestTimeoutMs

export class BotCache {
  readonly #options: BotCacheOptions
  /** By the shard, which has a clock of its own. */
  readonly #homes = new WeakMap<Shard, BotHome>()
  readonly #shards = new Map<number, Shard>()
  /** Numbers of this worker's shards that are set aside. */
  readonly #broken = new Set<number>()
  /**
   * Numbers of this worker's shards in whose tables a check has found damaged blocks. LevelDB may read such a block as an
   * empty one, so records may be missing without an error. A bot that is not found in such a shard is therefore refused
   * instead of unknown, and no queue starts anew in it, because its ids would repeat.
   */
  readonly #doubtful = new Set<number>()
  readonly #bots = new Map<number, Bot>()
  readonly #queues = new Map<QueueId, BotQueue>()
  readonly #loading = new Map<number, Promise<void>>()
  readonly #sweeper: Timer
  /** Where the last sweep ended. The iterator of a map continues with entries that are added later. */
  #sweepCursor: Iterator<Bot>
  #resets = 0
  /** The shards that end their polls and deliveries, and those that begin no new deliveries. */
  readonly #draining = new Set<Shard | 'all'>()
  readonly #resting = new Set<Shard | 'all'>()

  constructor(options: BotCacheOptions) {
    this.#options = options
    this.#sweepCursor = this.#bots.values()
    this.#sweeper = every(options.clock, botSweepPeriodMs, () => this.#sweep())
  }

  addShard(shard: Shard): void {
    assert(!this.#shards.has(shard.index), 'a shard is added once, until it is removed')
    this.#broken.delete(shard.index)
    this.#shards.set(shard.index, shard)
  }

  /** Drops a shard with its bots, whose polls end with an empty list. Resolves when nothing of them is in progress. */
  async removeShard(shard: Shard): Promise<void> {
    this.#shards.delete(shard.index)
    this.#resting.delete(shard)
    this.#draining.delete(shard)
    await this.#dropBotsOf(shard)
  }

  /** Marks a shard of this worker that is not opened because its files are damaged. Its bots are refused. */
  setAside(index: number): void {
    this.#broken.add(index)
  }

  /** The shard belongs to another node now. */
  forgetAside(index: number): void {
    this.#broken.delete(index)
  }

  /** A check has found damaged blocks in the tables of a shard. */
  doubt(index: number): void {
    this.#doubtful.add(index)
  }

  /** A check of a shard has found nothing. */
  trust(index: number): void {
    this.#doubtful.delete(index)
  }

  /** Closes the store of a shard, which opens it again as soon as that can be. */
  endStore(index: number, error: Error): void {
    this.#shards.get(index)?.storeEnded(error)
  }

  /** Whether records of this bot may be missing. */
  isDoubtful(botId: number): boolean {
    return this.#doubtful.size > 0 && this.#doubtful.has(this.#options.shardOf(botId))
  }

  /** Call this with bots that have no record. Throws SHARD_BROKEN if a record may have been lost. */
  assertAbsent(botIds: readonly number[]): void {
    if (botIds.some((botId) => this.isDoubtful(botId))) throw new PostboteError('SHARD_BROKEN')
  }

  get shards(): Iterable<Shard> {
    return this.#shards.values()
  }

  get resets(): number {
    return this.#resets
  }

  isDiskLow(shard: number): boolean {
    return this.#options.isDiskLow(shard)
  }

  isServed(botId: number): boolean {
    return this.#options.isServed(botId)
  }

  /** Throws BOT_NOT_SERVED if `--filter` excludes a bot. */
  assertServed(botId: number): void {
    if (!this.isServed(botId)) throw new PostboteError('BOT_NOT_SERVED')
  }

  /**
   * Returns the shard of a bot, which belongs to this worker. Throws SHARD_BROKEN if the shard was set aside, and
   * STORE_UNAVAILABLE if it is not open yet.
   */
  shardOf(botId: number): Shard {
    return this.shardAt(this.#options.shardOf(botId))
  }

  /** Returns the shard with a number, which belongs to this worker. Throws as `shardOf`. */
  shardAt(index: number): Shard {
    const shard = this.#shards.get(index)
    if (shard !== undefined) return shard
    if (!this.#broken.has(index)) throw new PostboteError('STORE_UNAVAILABLE')
    throw new PostboteError('SHARD_BROKEN')
  }

  /** Whether the shard of a bot is open. */
  hasShardOf(botId: number): boolean {
    return this.#shards.has(this.#options.shardOf(botId))
  }

  /** Returns a bot that is in memory. */
  loaded(botId: number): Bot | undefined {
    return this.#bots.get(botId)
  }

  /** Returns a queue that is in memory. */
  loadedQueue(queue: QueueId): BotQueue | undefined {
    return this.#queues.get(queue)
  }

  /** Returns a registered bot, or undefined if there is none. A promise only if the bot must be read from disk. */
  find(botId: number): Bot | Promise<Bot | undefined> {
    const bot = this.#bots.get(botId)
    if (bot === undefined) return this.load([botId]).then(() => this.#bots.get(botId))
    bot.lastUsedMs = this.#options.clock.monotonicMs()
    return bot
  }

  /** Returns the username of a bot of this worker, in memory or not; undefined if it cannot be known now. Never rejects. */
  async usernameOf(botId: number): Promise<string | undefined> {
    const loaded = this.#bots.get(botId)
    if (loaded !== undefined) return loaded.record.username
    try {
      return (await this.shardOf(botId).readBot(botId)).bot?.username
    } catch {
      return undefined
    }
  }

  /**
   * Loads those of `botIds` that are registered and not in memory. If one cannot be read, it rejects after all others
   * have been loaded.
   */
  async load(botIds: readonly number[]): Promise<void> {
    const waits: Promise<unknown>[] = []
    const missing = new Map<number, number[]>()
    for (const botId of new Set(botIds)) {
      if (this.#bots.has(botId) || !isBotId(botId)) continue
      const loading = this.#loading.get(botId)
      if (loading !== undefined) {
        waits.push(loading)
        continue
      }
      const shard = this.#options.shardOf(botId)
      const list = missing.get(shard)
      if (list === undefined) missing.set(shard, [botId])
      else list.push(botId)
    }
    for (const [shard, ids] of missing) {
      for (let start = 0; start < ids.length; start += botLoadCountMax) {
        waits.push(this.#loadFrom(shard, ids.slice(start, start + botLoadCountMax)))
      }
    }
    for (const wait of await Promise.allSettled(waits)) {
      if (wait.status === 'rejected') throw wait.reason
    }
  }

  /** Called with every group of a shard when it is synced: its pushes become visible. */
  committed(operations: readonly Operation[]): void {
    const changed = new Set<BotQueue>()
    let nowMs: number | undefined
    for (const operation of operations) {
      if (operation.kind !== 'push') continue
      const queue = this.#queues.get(operation.queue)
      if (queue === undefined) continue
      // All are of one shard, whose queues have the same clock.
      nowMs ??= queue.clock.nowMs()
      queue.updates.committed(operation, nowMs)
      changed.add(queue)
    }
    for (const queue of changed) queue.announce()
  }

  /** Loads the bots of a shard that have a webhook, so that pending updates are delivered. */
  async startWebhooks(shard: Shard): Promise<void> {
    let after: QueueId = 0
    let failure: unknown
    const remember = (error: unknown): void => {
      failure ??= error
    }
    for (;;) {
      const page = await shard.list('w', { after, limit: webhooksStartedMax })
      const last = page.at(-1)
      if (last === undefined || this.#draining.has('all')) break
      after = last.queue
      const queues = page.filter(({ record }) => record.webhook !== undefined)
      // A bot that cannot be read must not stop the webhooks of the others.
      await this.load(queues.map(({ queue }) => botIdOf(queue))).catch(remember)
      for (const { queue } of queues) {
        if (isTestQueue(queue)) await this.#bots.get(botIdOf(queue))?.test().catch(remember)
      }
      await nextTurn(this.#options.clock)
    }
    if (failure !== undefined) throw failure
  }

  /** Returns the queue of an id, loaded, or undefined if its bot does not exist. */
  async findQueue(id: QueueId): Promise<BotQueue | undefined> {
    const bot = await this.find(botIdOf(id))
    return isTestQueue(id) ? bot?.test() : bot?.main
  }

  /**
   * Drops the bots of a shard that was read anew from disk, because their state in memory is outdated. The caller
   * starts the webhooks again.
   */
  async resetShard(shard: Shard): Promise<void> {
    this.#resets += 1
    await this.#dropBotsOf(shard)
  }

  /**
   * Starts no new deliveries, of one shard or of all; resolves when none is in flight, or after `deadlineMs`. Everything
   * else goes on.
   */
  async pauseDeliveries(deadlineMs: number, shard?: Shard): Promise<void> {
    this.#resting.add(shard ?? 'all')
    const queues = this.#queuesOf(shard)
    await Promise.all(queues.map(({ webhook }) => webhook.pauseDeliveries(deadlineMs)))
  }

  /** Ends the waiting polls, of one shard or of all, with an empty list, and the tails, and lets deliveries in flight finish. */
  async drain(deadlineMs: number, shard?: Shard): Promise<void> {
    this.#draining.add(shard ?? 'all')
    if (shard === undefined) this.#sweeper.cancel()
    const queues = this.#queuesOf(shard)
    for (const queue of queues) queue.drain()
    await Promise.all(queues.map((queue) => queue.webhook.drain(deadlineMs)))
  }

  /** All bots are dropped in this turn: if the shard accepts operations again, theirs would contain outdated ids. */
  async #dropBotsOf(shard: Shard): Promise<void> {
    const bots = [...this.#bots.values()].filter(({ main }) => main.shard === shard)
    for (const bot of bots) this.forget(bot)
    await Promise.all(bots.map((bot) => bot.close()))
  }

  #queuesOf(shard: Shard | undefined): readonly BotQueue[] {
    const queues = [...this.#queues.values()]
    return shard === undefined ? queues : queues.filter((queue) => queue.shard === shard)
  }

  #attach(queue: BotQueue): void {
    this.#queues.set(queue.id, queue)
    const { shard } = queue
    const isIn = (shards: ReadonlySet<Shard | 'all'>): boolean =>
      shards.has('all') || shards.has(shard)
    if (isIn(this.#draining)) queue.drain()
    else if (isIn(this.#resting)) void queue.webhook.pauseDeliveries(0)
    else queue.webhook.available()
  }

  async #loadFrom(shard: number, botIds: readonly number[]): Promise<void> {
    const loading = this.#adoptAll(shard, botIds)
    for (const botId of botIds) this.#loading.set(botId, loading)
    try {
      await loading
    } finally {
      for (const botId of botIds) this.#loading.delete(botId)
    }
  }

  async #adoptAll(index: number, botIds: readonly number[]): Promise<void> {
    const shard = this.shardAt(index)
    const stored = await shard.load(botIds)
    // It may have left this worker in the meantime.
    if (this.#shards.get(index) !== shard) throw new PostboteError('STORE_UNAVAILABLE')
    let isDamaged = false
    for (const [nth, botId] of botIds.entries()) {
      const found = stored[nth]
      if (found?.isDamaged) isDamaged = true
      // Without its ids and counts, a queue would start anew, and updates still stored in it would never be delivered.
      const isLost = found?.state === undefined && this.isDoubtful(botId)
      if (found?.bot !== undefined && !isLost && !this.#bots.has(botId)) {
        this.adopt(botId, shard, { ...found, bot: found.bot })
      }
    }
    if (isDamaged) throw new PostboteError('STORE_UNAVAILABLE')
    this.assertAbsent(botIds.filter((botId) => !this.#bots.has(botId)))
  }

  #homeOf(shard: Shard): BotHome {
    let home = this.#homes.get(shard)
    if (home === undefined) {
      const services = {
        ...this.#options.services,
        clock: shard.clock,
        findQueue: (id: QueueId) => this.findQueue(id),
      }
      home = { services, attach: (queue) => this.#attach(queue) }
      this.#homes.set(shard, home)
    }
    return home
  }

  /**
   * Puts a bot into memory.
   *
   * @param stored - what its shard has of it.
   */
  adopt(botId: number, shard: Shard, stored: StoredQueue & { readonly bot: BotRecord }): Bot {
    const bot = new Bot(botId, { home: this.#homeOf(shard), shard, stored })
    this.#bots.set(botId, bot)
    this.#options.services.counters.add('bots_loaded', 1)
    return bot
  }

  /** Drops a bot from memory. It is read anew when it is used again. */
  forget(bot: Bot): void {
    if (!this.#bots.delete(bot.botId)) return
    this.#options.services.counters.add('bots_loaded', -1)
    for (const test of [false, true]) {
      const id = queueIdOf(bot.botId, test)
      this.#queues.get(id)?.updates.detach()
      this.#queues.delete(id)
    }
  }

  /** Drops idle bots from memory. Each sweep checks some of the bots, in turn. */
  async #sweep(): Promise<void> {
    for (let left = botSweepCountMax; left > 0; left -= botSweepSliceMax) {
      if (this.#draining.has('all')) return
      if (!this.#sweepSlice()) return
      await nextTurn(this.#options.clock)
    }
  }

  /** Checks the next bots and returns whether there are more. */
  #sweepSlice(): boolean {
    const beforeMs = this.#options.clock.monotonicMs() - botIdleMs
    for (let left = botSweepSliceMax; left > 0; left--) {
      const { done, value: bot } = this.#sweepCursor.next()
      if (done === true) {
        this.#sweepCursor = this.#bots.values()
        return false
      }
      if (bot.lastUsedMs < beforeMs && bot.isQuiet) this.#unload(bot)
      else bot.releaseUnread()
    }
    return true
  }

  #unload(bot: Bot): void {
    const shard = this.shardOf(bot.botId)
    // The shard's data on disk is older than the bot's state in memory.
    if (shard.status !== 'serving') return
    this.forget(bot)
    for (const test of [false, true]) shard.forget(queueIdOf(bot.botId, test))
    // Only idle connections to its webhook are left to close.
    bot.close().catch(() => undefined)
  }
}
