/**
 * Answers questions about all bots of a worker: which ones are failing or stuck, and how many updates are pending. It has
 * an index of each open shard (fleet-index.ts), which is filled in the background and then follows every commit. What
 * only loaded bots know, such as the health of a webhook, it asks of them.
 *
 * A question waits a moment for shards that were just opened. A shard whose index is not filled by then is missing from
 * the result, which names the shards that it covers.
 */
import { every, nextTurn, sleep, type Timer } from '../../kit/clock.ts'
import { Mutex } from '../../kit/mutex.ts'
import { fleetHealthMetrics, type GaugeName } from '../../kit/metrics.ts'
import { botIdOf, isTestQueue, type QueueId } from '../../shard/records/record-keys.ts'
import type { Operation } from '../../shard/operations.ts'
import type { Shard } from '../../shard/shard.ts'
import type { BotRecord } from '../../shard/records/bot-record.ts'
import type { DeadLetterId, StoredRecord } from '../../shard/records/stored-records.ts'
import { type Polls } from '../../delivery/attempts/health.ts'
import { type Health, healthWords } from '../../kit/states.ts'
import { type FollowedQueue, troublesOf } from '../../bots/hooks.ts'
import type { BotCache } from '../../bots/bot-cache.ts'
import { foundPerReadMax } from '../../bots/bot-finder.ts'
import type { BotQueue } from '../../bots/bot-queue.ts'
import type { Config } from '../../config/config.ts'
import {
  addFleetCounts,
  type FleetCounts,
  noFleetCounts,
  older,
  type ShardSums,
} from './fleet-counts.ts'
import { FleetIndex, type FleetRow } from './fleet-index.ts'
import { countDeadLetters, readOldestOnDisk } from './read-oldest-on-disk.ts'
import {
  fleetOrder,
  type FleetQuery,
  type FleetStatus,
  hasPrefix,
  isInState,
  searchFor,
} from './fleet-status.ts'
import { PendingCurves } from './pending-curves.ts'
import { FallingBehind } from './falling-behind.ts'
import { FirstInOrder } from './first-in-order.ts'
import { FleetMemory } from './fleet-memory.ts'
import { type BotList, type FoundBot, namesOf, pageOfAll } from './listed-bots.ts'
import type { QueueTimes } from './queue-times.ts'
import { TroubleEvents } from './trouble-events.ts'
import {
  idle,
  ownHealth,
  reasonOf,
  type StatusFacts,
  type WebhookStatus,
  webhookStatus,
} from '../../delivery/webhook-report.ts'
import type { ModuleParts } from '../../worker/module.ts'

/** What a fleet needs of its worker. The gauges are metrics, which `counters` has. */
export type FleetParts = Pick<
  ModuleParts,
  'attempts' | 'clock' | 'counters' | 'log' | 'modules' | 'report'
> & {
  readonly bots: Pick<BotCache, 'loadedQueue' | 'shards'>
  readonly config: Pick<Config, 'foreignTokens'>
}

/** A shard with its index. */
interface Indexed {
  readonly shard: Shard
  readonly index: FleetIndex
  readonly stopping: AbortController
  /** When the shard was opened, monotonic. */
  readonly startedMs: number
  /** Bots whose tokens are refused. */
  readonly refused: number[]
  /** Resolves when the filling has ended, with or without success. */
  readonly filling: Promise<void>
  /** Ends the filling. */
  end(): void
}

/** A row, and what is in memory of its queue. */
interface Seen {
  readonly row: FleetRow
  readonly loaded: BotQueue | undefined
  readonly of: Indexed
}

type MaybeSeen = { readonly [key in keyof Seen]: Seen[key] | undefined }

/** A question about all bots waits this long for shards that were just opened; the index of 25,000 bots takes about a second. */
export const fleetFillWaitMs = 3_000
/** The gauges of all bots are computed this often: more often than Prometheus usually asks, and 30,000 bots take 10 ms. */
export const fleetGaugesPeriodMs = 5_000
/** A question about all bots looks at this many of them in one turn of the event loop, which takes 1 ms. */
const fleetRowsPerTurnMax = 2_000
/** A question costs so much time of the event loop for each bot that it looks at, and for each that it lists: measured. */
const fleetRowCostMs = 0.002
const listedBotCostMs = 0.03
/**
 * Before a question is answered, the oldest updates of this many queues are read, and the dead letters of as many
 * counted. Only queues that have changed since the last time need that. The values of further ones stay as they were.
 */
const fleetReadsMax = 500
/**
 * The gauges read the oldest updates of only this many queues of a shard from disk each time. After a start all are unknown,
 * and each is in a block of its own: with 10,000,000 updates of 300,000 bots, 500 at a time mapped 110 MB more within 40 s.
 */
export const fleetGaugeReadsMax = 100

/** The bots of the shards that a worker has open. */
export class Fleet {
  readonly #parts: FleetParts
  readonly #shards = new Map<Shard, Indexed>()
  readonly #reads = new Mutex()
  readonly #shown = new Map<GaugeName, number>()
  readonly #curves = new PendingCurves()
  readonly #behind = new FallingBehind()
  readonly #troubles: TroubleEvents
  readonly #memory: FleetMemory
  #timer: Timer | undefined
  #isClosed = false

  /** @param times - what is kept over a restart; absent if nothing is */
  constructor(parts: FleetParts, times?: Pick<QueueTimes, 'read' | 'write'>) {
    this.#parts = parts
    const { clock, report } = parts
    this.#troubles = new TroubleEvents(report)
    this.#memory = new FleetMemory({ clock, times, troubles: this.#troubles })
  }

  /** Call this when a shard was opened, and when it was read anew from disk. Its bots are found after that. */
  start(shard: Shard): void {
    this.forget(shard)
    if (this.#isClosed) return
    const { clock } = this.#parts
    this.#timer ??= every(clock, fleetGaugesPeriodMs, () => this.#showGauges())
    let end = skip
    const filling = new Promise<void>((resolve) => {
      end = resolve
    })
    const startedMs = clock.monotonicMs()
    const made = { index: new FleetIndex(), stopping: new AbortController(), refused: [] }
    this.#shards.set(shard, { shard, ...made, startedMs, filling, end })
  }

  /** The shard has left this worker. */
  forget(shard: Shard): void {
    const of = this.#shards.get(shard)
    const index = of?.index
    of?.stopping.abort()
    of?.end()
    this.#shards.delete(shard)
    const isOfShard = (queue: QueueId): boolean => index?.row(queue) !== undefined
    this.#curves.forget(isOfShard)
    this.#behind.forget(isOfShard)
    this.#troubles.forget(isOfShard)
  }

  /** Call this with every group that a shard has committed. */
  committed(shard: Shard, operations: readonly Operation[]): void {
    this.#shards.get(shard)?.index.committed(operations, (queue) => shard.stateOf(queue))
  }

  /** Answers nothing any more: another process has the shards. */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    for (const shard of this.#shards.keys()) this.forget(shard)
  }

  /** Returns the state of a bot; undefined if it has none or the index of its shard is not filled. */
  statusOf(shard: Shard, botId: number): FleetStatus | undefined {
    const of = this.#shards.get(shard)
    const row = of?.index.isFilled === true ? of.index.row(botId) : undefined
    if (of === undefined || row === undefined) return undefined
    return this.#inFull(this.#statusOf(row, of), row, of)
  }

  /** Returns what is known of a queue that is in memory. */
  followed(queue: BotQueue): FollowedQueue {
    const { id, clock } = queue
    const of = this.#shards.get(queue.shard)
    return {
      polls: this.#pollsOf({ row: of?.index.row(id), loaded: queue, of }),
      lateness: this.#behind.of(id),
      pending: this.#curves.of(id, clock.nowMs()),
    }
  }

  /** Returns what a look at all rows costs the event loop, in milliseconds, and a list of so many bots, whose records are read. */
  questionCostMs(listed: number): number {
    let rows = 0
    for (const { index } of this.#shards.values()) rows += index.size
    return rows * fleetRowCostMs + Math.min(rows, listed) * listedBotCostMs
  }

  /** Returns all bots in the order of their ids, as they are stored. */
  page(page: { readonly after: number; readonly limit: number }): Promise<BotList> {
    const { shards } = this.#parts.bots
    return pageOfAll(shards, page, (shard, botId) => this.statusOf(shard, botId))
  }

  /**
   * Returns the bots that a query selects, and the numbers of the shards that were searched.
   *
   * @param own - the only bots that it may select; default: all
   */
  async list(query: FleetQuery, own?: ReadonlySet<number>): Promise<BotList> {
    const searched = await this.#settled()
    const first = new FirstInOrder<FoundBot>(fleetOrder(query.sort), query.limit)
    const isFound = query.search === undefined ? undefined : searchFor(query.search)
    await this.#visit(searched, (row, of) => {
      const { queue } = row
      if (!row.isRegistered || queue <= query.after || own?.has(queue) === false) return
      if (query.prefix !== undefined && !hasPrefix(query.prefix, row)) return
      if (isFound?.(row) === false) return
      const status = this.#statusOf(row, of)
      if (query.state !== undefined && !isInState(status, query.state)) return
      first.offer({ botId: queue, shard: of.shard, status })
    })
    const { bots, shards } = await namesOf(
      first.items().map((bot) => ({ ...bot, status: this.#told(bot) })),
      searched.map(({ shard }) => shard),
    )
    return { bots: bots.toSorted(fleetOrder(query.sort)), shards }
  }

  /** Returns the bots with a username, in any case, of the shards whose index is filled. */
  async named(username: string): Promise<readonly number[]> {
    const lower = username.toLowerCase()
    const filled = [...this.#shards.values()].filter(({ index }) => index.isFilled)
    const found: number[] = []
    await this.#visit(filled, (row) => {
      if (row.isRegistered && row.hasName(lower)) found.push(row.queue)
    })
    return found
  }

  /** Returns the sums over all bots of each shard. */
  async summary(): Promise<readonly ShardSums[]> {
    return this.#count(await this.#settled())
  }

  /** Call this with the bots of a shard, in pages. Commits must reach the index from before the first one is read. */
  found(shard: Shard, bots: readonly StoredRecord<'b'>[]): void {
    const of = this.#shards.get(shard)
    if (of === undefined) return
    of.index.fill('b', bots)
    for (const { queue, record } of bots) {
      if (this.#refuses(record)) of.refused.push(queue)
    }
  }

  /** Call this when all bots of a shard were found. Reads what else the index is filled with. */
  async foundAll(shard: Shard): Promise<void> {
    const of = this.#shards.get(shard)
    if (of === undefined) return
    const { index, refused, stopping } = of
    await this.#readQueues(of)
    await this.#readDeadLetters(of)
    await this.#memory.recall(of, stopping.signal)
    if (stopping.signal.aborted) return
    index.filled()
    of.end()
    this.#warnOfRefused(shard, refused)
  }

  /** The shard cannot be read now, so its bots are found again. An incomplete index is replaced. */
  unfound(shard: Shard): void {
    this.start(shard)
    this.#shards.get(shard)?.end()
  }

  async #readQueues({ shard, index, stopping: { signal } }: Indexed): Promise<void> {
    const { clock, attempts } = this.#parts
    for (const kind of ['w', 's'] as const) {
      for (let after = 0; ; ) {
        const records = await shard.lists.records(kind, { after, limit: foundPerReadMax })
        const last = records.at(-1)
        if (signal.aborted) return
        if (last === undefined) break
        index.fill(kind, records)
        // The bots with a webhook are loaded one after the other, and until then nobody else knows that some of them fail.
        for (const { queue, record } of records) {
          const webhook = 'webhook' in record ? record.webhook : undefined
          attempts.restore(queue, { failures: webhook?.failures }, shard.clock.nowMs())
        }
        after = last.queue
        await nextTurn(clock)
      }
    }
  }

  async #readDeadLetters({ shard, index, stopping: { signal } }: Indexed): Promise<void> {
    const limit = foundPerReadMax
    for (let after: DeadLetterId | undefined; !signal.aborted; ) {
      const page = await shard.lists.deadLetters({ after, limit })
      if (signal.aborted) return
      index.fillDeadLetters(page)
      if (page.length < limit) return
      after = page.at(-1)
      await nextTurn(this.#parts.clock)
    }
  }

  #refuses({ secrets }: BotRecord): boolean {
    return secrets[0]?.isForeign === true && !this.#parts.config.foreignTokens
  }

  /** A bot whose token is refused looks like a bot that is turned off. */
  #warnOfRefused({ index }: Shard, refused: readonly number[]): void {
    if (refused.length === 0) return
    this.#parts.log.warn(
      { shard: index, bots: refused.length, first: `bot${refused[0]}` },
      'bots with tokens that another server has made get 401, because --foreign-tokens is not set',
    )
  }

  /** Returns the shards whose index is filled, soon, with what is due in it read. */
  async #settled(): Promise<readonly Indexed[]> {
    const isWaiting = [...this.#shards.values()].filter(({ index }) => !index.isFilled)
    if (isWaiting.length > 0) {
      const over = new AbortController()
      const filled = Promise.all(isWaiting.map(({ filling }) => filling))
      await Promise.race([filled, sleep(this.#parts.clock, fleetFillWaitMs, over.signal)])
      over.abort()
    }
    return this.#readDue(fleetReadsMax)
  }

  /**
   * Reads what has changed and is not known: of each shard, the oldest updates of at most `diskReadsMax` queues from disk.
   * Questions that arrive in the meantime wait, and find nothing left to read.
   */
  #readDue(diskReadsMax: number): Promise<readonly Indexed[]> {
    return this.#reads.run(async () => {
      const filled = [...this.#shards.values()].filter(({ index }) => index.isFilled)
      for (const indexed of filled) {
        const { index } = indexed
        await this.#readOldest(indexed, diskReadsMax)
        for (const queue of index.takeDueDeadLetters(fleetReadsMax)) {
          await countDeadLetters(indexed, queue)
        }
      }
      return filled.filter(({ shard, index }) => this.#shards.get(shard)?.index === index)
    })
  }

  async #readOldest({ shard, index }: Indexed, diskReadsMax: number): Promise<void> {
    let left = diskReadsMax
    for (const due of index.takeDueOldest(fleetReadsMax)) {
      const { queue } = due
      const loaded = this.#parts.bots.loadedQueue(queue)?.updates.loadedOldest
      if (loaded !== undefined) index.oldestIs(queue, loaded)
      else if (left-- > 0) await readOldestOnDisk({ shard, index }, due)
      else index.oldestUnread(queue)
    }
  }

  #statusOf(row: FleetRow, of: Indexed): FleetStatus {
    const { clock, bots } = this.#parts
    const loaded = bots.loadedQueue(row.queue)
    const { health, nextAttemptMs } = this.#healthOf({ row, loaded, of })
    const polls = this.#pollsOf({ row, loaded, of })
    const takenMs = loaded?.updates.lastTakenMs ?? Number.NEGATIVE_INFINITY
    return {
      mode: row.hasWebhook ? 'webhook' : 'polling',
      pendingCount: loaded?.updates.pendingCount ?? row.pendingCount,
      oldestAgeS: ageOf(row, loaded, of.shard.clock.nowMs()),
      isPaused: row.isPaused,
      health,
      nextAttemptMs,
      isPollWaiting: loaded?.poller.isWaiting ?? false,
      polledBeforeMs: polls.lastBeforeMs,
      isFought: isFought(row, polls),
      deadLetters: row.deadLetters,
      // JSON has no infinity.
      takenBeforeMs: Number.isFinite(takenMs) ? clock.monotonicMs() - takenMs : undefined,
    }
  }

  /** Only a bot that a list has gets its texts: to make them for every bot that is looked at would be dear. */
  #told({ shard, botId, status }: FoundBot): FleetStatus {
    return this.statusOf(shard, botId) ?? status
  }

  #inFull(status: FleetStatus, row: FleetRow, of: Indexed): FleetStatus {
    const { health, oldestAgeS, isFought: hasFight } = status
    const named = { ...status, webhookHost: row.webhookHost }
    const isFine = health === undefined || health === 'healthy' || health === 'paused'
    if (isFine && hasFight !== true) return named
    const loaded = this.#parts.bots.loadedQueue(row.queue)
    return { ...named, healthReason: this.#reasonOf({ row, loaded, of }, oldestAgeS) }
  }

  /** The sentence names what waits for a retry, which the word does not need. */
  #reasonOf(seen: Seen, oldestAgeS: number | undefined): string {
    const waiting = seen.loaded?.webhook.waitingInFull() ?? idle
    return reasonOf({ ...this.#factsOf(seen), waiting }, oldestAgeS)
  }

  #healthOf(seen: Seen): WebhookStatus {
    return webhookStatus(this.#factsOf(seen))
  }

  #factsOf(seen: Seen): StatusFacts {
    const { row, loaded, of } = seen
    const { queue, hasWebhook, isPaused } = row
    return {
      hasWebhook,
      isPaused,
      pendingCount: loaded?.updates.pendingCount ?? row.pendingCount,
      log: this.#parts.attempts.find(queue),
      waiting: loaded?.webhook.waiting() ?? idle,
      polls: this.#pollsOf(seen),
      troubles: troublesOf(this.#parts.modules, of.shard, queue),
      lateness: this.#behind.of(queue),
      nowMs: of.shard.clock.nowMs(),
    }
  }

  /**
   * A poller that leaves memory forgets its last call, so the row keeps it: the gauges see every poller long before it leaves.
   */
  #pollsOf({ row, loaded, of }: MaybeSeen): Polls {
    const nowMs = this.#parts.clock.monotonicMs()
    return {
      ...(loaded?.poller.polls ?? { isWaiting: false }),
      lastBeforeMs: this.#polledBeforeMs({ row, loaded, of }),
      knownForMs: nowMs - (of?.startedMs ?? nowMs),
    }
  }

  #polledBeforeMs({ row, loaded, of }: MaybeSeen): number | undefined {
    const wallMs = of?.shard.clock.nowMs() ?? 0
    const loadedMs = loaded?.poller.lastPollMs
    if (loadedMs !== undefined) {
      const beforeMs = this.#parts.clock.monotonicMs() - loadedMs
      if (row !== undefined) row.polledAtS = Math.floor((wallMs - beforeMs) / 1_000)
      return beforeMs
    }
    const atS = row?.polledAtS
    // A clock that was set back would hide for as long that nobody polls.
    return atS === undefined || atS * 1_000 > wallMs ? undefined : wallMs - atS * 1_000
  }

  /** Calls `visit` with every row. It yields to other work now and then. */
  async #visit(
    indexed: readonly Indexed[],
    visit: (row: FleetRow, of: Indexed) => void,
  ): Promise<void> {
    let left = fleetRowsPerTurnMax
    for (const each of indexed) {
      for (const row of each.index.rows) {
        visit(row, each)
        left -= 1
        if (left > 0) continue
        await nextTurn(this.#parts.clock)
        left = fleetRowsPerTurnMax
      }
    }
  }

  async #count(indexed: readonly Indexed[]): Promise<readonly ShardSums[]> {
    const all = new Map(indexed.map((each) => [each, noSums()]))
    await this.#visit(indexed, (row, of) => {
      const sums = all.get(of)
      if (sums === undefined) return
      this.#add(sums, {
        row,
        loaded: this.#parts.bots.loadedQueue(row.queue),
        of,
      })
    })
    return Array.from(all, ([{ shard }, counts]) => ({ shard: shard.index, counts }))
  }

  #add(sums: Sums, seen: Seen): void {
    const { row, loaded, of } = seen
    const { queue } = row
    sums.pending += loaded?.updates.pendingCount ?? row.pendingCount
    sums.pendingBytes += loaded?.updates.pendingBytes ?? row.pendingBytes
    sums.deadLetters += row.deadLetters
    const ageS = ageOf(row, loaded, of.shard.clock.nowMs())
    if (ageS !== undefined) {
      const place = { botId: botIdOf(queue), isTest: isTestQueue(queue), ageS }
      sums.oldest = older(sums.oldest, place)
    }
    if (!row.isRegistered) return
    sums[row.hasWebhook ? 'webhook' : 'polling'] += 1
    if (row.isPaused) sums.paused += 1
    if (loaded !== undefined && isFought(row, loaded.poller.polls)) sums.fought += 1
    const health = this.#watchHealth(seen, ageS)
    if (health !== undefined) sums.health[health] += 1
  }

  /** Returns the health of a bot, after what follows it was told. */
  #watchHealth(seen: Seen, ageS: number | undefined): Health | undefined {
    const { queue } = seen.row
    const facts = this.#factsOf(seen)
    const { health } = webhookStatus(facts)
    if (ageS !== undefined || !this.#behind.isEmpty) {
      // A bot that nobody polls, or that is paused, is behind only if it still is when it takes updates again.
      const isAway = health === 'unpolled' || health === 'paused'
      const agedS = isAway ? undefined : ageS
      this.#behind.note(queue, agedS, this.#parts.clock.monotonicMs())
    }
    this.#noteCurve(seen, health)
    const isFine = health === undefined || health === 'healthy'
    if (!isFine || this.#troubles.has(queue)) this.#noteTrouble(seen, facts)
    return health
  }

  #noteTrouble(seen: Seen, facts: StatusFacts): void {
    const { row, loaded, of } = seen
    const nowMs = of.shard.clock.nowMs()
    this.#troubles.note({
      botId: row.queue,
      hasWebhook: row.hasWebhook,
      health: ownHealth(facts),
      polls: facts.polls,
      reason: () => this.#reasonOf(seen, ageOf(row, loaded, nowMs)),
      nowMs: this.#parts.clock.monotonicMs(),
      timeMs: nowMs,
    })
  }

  #noteCurve({ row, loaded, of }: Seen, health: Health | undefined): void {
    const isTroubled = health !== undefined && health !== 'healthy' && health !== 'paused'
    if (!isTroubled && this.#curves.size === 0) return
    const { queue } = row
    const pendingCount = loaded?.updates.pendingCount ?? row.pendingCount
    this.#curves.note({ queue, pendingCount, isTroubled, nowMs: of.shard.clock.nowMs() })
  }

  async #showGauges(): Promise<void> {
    const shards = await this.#count(await this.#readDue(fleetGaugeReadsMax))
    const counts = shards.map((each) => each.counts).reduce(addFleetCounts, noFleetCounts)
    const nowMs = this.#parts.clock.monotonicMs()
    this.#behind.sweep(nowMs)
    this.#troubles.sweep(nowMs)
    await this.#memory.keep([...this.#shards.values()])
    this.#show('updates_pending', counts.pending)
    this.#show('dead_letters_kept', counts.deadLetters)
    this.#show('updates_oldest_age_seconds', counts.oldest?.ageS ?? 0)
    let none = counts.polling + counts.webhook
    for (const health of healthWords) {
      this.#show(fleetHealthMetrics[health], counts.health[health])
      none -= counts.health[health]
    }
    this.#show(fleetHealthMetrics.none, none)
  }

  #show(name: GaugeName, value: number): void {
    // The gauges of a process that has given up its shards are cleared.
    if (this.#isClosed) return
    this.#parts.counters.add(name, value - (this.#shown.get(name) ?? 0))
    this.#shown.set(name, value)
  }
}

const skip = (): void => undefined

type Mutable<T> = { -readonly [key in keyof T]: T[key] }
type Sums = Mutable<Omit<FleetCounts, 'health'>> & {
  readonly health: Mutable<FleetCounts['health']>
}

function noSums(): Sums {
  return { ...noFleetCounts, health: { ...noFleetCounts.health } }
}

/** Whether two programs poll, also before that degrades the health: an operator who looks is told at once. */
function isFought({ hasWebhook }: FleetRow, { fight }: Pick<Polls, 'fight'>): boolean {
  return !hasWebhook && fight !== undefined
}

/** The age of the oldest pending update of a queue in seconds; undefined if none is pending. */
function ageOf(row: FleetRow, loaded: BotQueue | undefined, nowMs: number): number | undefined {
  const pendingCount = loaded?.updates.pendingCount ?? row.pendingCount
  if (pendingCount === 0 || row.oldestAtS === undefined) return undefined
  return Math.max(0, Math.floor(nowMs / 1_000) - row.oldestAtS)
}
