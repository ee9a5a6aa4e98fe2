/**
 * The replays of the shards of a worker: it reads those that have not ended when a shard is opened, and runs them until the shard
 * leaves. What has ended is on disk alone, for a week.
 *
 *   start(shard)   --reads--> jobs that run
 *   begin          --counts, stores--> one more
 *   forget(shard)  the next owner goes on
 *   one, oneDead, allDead  at once: the caller waits for what is pushed, and no job is stored
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { Mutex } from '../../kit/mutex.ts'
import { Semaphore } from '../../kit/semaphore.ts'
import { jobIdMax } from '../../kit/limits.ts'
import type { LookBack, UpdateFilter } from '../../queue/kept/look-back.ts'
import type { LookPayer } from '../../queue/kept/look-payer.ts'
import { hash128 } from '../../shard/idempotency/key-hashes.ts'
import type { OperationOf } from '../../shard/operations.ts'
import {
  isActive,
  type ReplayRecord,
  type ReplaySelection,
} from '../../shard/records/replay-record.ts'
import type { Shard } from '../../shard/shard.ts'
import type { StoredReplay } from '../../shard/records/stored-records.ts'
import type { BotQueue } from '../../bots/bot-queue.ts'
import { filterOf, ReplayJob, type ReplayJobServices, replayRetryMs } from './replay-job.ts'
import {
  replayAtOnce,
  replayOne,
  replayOneDead,
  type ReplayResult,
  type ReplayTarget,
} from './replay-slice.ts'

export type ReplayJobsOptions = Omit<ReplayJobServices, 'turn'>

/** What a job is asked for. */
export interface ReplayOrder {
  readonly selection: Omit<ReplaySelection, 'untilS'> & { readonly untilS?: number | undefined }
  /** Pushes per second. */
  readonly rate: number
  readonly idempotencyKey?: string | undefined
}

/** How many updates match. */
export interface ReplayCount {
  readonly count: number
  readonly bytes: number
  /** False if there were too many to be counted in time. */
  readonly isComplete: boolean
}

/** A job, and whether an earlier call with the same key has started it. */
export interface StartedReplay extends StoredReplay {
  readonly isDuplicate: boolean
}

interface ShardReplays {
  readonly jobs: Set<ReplayJob>
  readonly stopping: AbortController
  /** New jobs, and removals of bots: one after the other, so that a key starts one job. */
  readonly changes: Mutex
  /** Resolves when the stored jobs are known, or could not be read; then they are read later. */
  reading: Promise<void>
  /** Whether they are known. No job begins before: a read that comes later could run it once more. */
  isRead: boolean
}

/** So many jobs of a queue run at once. Chosen: more than a person watches. */
export const replaysRunningMax = 5
/** So many jobs of a queue are stored, with those that have ended. Chosen: a page; each takes some 400 bytes. */
export const replaysKeptMax = 20
/** A job that has ended is listed for this long, as dead letters are. */
export const replayLifeMs = 7 * 86_400_000
/** So many slices of all jobs are pushed at the same time, because each has up to 8 MiB in memory. */
const replayTurnsMax = 2
/** A dry run counts for this long. Chosen: two million updates, or 100,000 for a link or a key over its budget, before clients give up. */
const dryRunMs = 10_000
/** The call that starts a job counts for this long. Chosen: 200,000 updates, or 25,000 for a link or a key. */
const startCountMs = 1_000
/** A dry run that comes while another one of its bot counts is to be tried again after this: most take less. */
const dryRunRetryAfterS = 1
/** One look of a count returns this many updates. */
const countedPerLook = 1_000

export class ReplayJobs {
  readonly #options: ReplayJobsOptions
  readonly #services: ReplayJobServices
  readonly #shards = new Map<Shard, ShardReplays>()
  /** The bots with a dry run. */
  readonly #dryRuns = new Set<number>()
  #isClosed = false

  constructor(options: ReplayJobsOptions) {
    this.#options = options
    const turns = new Semaphore(replayTurnsMax)
    const turn = (): Promise<() => void> =>
      new Promise((resolve) => {
        const leave = turns.enter(() => resolve(() => leave()))
      })
    this.#services = { ...options, turn }
  }

  /** Call this when a shard was opened, and when it was read anew from disk. */
  start(shard: Shard): void {
    const stopped = this.forget(shard)
    if (this.#isClosed) return
    const of: ShardReplays = {
      jobs: new Set(),
      stopping: new AbortController(),
      changes: new Mutex(),
      reading: stopped,
      isRead: false,
    }
    of.reading = stopped.then(() => this.#read(shard, of))
    this.#shards.set(shard, of)
  }

  /** The shard has left this worker, or its state in memory is void. Resolves when nothing of its jobs is in progress. */
  async forget(shard: Shard): Promise<void> {
    const of = this.#shards.get(shard)
    this.#shards.delete(shard)
    of?.stopping.abort()
    await Promise.all(Array.from(of?.jobs ?? [], (job) => job.stop()))
  }

  /** Ends all work: the next process goes on. */
  close(): void {
    this.#isClosed = true
    for (const shard of this.#shards.keys()) void this.forget(shard)
  }

  /**
   * Counts what a job would replay: for one caller of a bot at a time.
   *
   * @throws TOO_MANY_REQUESTS, STORE_UNAVAILABLE
   */
  async count(
    queue: BotQueue,
    { selection }: Pick<ReplayOrder, 'selection'>,
    payer?: LookPayer,
  ): Promise<ReplayCount> {
    const { clock } = queue.shard
    const { updates, bot } = queue
    if (this.#dryRuns.has(bot.botId)) {
      throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: dryRunRetryAfterS })
    }
    this.#dryRuns.add(bot.botId)
    try {
      return await this.#count(updates.lookBack, {
        filter: filterOf(resolved(selection, clock), clock.nowMs()),
        before: updates.nextId,
        forMs: dryRunMs,
        payer,
      })
    } finally {
      this.#dryRuns.delete(bot.botId)
    }
  }

  /**
   * Starts a job. It is durable then.
   *
   * @throws IDEMPOTENCY_MISMATCH, TOO_MANY_REPLAYS, TOO_MANY_REQUESTS, UNKNOWN_BOT, STORE_UNAVAILABLE, OUTCOME_UNKNOWN
   */
  async begin(queue: BotQueue, order: ReplayOrder, payer?: LookPayer): Promise<StartedReplay> {
    this.#options.assertAccepting(queue)
    const { clock } = queue.shard
    const startedAtMs = clock.nowMs()
    const end = queue.updates.nextId
    const of = this.#shards.get(queue.shard)
    if (of === undefined) throw new PostboteError('STORE_UNAVAILABLE')
    const selection = resolved(order.selection, clock)
    const earlier = startedBefore(await this.#all(queue), order)
    if (earlier !== undefined) return earlier
    const filter = filterOf(selection, startedAtMs)
    const { lookBack } = queue.updates
    const counted = await this.#count(lookBack, { filter, before: end, forMs: startCountMs, payer })
    const record: ReplayRecord = {
      selection,
      rate: order.rate,
      startedAtMs,
      end,
      ...(counted.isComplete ? { total: counted.count } : {}),
      ...idempotencyOf(order),
      state: 'running',
      next: 1,
      replayed: 0,
      filtered: 0,
      tooLarge: 0,
    }
    return of.changes.run(() => this.#begin(queue, of, { order, record }))
  }

  /** Returns the jobs of a queue, the newest first. */
  async list(queue: BotQueue): Promise<readonly StoredReplay[]> {
    const nowMs = queue.shard.clock.nowMs()
    const all = await this.#all(queue)
    return all.filter(({ record }) => !isOld(record, nowMs)).toReversed()
  }

  /**
   * Ends a job durably. One that has ended stays as it is.
   *
   * @returns undefined if there is none
   * @throws STORE_UNAVAILABLE, OUTCOME_UNKNOWN
   */
  async cancel(queue: BotQueue, jobId: number): Promise<StoredReplay | undefined> {
    await this.#shards.get(queue.shard)?.reading
    const job = this.#jobsOf(queue).find(({ stored }) => stored.jobId === jobId)
    if (job !== undefined) return job.cancel()
    const stored = (await this.list(queue)).find((each) => each.jobId === jobId)
    if (stored !== undefined && isActive(stored.record)) {
      throw new PostboteError('STORE_UNAVAILABLE')
    }
    return stored
  }

  /** As `replayOne`. */
  one(queue: BotQueue, updateId: number): Promise<number | 'filtered'> {
    return replayOne(this.#target(queue), updateId)
  }

  /** As `replayOneDead`. */
  oneDead(queue: BotQueue, updateId: number): Promise<number> {
    return replayOneDead(this.#target(queue), updateId)
  }

  /**
   * Replays the dead letters that match at once, oldest first, up to the first that is refused.
   *
   * @throws the refusal of the first, if none was replayed
   */
  async allDead(queue: BotQueue, filter: UpdateFilter, payer?: LookPayer): Promise<ReplayResult> {
    const ids = await queue.updates.deadLetters.ids()
    // A replayed update may become a dead letter again, with a higher id than these.
    const end = (ids.at(-1) ?? 0) + 1
    const range = { filter: { ...filter, state: 'dead' }, from: ids[0] ?? end, end } as const
    const result = await replayAtOnce({ ...this.#target(queue), payer }, range)
    const { stopped } = result
    if (stopped === undefined) return result
    const updateId = ids.find((id) => id >= stopped.updateId) ?? stopped.updateId
    return { ...result, stopped: { ...stopped, updateId } }
  }

  /** Ends the jobs of a queue whose bot is being removed. Returns what removes them from disk. */
  removalOf(queue: BotQueue): Promise<readonly OperationOf<'replay'>[]> {
    const of = this.#shards.get(queue.shard)
    return (of?.changes ?? new Mutex()).run(async () => {
      await of?.reading
      await Promise.all(this.#jobsOf(queue).map((job) => job.stop()))
      return (await queue.shard.lists.replaysOf(queue.id)).map((stored) => removalOf(stored))
    })
  }

  #target(queue: BotQueue): ReplayTarget {
    const { assertAccepting, counters } = this.#options
    return { queue, counters, assertAccepting: () => assertAccepting(queue) }
  }

  async #read(shard: Shard, of: ShardReplays): Promise<void> {
    const { signal } = of.stopping
    if (signal.aborted) return
    try {
      for (const stored of await shard.lists.activeReplays()) this.#run(shard, of, stored)
      of.isRead = true
    } catch {
      // The shard reports that it cannot be read.
      void sleep(this.#options.clock, replayRetryMs, signal).then(() => this.#read(shard, of))
    }
  }

  #run(shard: Shard, { jobs, stopping }: ShardReplays, stored: StoredReplay): void {
    if (stopping.signal.aborted) return
    const job = new ReplayJob(this.#services, shard, stored)
    jobs.add(job)
    void job.run().finally(() => jobs.delete(job))
  }

  #jobsOf({ id, shard }: BotQueue): readonly ReplayJob[] {
    const { jobs = [] } = this.#shards.get(shard) ?? {}
    return [...jobs].filter(({ stored }) => stored.queue === id)
  }

  /** Returns all jobs of a queue, the oldest first. A job that runs knows more than its record. */
  async #all(queue: BotQueue): Promise<readonly StoredReplay[]> {
    const stored = await queue.shard.lists.replaysOf(queue.id)
    const running = new Map(this.#jobsOf(queue).map((job) => [job.stored.jobId, job.stored]))
    return stored.map((each) => running.get(each.jobId) ?? each)
  }

  async #begin(
    queue: BotQueue,
    of: ShardReplays,
    { order, record }: { readonly order: ReplayOrder; readonly record: ReplayRecord },
  ): Promise<StartedReplay> {
    const { id, shard, bot } = queue
    await of.reading
    const all = await this.#all(queue)
    const earlier = startedBefore(all, order)
    if (earlier !== undefined) return earlier
    if (bot.isRemoved) throw new PostboteError('UNKNOWN_BOT', { detail: `${bot.botId}` })
    if (of.stopping.signal.aborted || !of.isRead) throw new PostboteError('STORE_UNAVAILABLE')
    const running = all.filter((each) => isActive(each.record)).length
    if (running >= replaysRunningMax) {
      throw new PostboteError('TOO_MANY_REPLAYS', { detail: `${running}` })
    }
    const { startedAtMs } = record
    const jobId = Math.max(Math.floor(startedAtMs / 1_000), (all.at(-1)?.jobId ?? 0) + 1)
    const stored = { queue: id, jobId: Math.min(jobId, jobIdMax), record }
    const removals = excessOf(all, startedAtMs).map((each) => removalOf(each))
    await shard.commit([...removals, { kind: 'replay', ...stored }], { waited: true })
    if (this.#shards.get(shard) === of) this.#run(shard, of, stored)
    // The shard was read anew meanwhile, perhaps without this job.
    else if (this.#shards.has(shard)) this.start(shard)
    return { ...stored, isDuplicate: false }
  }

  async #count(
    lookBack: LookBack,
    {
      filter,
      before,
      forMs,
      payer,
    }: {
      readonly filter: UpdateFilter
      readonly before: number
      readonly forMs: number
      readonly payer: LookPayer | undefined
    },
  ): Promise<ReplayCount> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + forMs
    let count = 0
    let bytes = 0
    for (let after = 0; clock.monotonicMs() <= untilMs; ) {
      const page = await lookBack.find(filter, { after, before, limit: countedPerLook }, payer)
      count += page.updates.length
      for (const { text } of page.updates) bytes += text.length
      if (page.after === undefined) return { count, bytes, isComplete: true }
      after = page.after
    }
    return { count, bytes, isComplete: false }
  }
}

/** Without an end, everything that was accepted so far is meant. */
function resolved(selection: ReplayOrder['selection'], clock: Clock): ReplaySelection {
  const { untilS = Math.floor(clock.nowMs() / 1_000) + 1, ...rest } = selection
  return { ...rest, untilS }
}

function idempotencyOf(order: ReplayOrder): Pick<ReplayRecord, 'idempotency'> {
  const { idempotencyKey, selection, rate } = order
  if (idempotencyKey === undefined) return {}
  const { state, typeNumber, orderingKey, sinceS, untilS } = selection
  const content = JSON.stringify([state, typeNumber, orderingKey, sinceS, untilS, rate])
  return { idempotency: { key: hashOf(idempotencyKey), content: hashOf(content) } }
}

function hashOf(text: string): string {
  return Buffer.from(hash128(text), 'latin1').toString('base64url')
}

/**
 * Returns the job that an earlier call with the same key has started.
 *
 * @throws IDEMPOTENCY_MISMATCH if that call asked for something else
 */
function startedBefore(
  all: readonly StoredReplay[],
  order: ReplayOrder,
): StartedReplay | undefined {
  const { idempotency: own } = idempotencyOf(order)
  const earlier = all.find(({ record }) => own !== undefined && record.idempotency?.key === own.key)
  if (earlier === undefined) return undefined
  if (earlier.record.idempotency?.content !== own?.content) {
    throw new PostboteError('IDEMPOTENCY_MISMATCH')
  }
  return { ...earlier, isDuplicate: true }
}

function isOld({ endedAtMs = Infinity }: ReplayRecord, nowMs: number): boolean {
  return nowMs - endedAtMs > replayLifeMs
}

/** Returns which jobs make room for one more: those that are old, and the oldest that have ended. */
function excessOf(all: readonly StoredReplay[], nowMs: number): readonly StoredReplay[] {
  const ended = all.filter(({ record }) => !isActive(record))
  const excess = Math.max(0, all.length + 1 - replaysKeptMax)
  return ended.filter(({ record }, nth) => nth < excess || isOld(record, nowMs))
}

function removalOf({ queue, jobId }: StoredReplay): OperationOf<'replay'> {
  return { kind: 'replay', queue, jobId, record: null }
}
