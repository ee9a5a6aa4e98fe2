/**
 * One job that pushes updates of a queue again, in slices at its rate.
 *
 *   running --slice--> running ... --the last slice--> done
 *      |  ^
 *      |  +-- a push was accepted
 *      +-> paused: a push was refused, which is tried again every second
 *
 * The record of the job is in the group of each slice, with the mark after it. Whoever has the shard next goes on from
 * there: nothing is pushed twice, and nothing is left out.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import { Mutex } from '../../kit/mutex.ts'
import type { UpdateFilter } from '../../queue/kept/look-back.ts'
import { keysMeantBy } from '../../queue/check/ordering-key.ts'
import type { OperationOf } from '../../shard/operations.ts'
import {
  isActive,
  type ReplayRecord,
  type ReplaySelection,
} from '../../shard/records/replay-record.ts'
import type { Shard } from '../../shard/shard.ts'
import type { StoredReplay } from '../../shard/records/stored-records.ts'
import type { Counters, Log } from '../../kit/surroundings.ts'
import type { BotQueue } from '../../bots/bot-queue.ts'
import { type ReplayedSlice, replaySlice } from './replay-slice.ts'

/** What a job needs of its worker. */
export interface ReplayJobServices {
  readonly clock: Clock
  readonly counters: Counters
  readonly log: Pick<Log, 'error'> | undefined
  /** Returns a queue, loaded; undefined if its bot is gone. */
  findQueue(queue: StoredReplay['queue']): Promise<BotQueue | undefined>
  /** Throws if the bot of a queue accepts no updates now. */
  assertAccepting(queue: BotQueue): void
  /** Resolves when a slice may be pushed. Returns what ends it. */
  turn(): Promise<() => void>
}

/** A slice takes this time, so that a job adds few groups. Chosen: ten in a second. */
const replaySlicePeriodMs = 100
/** A slice that has pushed nothing is followed by a rest, so that the search for rare updates leaves time to others. */
const replayRestMs = 10
/** What was refused is tried again after this time. Chosen: a queue that has room goes on soon, and a try costs a look at the disk. */
export const replayRetryMs = 1_000
/** While nothing is pushed, the mark is stored this often: a crash repeats the search since then. */
const replayMarkPeriodMs = 5_000

export class ReplayJob {
  readonly #services: ReplayJobServices
  readonly #shard: Shard
  readonly #id: Pick<StoredReplay, 'queue' | 'jobId'>
  readonly #filter: UpdateFilter
  /** Slices, and whatever else changes the record. */
  readonly #turns = new Mutex()
  readonly #stopping = new AbortController()
  #record: ReplayRecord
  #storedMs: number

  constructor(services: ReplayJobServices, shard: Shard, stored: StoredReplay) {
    const { queue, jobId, record } = stored
    this.#services = services
    this.#shard = shard
    this.#id = { queue, jobId }
    this.#filter = filterOf(record.selection, record.startedAtMs)
    this.#record = record
    this.#storedMs = services.clock.monotonicMs()
  }

  get stored(): StoredReplay {
    return { ...this.#id, record: this.#record }
  }

  /** Works until the job has ended or is stopped. Never rejects. */
  async run(): Promise<void> {
    const { clock, log } = this.#services
    const { signal } = this.#stopping
    while (!signal.aborted && isActive(this.#record)) {
      const startedMs = clock.monotonicMs()
      let waitMs = replayRetryMs
      try {
        waitMs = await this.#turns.run(() => this.#next())
      } catch (error) {
        // A shard whose write has failed is read anew, and then its jobs are.
        if (signal.aborted || this.#shard.status !== 'serving') return
        const { queue } = this.#id
        if (!(error instanceof PostboteError)) {
          log?.error({ shard: this.#shard.index, queue, error: String(error) }, failed)
        }
      }
      await sleep(clock, startedMs + waitMs - clock.monotonicMs(), signal)
    }
  }

  /** Ends the work; the job goes on where it is read next. Resolves when nothing of it is in progress. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#turns.idle()
  }

  /** Ends the job durably, unless it has ended. */
  async cancel(): Promise<StoredReplay> {
    await this.#turns.run(async () => {
      if (!isActive(this.#record)) return
      const { reason: _reason, refusal: _refusal, ...rest } = this.#record
      const endedAtMs = this.#shard.clock.nowMs()
      await this.#store({ ...rest, state: 'cancelled', endedAtMs })
      this.#stopping.abort()
    })
    return this.stored
  }

  /** Takes the next step. Returns after what time the one after it may begin. */
  async #next(): Promise<number> {
    const { signal } = this.#stopping
    if (signal.aborted || !isActive(this.#record)) return 0
    const endTurn = await this.#services.turn()
    try {
      const queue = await this.#services.findQueue(this.#id.queue)
      if (queue === undefined) await this.#forget()
      else if (queue.updates.nextId < this.#record.end) await this.#endEarly()
      else return await this.#slice(queue)
      return 0
    } finally {
      endTurn()
    }
  }

  async #slice(queue: BotQueue): Promise<number> {
    const services = this.#services
    const { counters } = services
    const { rate, next: from, end } = this.#record
    // Whoever has the shard next has the job, and the mark of this one is old.
    const assertOwn = (): void => {
      if (this.#stopping.signal.aborted) throw new PostboteError('STORE_UNAVAILABLE')
    }
    const target = {
      queue,
      counters,
      assertAccepting(): void {
        assertOwn()
        services.assertAccepting(queue)
      },
    }
    const limit = Math.max(1, Math.round((rate * replaySlicePeriodMs) / 1_000))
    let after = this.#record
    let isStored = false
    const slice = await replaySlice(
      target,
      { filter: this.#filter, from, end, limit },
      (pushed) => {
        assertOwn()
        after = recordAfter(this.#record, pushed, this.#shard.clock.nowMs())
        isStored = this.#isWorthStoring(after)
        return isStored ? [this.#operation(after)] : []
      },
    )
    if (isStored) this.#storedMs = this.#services.clock.monotonicMs()
    this.#record = after
    if (slice.refused !== undefined) return replayRetryMs
    return slice.replayed.length === 0 ? replayRestMs : (slice.replayed.length / rate) * 1_000
  }

  #isWorthStoring(after: ReplayRecord): boolean {
    const before = this.#record
    return (
      after.state !== before.state ||
      after.refusal !== before.refusal ||
      doneOf(after) !== doneOf(before) ||
      this.#services.clock.monotonicMs() - this.#storedMs >= replayMarkPeriodMs
    )
  }

  /** Ids below the end are used again, for other updates. */
  async #endEarly(): Promise<void> {
    const { refusal: _refusal, ...rest } = this.#record
    const ended = { ...rest, reason: numberedAnew } as const
    await this.#store({ ...ended, state: 'done', endedAtMs: this.#shard.clock.nowMs() })
  }

  async #forget(): Promise<void> {
    this.#stopping.abort()
    await this.#shard.commit([{ ...this.#operation(this.#record), record: null }], { waited: true })
  }

  async #store(record: ReplayRecord): Promise<void> {
    await this.#shard.commit([this.#operation(record)], { waited: true })
    this.#record = record
  }

  #operation(record: ReplayRecord): OperationOf<'replay'> {
    return { kind: 'replay', ...this.#id, record }
  }
}

const failed = 'a replay failed; it is tried again soon'
const numberedAnew = 'A new numbering has begun, and what left before it is not kept any more'

/** Returns what finds the updates of a selection that had left by a time. */
export function filterOf(selection: ReplaySelection, leftByMs: number): UpdateFilter {
  const { state, typeNumber, orderingKey, sinceS, untilS } = selection
  const hasKey = orderingKey === undefined ? undefined : keysMeantBy(orderingKey)
  return { state, typeNumber, hasKey, sinceS, untilS, leftByMs }
}

/** Returns the record of a job after a slice. */
function recordAfter(before: ReplayRecord, slice: ReplayedSlice, nowMs: number): ReplayRecord {
  const { reason: _reason, refusal: _refusal, ...rest } = before
  const { next, refused } = slice
  const after = {
    ...rest,
    next,
    replayed: before.replayed + slice.replayed.length,
    filtered: before.filtered + slice.filtered,
    tooLarge: before.tooLarge + slice.tooLarge,
  }
  if (refused !== undefined) {
    const { code: refusal, message: reason } = refused.error
    return { ...after, state: 'paused', reason, refusal }
  }
  if (next >= before.end) return { ...after, state: 'done', endedAtMs: nowMs }
  return { ...after, state: 'running' }
}

function doneOf({ replayed, filtered, tooLarge }: ReplayRecord): number {
  return replayed + filtered + tooLarge
}
