/**
 * The updates of one queue that can be looked at: pending ones, those that have left and are kept, and dead letters. All are on
 * disk, under one id each:
 *
 *        kept runs (l)            floor
 *   ---- [ u u u )[ u u ) -------- | u  u  u        pending updates are the u records from the floor on
 *     v        v         v   v                      updates that have left alone: delivered, expired, dropped
 *          d        d                               dead letters
 *
 * A look reads at most `lookedAtMax` records, then it returns what it has found, and where to continue. Whoever asks for it pays for
 * each read, and the next one waits while the payer is over its budget.
 */
import assert from 'node:assert/strict'
import { mib } from '../../kit/limits.ts'
import { updateIdEnd } from '../../shard/records/record-keys.ts'
import type { LeaveReason } from '../../shard/records/record.ts'
import type { Shard } from '../../shard/shard.ts'
import type {
  IdRange,
  KeptRun,
  StoredDeadLetter,
  StoredLeftUpdate,
  StoredUpdate,
} from '../../shard/records/stored-records.ts'
import type { StoredQueue } from '../queue-reader.ts'
import { lookCostMs, type LookPayer } from './look-payer.ts'
import type { UpdateState } from '../../shard/records/replay-record.ts'

/** An update of a queue, pending or not. */
export interface FoundUpdate extends Omit<StoredUpdate, 'expiresAtS'> {
  readonly state: UpdateState
  /** Wall time in milliseconds; undefined while it is pending. */
  readonly leftAtMs: number | undefined
  /** The number of delivery attempts; undefined if it is not known. */
  readonly attempts: number | undefined
  readonly lastError: string | undefined
}

/** Which updates are wanted. Absent fields do not matter. */
export interface UpdateFilter {
  readonly state?: UpdateState | undefined
  readonly typeNumber?: number | undefined
  /** Tells whether an ordering key as it is stored is wanted. */
  readonly hasKey?: ((storedKey: string) => boolean) | undefined
  /** Tells whether a text as it is stored is wanted. */
  readonly hasText?: ((text: Buffer) => boolean) | undefined
  /** Tells whether a dead letter is wanted, by what it has died of. With the state `dead` only. */
  readonly hasDiedOf?: ((letter: StoredDeadLetter) => boolean) | undefined
  /** Accepted at this wall time in seconds, or later. */
  readonly sinceS?: number | undefined
  /** Accepted before this wall time in seconds. */
  readonly untilS?: number | undefined
  /** Left at this wall time in milliseconds, or before. No pending update is wanted then. */
  readonly leftByMs?: number | undefined
}

/** Where a look begins and ends. */
export interface LookRange {
  /** Only ids above this one. */
  readonly after: number
  /** Only ids below this one. */
  readonly before?: number
  /** The look ends with this many updates. */
  readonly limit: number
}

/** Some updates in the order of their ids. */
export interface FoundPage {
  readonly updates: readonly FoundUpdate[]
  /** The id after which to continue; undefined if this was the end. */
  readonly after: number | undefined
}

interface PageRead {
  readonly updates: readonly FoundUpdate[]
  /** The id at which to continue. */
  readonly next: number
}

/** A look reads this many records at most. Chosen: some 16 ms, so that a rare ordering key is found in steps. */
const lookedAtMax = 2_000
/** One read returns this many records of each kind, so that a look at a few updates reads no more. */
export const lookPageRecords = 250
const lookPageBytes = 1 * mib
/** A look returns this many bytes of texts, or one update more. Chosen: 2,000 usual updates have less. */
const foundBytesMax = 4 * mib

export class LookBack {
  readonly #stored: StoredQueue
  readonly #floor: () => number

  /** @param floor - returns the id below which no update is pending */
  constructor(stored: StoredQueue, floor: () => number) {
    this.#stored = stored
    this.#floor = floor
  }

  /** Returns the update with this id; undefined if there is none any more. */
  async get(updateId: number): Promise<FoundUpdate | undefined> {
    if (updateId >= updateIdEnd) return undefined
    await this.#stored.settled()
    const { updates } = await this.#page({ from: updateId, to: updateId + 1, limit: 1 })
    return updates[0]
  }

  /**
   * Returns updates of a range of ids that match, in the order of their ids.
   *
   * @throws STORE_UNAVAILABLE if the database cannot be read, TOO_MANY_REQUESTS if too much of the payer waits
   */
  async find(
    filter: UpdateFilter,
    { after, before: to = updateIdEnd, limit }: LookRange,
    payer?: LookPayer,
  ): Promise<FoundPage> {
    assert(limit > 0, 'a look may find an update')
    await this.#stored.settled()
    const updates: FoundUpdate[] = []
    let bytes = 0
    let from = after + 1
    for (let looked = 0; looked < lookedAtMax && from < to; ) {
      const range = { from, to, limit: lookPageRecords }
      const read = await (filter.state === 'dead'
        ? this.#deadPage(range, filter, payer)
        : this.#page(range, payer))
      for (const update of read.updates) {
        looked += 1
        if (!isWanted(update, filter)) continue
        updates.push(update)
        bytes += update.text.length
        if (updates.length === limit || bytes >= foundBytesMax) {
          return { updates, after: update.updateId }
        }
      }
      from = read.next
    }
    return { updates, after: from < to ? from - 1 : undefined }
  }

  /**
   * Returns updates with ids below `page.before` that match, the newest first, and the id before which to continue; undefined if
   * this was the end.
   *
   * @throws STORE_UNAVAILABLE if the database cannot be read
   */
  async findNewest(
    filter: UpdateFilter,
    page: { readonly before: number; readonly limit: number },
    payer?: LookPayer,
  ): Promise<{ readonly updates: readonly FoundUpdate[]; readonly before: number | undefined }> {
    const { shard, id: queue } = this.#stored
    await this.#stored.settled()
    const updates: FoundUpdate[] = []
    let bytes = 0
    let to = page.before
    for (let looked = 0; looked < lookedAtMax; ) {
      // Ids may be far apart: those of dead letters are.
      const highest = await shard.highestIdBelow(queue, to)
      if (highest === undefined) return { updates, before: undefined }
      to = highest + 1
      let from = Math.max(0, to - lookPageRecords)
      let read = await this.#page({ from, to, limit: lookPageRecords }, payer)
      looked += read.updates.length
      // Large updates end a read early. What was read too early is read again after what is newer.
      while (read.next < to) {
        from = read.next
        read = await this.#page({ from, to, limit: lookPageRecords }, payer)
        looked += read.updates.length
      }
      for (const update of read.updates.toReversed()) {
        if (!isWanted(update, filter)) continue
        updates.push(update)
        bytes += update.text.length
        if (updates.length === page.limit || bytes >= foundBytesMax) {
          return { updates, before: update.updateId }
        }
      }
      to = from
    }
    return { updates, before: to > 0 ? to : undefined }
  }

  /** Reads dead letters alone: they may be far apart, and what lies between them is not read. */
  async #deadPage(
    range: Omit<IdRange, 'queue'>,
    { hasDiedOf = () => true }: UpdateFilter,
    payer?: LookPayer,
  ): Promise<PageRead> {
    await payer?.turn()
    const { shard, id: queue } = this.#stored
    const page = { ...range, queue, bytesMax: lookPageBytes }
    const { deadLetters, next } = await shard.readDeadLetters(page)
    payer?.charge(lookCostMs(deadLetters))
    const wanted = deadLetters.filter((letter) => hasDiedOf(letter))
    return { updates: wanted.map((update) => leftUpdate(update, 'dead')), next }
  }

  /** Reads all kinds of records of a range of ids, as far as each of them was read. */
  async #page(range: Omit<IdRange, 'queue'>, payer?: LookPayer): Promise<PageRead> {
    await payer?.turn()
    const { shard, id: queue } = this.#stored
    const page = { ...range, queue, bytesMax: lookPageBytes }
    // An update that is confirmed during the reads is still shown as pending.
    const floor = this.#floor()
    const [stored, left, dead] = await Promise.all([
      shard.readUpdates(page),
      shard.readLeftUpdates(page),
      shard.readDeadLetters(page),
    ])
    const next = Math.min(stored.next, left.next, dead.next)
    const runs = await readRunsOver(shard, { ...page, to: Math.min(next, floor) })
    const read = [...stored.updates, ...left.updates, ...dead.deadLetters]
    payer?.charge(lookCostMs(read, runs.length))
    const found = [
      ...stored.updates.flatMap((update) => pendingOrKept(update, { floor, runs })),
      ...left.updates.map((update) => leftUpdate(update, stateOf[update.reason])),
      ...dead.deadLetters.map((update) => leftUpdate(update, 'dead')),
    ].filter(({ updateId }) => updateId < next)
    return { updates: found.toSorted((a, b) => a.updateId - b.updateId), next }
  }
}

/** Reads the runs that may have ids of a range. */
export async function readRunsOver(
  shard: Pick<Shard, 'readKeptRuns'>,
  { queue, from, to }: Pick<IdRange, 'queue' | 'from' | 'to'>,
): Promise<readonly KeptRun[]> {
  if (from >= to) return []
  const [before] = await shard.readKeptRuns(
    { queue, from: 0, to: from + 1, limit: 1 },
    { reverse: true },
  )
  const runs = await shard.readKeptRuns({ queue, from: from + 1, to, limit: to - from })
  return before === undefined ? runs : [before, ...runs]
}

/** Returns the run that has an id; undefined if none has. */
export function runOf(updateId: number, runs: readonly KeptRun[]): KeptRun | undefined {
  const run = runs.findLast(({ from }) => from <= updateId)
  return run === undefined || run.end <= updateId ? undefined : run
}

const stateOf = {
  expired: 'expired',
  refused: 'dead',
  delivered: 'delivered',
  dropped: 'dropped',
  confirmed: 'confirmed',
} as const satisfies Readonly<Record<LeaveReason, UpdateState>>

function pendingOrKept(
  { expiresAtS: _expiresAtS, ...update }: StoredUpdate,
  { floor, runs }: { readonly floor: number; readonly runs: readonly KeptRun[] },
): readonly FoundUpdate[] {
  const unknown = { attempts: undefined, lastError: undefined }
  const { updateId } = update
  if (updateId >= floor) return [{ ...update, ...unknown, state: 'pending', leftAtMs: undefined }]
  const run = runOf(updateId, runs)
  // What no run has is about to be deleted.
  if (run === undefined) return []
  return [{ ...update, ...unknown, state: stateOf[run.reason], leftAtMs: run.leftAtMs }]
}

function leftUpdate(
  { reason: _reason, lastError, attempts, ...update }: StoredLeftUpdate,
  state: UpdateState,
): FoundUpdate {
  const isCounted = state === 'dead' || attempts > 0
  return {
    ...update,
    state,
    attempts: isCounted ? attempts : undefined,
    lastError: lastError === '' ? undefined : lastError,
  }
}

function isWanted(update: FoundUpdate, filter: UpdateFilter): boolean {
  const { state, typeNumber, sinceS = 0, untilS = Infinity } = filter
  return (
    (state === undefined || update.state === state) &&
    (typeNumber === undefined || update.typeNumber === typeNumber) &&
    update.acceptedAtS >= sinceS &&
    update.acceptedAtS < untilS &&
    hasLeftBy(update, filter.leftByMs) &&
    isMeant(update, filter)
  )
}

/** The text comes last, since it costs the most. */
function isMeant(update: FoundUpdate, { hasKey, hasText }: UpdateFilter): boolean {
  if (hasKey !== undefined && !hasKey(update.orderingKey)) return false
  return hasText === undefined || hasText(update.text)
}

function hasLeftBy({ leftAtMs }: FoundUpdate, ms: number | undefined): boolean {
  if (ms === undefined) return true
  return leftAtMs !== undefined && leftAtMs <= ms
}
