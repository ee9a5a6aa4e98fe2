/**
 * The relays of the shards of a worker. They are found among the bots that are read when a shard is opened (bot-finder.ts), run
 * until the shard leaves, and stop alone when their bot has none any more.
 */
import { PostboteError } from '../../kit/errors.ts'
import type { RefusedUpdates } from './refused-updates.ts'
import type { RelayServices } from './origin.ts'
import { typesOf } from '../../kit/update-types.ts'
import type { StoredRecord } from '../../shard/records/stored-records.ts'
import type { BotRecord, StoredRelay } from '../../shard/records/bot-record.ts'
import type { Shard } from '../../shard/shard.ts'
import { botIdOf, isTestQueue, type QueueId } from '../../shard/records/record-keys.ts'
import type { Bot } from '../../bots/bot.ts'
import type { BotQueue } from '../../bots/bot-queue.ts'
import type { BotRegistry } from '../../bots/registry.ts'
import { pollOffset } from './relay-batch.ts'
import { RelayJob, type RelayJobServices } from './relay-job.ts'
import type { ResultOf } from '../../api/operation.ts'
import { type Token, tokenText } from '../../api/token.ts'
import { fieldValues } from '../../private-api/field-values.ts'
import type { relayOperations } from './relay-operations.ts'

/** What a relay is set to. */
export interface RelayOrder {
  /** An origin. */
  readonly from: string
  /** Absent if the stored one stays. */
  readonly token: Token | undefined
}

/** A relay as calls show it. */
type ShownRelay = Omit<ResultOf<typeof relayOperations.getRelay>, 'bot_id'>

export interface RelayJobsOptions
  extends Omit<RelayJobServices, 'assertAccepting' | 'find' | 'refused' | 'relays'> {
  readonly refused: Pick<RefusedUpdates, 'forget' | 'keep' | 'moved'>
  /** Undefined without `--relay-from`. */
  readonly relays: RelayServices | undefined
  readonly registry: Pick<BotRegistry, 'assertAccepting' | 'bots' | 'changeRecord' | 'existing'>
}

/** A call that ends a relay waits for its last poll this long. Chosen: an origin that can be reached answers much sooner. */
const relayLastPollMsMax = 5_000

export class RelayJobs {
  readonly #options: RelayJobsOptions
  readonly #services: RelayJobServices
  readonly #shards = new Map<Shard, Map<number, RelayJob>>()
  #isClosed = false

  constructor(options: RelayJobsOptions) {
    this.#options = options
    const { registry, relays = noOrigins } = options
    this.#services = {
      ...options,
      relays,
      find: (botId) => registry.bots.find(botId),
      assertAccepting(bot) {
        if (registry.bots.loaded(bot.botId) !== bot) throw new PostboteError('STORE_UNAVAILABLE')
        registry.assertAccepting(bot.main)
      },
    }
  }

  /** Call this when a shard was opened, and when it was read anew from disk. Its relays are found after that. */
  start(shard: Shard): void {
    void this.forget(shard)
    if (!this.#isClosed) this.#shards.set(shard, new Map())
  }

  /** Call this with the records of the bots of a shard, and with a record that has changed. */
  found(shard: Shard, records: readonly StoredRecord<'b'>[]): void {
    for (const { queue, record } of records) {
      if (record.relay !== undefined) this.#run(shard, queue)
    }
  }

  /** The shard has left this worker, or its state in memory is void. Resolves when nothing of its relays is in progress. */
  async forget(shard: Shard): Promise<void> {
    const jobs = this.#shards.get(shard)
    this.#shards.delete(shard)
    await Promise.all(Array.from(jobs?.values() ?? [], (job) => job.stop()))
    await this.#options.refused.moved(shard.index)
  }

  /** Ends all polls. The next process goes on. */
  close(): void {
    this.#isClosed = true
    for (const shard of this.#shards.keys()) void this.forget(shard)
  }

  /**
   * Sets the relay of a bot. It goes on where the one before was, if it is of the same bot at the same origin.
   *
   * @throws BAD_REQUEST if the origin is not listed, or the token is missing
   */
  async set(botId: number, order: RelayOrder): Promise<ShownRelay> {
    const { main } = await this.#options.registry.existing(botId)
    const bot = await this.#change(botId, (record) =>
      this.#withRelay(record, order, main.clock.nowMs()),
    )
    return this.#existingReport(bot)
  }

  /** Returns the relay of a bot. Throws NO_RELAY. */
  async get(botId: number): Promise<ShownRelay> {
    return this.#existingReport(await this.#options.registry.existing(botId))
  }

  /** Removes the relay of a bot. Throws NO_RELAY. */
  async remove(botId: number): Promise<void> {
    await this.#change(botId, ({ relay, ...record }) => {
      if (relay === undefined) throw new PostboteError('NO_RELAY')
      return record
    })
  }

  /**
   * Ends the relay of a bot that is about to be removed, and deletes what was kept of its updates. Resolves when nothing of
   * it is in progress.
   */
  async endOver(bot: Bot): Promise<void> {
    await this.#stop(bot)
    await this.forgetRefused(bot)
  }

  /** Deletes what was kept of updates of a bot that its relay could not store. */
  async forgetRefused({ botId, main }: Bot): Promise<void> {
    await this.#options.refused.forget({ botId, shard: main.shard.index })
  }

  /** Changes the record on disk. The relay is then polled at once, and as it is now. */
  async #change(botId: number, change: (current: BotRecord) => BotRecord): Promise<Bot> {
    const { before } = await this.#options.registry.changeRecord(botId, (current) => ({
      record: change(current),
      before: current.relay,
    }))
    const bot = await this.#options.registry.existing(botId)
    const { main, record } = bot
    await this.#stop(bot)
    // Where the relay does not go on, the origin is told of the last answer that was stored.
    if (before?.offset !== record.relay?.offset) await this.#confirm(bot, before)
    if (record.relay !== undefined) this.#run(main.shard, botId)
    return bot
  }

  #withRelay(record: BotRecord, { from, token }: RelayOrder, nowMs: number): BotRecord {
    const { relays } = this.#options
    if (relays?.originOf(from) === undefined) {
      throw badRequest('from: expected an origin that --relay-from lists')
    }
    const { relay: before } = record
    const isSameOrigin = before?.from === from
    if (token === undefined) {
      if (!isSameOrigin) {
        throw badRequest('token: expected the token at the origin, which is needed for a new one')
      }
      return record
    }
    const relay: StoredRelay = {
      from,
      originBotId: token.botId,
      sealedToken: relays.sealToken(tokenText(token)),
      setAtMs: nowMs,
    }
    const goesOn = isSameOrigin && before.originBotId === token.botId
    if (!goesOn || before.offset === undefined) return { ...record, relay }
    const { offset, storedAtMs } = before
    return {
      ...record,
      relay: { ...relay, offset, ...(storedAtMs === undefined ? {} : { storedAtMs }) },
    }
  }

  /**
   * Confirms at the origin what is stored here, which the next program that polls there would otherwise get again. Never
   * rejects, because the origin may be gone.
   */
  async #confirm({ main }: Bot, relay: StoredRelay | undefined): Promise<void> {
    const { clock, relays } = this.#options
    const offset = relay && pollOffset(relay, main.clock.nowMs())
    const token = relay && relays?.openToken(relay.sealedToken)
    if (relay === undefined || offset === undefined || token === undefined) return
    const late = new AbortController()
    const timer = clock.after(relayLastPollMsMax, () => late.abort())
    const poll = { token, offset, types: typesOf(main.allowedTypes), limit: 1, waitS: 0 }
    await relays
      ?.originOf(relay.from)
      ?.poll(poll, () => Promise.resolve(), late.signal)
      .catch(() => undefined)
    timer.cancel()
  }

  /** Call this when a queue wants other types. */
  typesChanged({ id, shard }: Pick<BotQueue, 'id' | 'shard'>): void {
    this.#jobOf(shard, id)?.askAnew()
  }

  async #stop({ botId, main }: Bot): Promise<void> {
    await this.#jobOf(main.shard, botId)?.stop()
  }

  /** Returns the relay of a bot; undefined if it has none. */
  report({ botId, main, record }: Bot): ShownRelay | undefined {
    const { relay } = record
    if (relay === undefined) return undefined
    const now = this.#jobOf(main.shard, botId)?.state ?? beforeItBegins
    return {
      from: relay.from,
      state: now.state,
      reason: now.reason ?? null,
      since: fieldValues.timeOrNull(now.sinceMs),
      next_poll: fieldValues.timeOrNull(now.nextPollMs),
      last_update: fieldValues.timeOrNull(relay.storedAtMs),
      relayed: now.relayed,
      refused: now.refused,
    }
  }

  /** Returns why the relay of a queue is paused; undefined if it is not, or if there is none. */
  pauseOf(shard: Shard, queue: QueueId): string | undefined {
    return this.#jobOf(shard, queue)?.state.reason
  }

  #existingReport(bot: Bot): ShownRelay {
    const report = this.report(bot)
    if (report === undefined) throw new PostboteError('NO_RELAY')
    return report
  }

  /** Returns the job of a queue. The /test/ queue has none. */
  #jobOf(shard: Shard, queue: QueueId): RelayJob | undefined {
    return isTestQueue(queue) ? undefined : this.#shards.get(shard)?.get(botIdOf(queue))
  }

  #run(shard: Shard, botId: number): void {
    const jobs = this.#shards.get(shard)
    if (jobs === undefined || jobs.has(botId)) return
    const job = new RelayJob(this.#services, shard, botId, () => jobs.delete(botId))
    jobs.set(botId, job)
    void job.run()
  }
}

/** Without `--relay-from`, a relay that was set before says why it is paused. */
const noOrigins: Omit<RelayServices, 'sealToken'> = {
  originOf: () => undefined,
  openToken: () => undefined,
}
const beforeItBegins = {
  state: 'paused',
  reason: 'The shard of the bot was just opened: the relay begins soon',
  sinceMs: undefined,
  nextPollMs: undefined,
  relayed: 0,
  refused: 0,
} as const

function badRequest(detail: string): PostboteError {
  return new PostboteError('BAD_REQUEST', { detail })
}
