/**
 * The dead letters of one queue: updates that its webhook could not deliver. They are kept for seven days, to be
 * inspected, replayed or dropped. They are on disk; memory holds only an index, which is read when it is first needed.
 *
 *   unread --first use--> reading --> read
 *
 * `addDeadLetters` never waits. A dead letter that is added before the index is read joins the index directly; the limits apply
 * once the index is read. Everything that removes a dead letter waits for the index, then changes it and commits in one
 * turn of the event loop, so no dead letter is removed twice.
 */
import assert from 'node:assert/strict'
import { deadLetterLifeMs, deadLettersPerRead, mib } from '../../kit/limits.ts'
import { updateIdEnd } from '../../shard/records/record-keys.ts'
import type { DeadLetterOperation, RemoveDeadLettersOperation } from '../../shard/operations.ts'
import type { StoredDeadLetter } from '../../shard/records/stored-records.ts'
import type { LostUpdate } from '../../delivery/delivery-source.ts'
import { DeadLetterIndex } from './dead-letter-index.ts'
import type { Erasing } from './erase-kept.ts'
import { leftUpdateOf } from './left-update.ts'
import { lookCostMs, type LookPayer } from './look-payer.ts'
import type { QueuedUpdate } from '../queued-update.ts'
import type { StoredQueue } from '../queue-reader.ts'
import type { Surroundings } from '../../kit/surroundings.ts'

/** A lost update with all the fields that a dead letter stores. */
export interface DyingUpdate extends LostUpdate {
  readonly update: QueuedUpdate
}

/** A dead letter without its text. */
export interface DeadLetterSummary extends Omit<StoredDeadLetter, 'text'> {
  readonly textBytes: number
  /** The wall time at which the dead letter is deleted. */
  readonly endsAtMs: number
}

/**
 * A queue keeps this many dead letters; past that the oldest are removed. This is enough to see what is wrong and to
 * replay an afternoon of a small bot; the index takes 24 KB of memory per queue with this many.
 */
export const deadLettersMax = 1_000
/**
 * A queue keeps dead letters of this many bytes; past that the oldest are removed. Chosen: `deadLettersMax` dead letters of 16
 * KiB each, more than usual ones; so 1,000 bots whose endpoints all fail take 16 GB of disk at most.
 */
export const deadLetterBytesMax = 16 * mib
/** One read of dead letters returns at most this many bytes, or a single longer dead letter. */
const deadLetterBytesPerRead = 1 * mib

/** The dead letters of one queue. */
export class DeadLetters {
  readonly #stored: StoredQueue
  readonly #surroundings: Pick<Surroundings, 'clock' | 'counters'>
  readonly #index = new DeadLetterIndex()
  /** Dead deadLetters whose records are damaged. They cannot be shown; `removeAll` and `drop` delete them with all others. */
  #damagedIds: readonly number[] = []
  #isRead = false
  #reading: Promise<void> | undefined

  constructor(stored: StoredQueue, surroundings: Pick<Surroundings, 'clock' | 'counters'>) {
    this.#stored = stored
    this.#surroundings = surroundings
  }

  /**
   * Turns updates into dead letters.
   *
   * @param lost - the updates, oldest first
   * @returns operations that the caller commits in the same turn, together with the removal of the updates from the queue
   */
  addDeadLetters(lost: readonly DyingUpdate[]): readonly DeadLetterOperation[] {
    const { id: queue } = this.#stored
    const { clock, counters } = this.#surroundings
    counters.add('updates_dead_lettered', lost.length)
    const kept = newestWithinBounds(lost)
    const leftAtMs = clock.nowMs()
    const evictedIds: number[] = []
    for (const { update } of kept) {
      const { updateId, textBytes: bytes } = update
      // It belongs to an earlier numbering.
      if (this.#index.remove(updateId)) evictedIds.push(updateId)
      this.#index.add({ updateId, leftAtMs, bytes })
    }
    const skipped = lost.length - kept.length
    if (this.#isRead) evictedIds.push(...this.#takeExcess())
    else void this.#read().catch(ignore)
    counters.add('dead_letters_evicted', skipped + evictedIds.length)
    const deadLetters = kept.map(({ update, ...why }) => leftUpdateOf(update, { ...why, leftAtMs }))
    return [
      ...(evictedIds.length === 0
        ? []
        : [{ kind: 'removeDeadLetters', queue, updateIds: evictedIds } as const]),
      { kind: 'addDeadLetters', queue, deadLetters },
    ]
  }

  /**
   * Returns how many dead letters there are.
   *
   * @throws STORE_UNAVAILABLE if the index cannot be read. All methods that read behave the same way.
   */
  async count(): Promise<number> {
    await this.removeOld()
    return this.#index.count
  }

  /**
   * Returns dead letters with ids above `after`, in ascending order, and the total number.
   *
   * @param page - the page; `limit` is the maximum number of dead letters, and `isMeant` tells which are wanted
   * @param shownOf - returns what is held of each, without its text
   * @param payer - pays for each read
   */
  async list<Shown>(
    {
      isMeant = () => true,
      ...page
    }: {
      readonly after: number
      readonly limit: number
      readonly isMeant?: ((letter: StoredDeadLetter) => boolean) | undefined
    },
    shownOf: (letter: StoredDeadLetter) => Shown,
    payer?: LookPayer,
  ): Promise<{ readonly deadLetters: readonly Shown[]; readonly total: number }> {
    await this.removeOld()
    const deadLetters: Shown[] = []
    let from = page.after + 1
    while (deadLetters.length < page.limit && from < updateIdEnd) {
      const limit = page.limit - deadLetters.length
      await payer?.turn()
      const read = await this.read({ from, to: updateIdEnd, limit })
      payer?.charge(lookCostMs(read.deadLetters))
      for (const letter of read.deadLetters) if (isMeant(letter)) deadLetters.push(shownOf(letter))
      from = read.next
    }
    return { deadLetters, total: this.#index.count }
  }

  /** Returns one dead letter with its text. */
  async get(updateId: number): Promise<StoredDeadLetter | undefined> {
    await this.removeOld()
    if (!this.#index.has(updateId)) return undefined
    const { deadLetters } = await this.read({ from: updateId, to: updateId + 1, limit: 1 })
    return deadLetters[0]
  }

  /**
   * Returns some dead letters of a range of ids with their texts, and `next`, the id at which to continue.
   *
   * @param range - from `from` up to, but not including, `to`; `limit` is the maximum number of dead letters
   */
  async read(range: {
    readonly from: number
    readonly to: number
    readonly limit: number
  }): Promise<{ readonly deadLetters: readonly StoredDeadLetter[]; readonly next: number }> {
    await this.#read()
    // What can never be read is not there.
    await this.#stored.settled().catch(ignore)
    const { deadLetters, next } = await this.#page(range)
    return { deadLetters: deadLetters.filter(({ updateId }) => this.#index.has(updateId)), next }
  }

  /** Tells whether the index has this id. The index must have been read. */
  has(updateId: number): boolean {
    assert(this.#isRead, 'the index has been read')
    return this.#index.has(updateId)
  }

  /** Returns all present ids in ascending order. */
  async ids(): Promise<readonly number[]> {
    await this.removeOld()
    return this.#index.ids().toSorted((a, b) => a - b)
  }

  /**
   * Removes existing dead letters from the index.
   *
   * @returns the operation that makes the removal durable; the caller commits it in the same turn
   */
  take(updateIds: readonly number[]): RemoveDeadLettersOperation {
    assert(this.#isRead, 'what is taken out of the index was found in it')
    for (const updateId of updateIds) this.#index.remove(updateId)
    return { kind: 'removeDeadLetters', queue: this.#stored.id, updateIds }
  }

  /**
   * Removes one dead letter durably.
   *
   * @returns whether it existed
   */
  async remove(updateId: number): Promise<boolean> {
    await this.removeOld()
    if (!this.#index.has(updateId)) return false
    this.#surroundings.counters.add('dead_letters_dropped', 1)
    await this.#stored.commit([this.take([updateId])], true)
    return true
  }

  /**
   * Removes all dead letters that an erasure means durably.
   *
   * @returns how many there were
   */
  async erase({ isMeant, noted, counted, payer }: Erasing): Promise<number> {
    let count = 0
    for (let from = 0; from < updateIdEnd; ) {
      await payer?.turn()
      const page = await this.read({ from, to: updateIdEnd, limit: deadLettersPerRead })
      payer?.charge(lookCostMs(page.deadLetters))
      const found = page.deadLetters.filter((letter) => isMeant(letter))
      if (found.length > 0) {
        count += found.length
        this.#surroundings.counters.add('dead_letters_dropped', found.length)
        const ids = found.map(({ updateId }) => updateId)
        for (const id of ids) noted(id)
        await this.#stored.commit([this.take(ids)], true)
        counted(found)
      }
      from = page.next
    }
    return count
  }

  /**
   * Removes all dead letters durably.
   *
   * @returns how many there were
   */
  async removeAll(): Promise<number> {
    const { count, operations } = await this.#takeAll()
    if (operations.length > 0) await this.#stored.commit(operations, true)
    return count
  }

  /**
   * Removes all dead letters from the index.
   *
   * @returns the operations that make the removal durable, for a caller that commits them together with others
   */
  async drop(): Promise<readonly DeadLetterOperation[]> {
    return (await this.#takeAll()).operations
  }

  /** Removes dead letters that are older than seven days. The removal is not awaited. */
  async removeOld(): Promise<void> {
    await this.#read()
    const { clock, counters } = this.#surroundings
    const old = this.#index.deadUpTo(clock.nowMs() - deadLetterLifeMs)
    if (old.length === 0) return
    counters.add('dead_letters_expired', old.length)
    this.#stored.commit([this.take(old)], false).catch(ignore)
  }

  async #takeAll(): Promise<{
    readonly count: number
    readonly operations: readonly DeadLetterOperation[]
  }> {
    await this.removeOld()
    const { count } = this.#index
    const updateIds = [...this.#index.ids(), ...this.#damagedIds]
    this.#damagedIds = []
    if (updateIds.length === 0) return { count, operations: [] }
    this.#surroundings.counters.add('dead_letters_dropped', count)
    return { count, operations: [this.take(updateIds)] }
  }

  /** Removes the oldest dead letters from the index until it is within its limits. */
  #takeExcess(): number[] {
    const taken: number[] = []
    while (this.#index.count > deadLettersMax || this.#index.bytes > deadLetterBytesMax) {
      const updateId = this.#index.oldestId()
      if (updateId === undefined) break
      this.#index.remove(updateId)
      taken.push(updateId)
    }
    return taken
  }

  /** Reads the index once. After a failure the next call tries again. */
  #read(): Promise<void> {
    if (this.#isRead) return done
    this.#reading ??= this.#readIndex().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readIndex(): Promise<void> {
    const found: { updateId: number; leftAtMs: number; bytes: number }[] = []
    const damagedIds: number[] = []
    for (let from = 0; from < updateIdEnd; ) {
      const page = await this.#page({ from, to: updateIdEnd, limit: deadLettersPerRead })
      for (const { updateId, leftAtMs, text } of page.deadLetters) {
        found.push({ updateId, leftAtMs, bytes: text.length })
      }
      damagedIds.push(...page.damagedIds)
      assert(page.next > from, 'the reading of the index goes on')
      from = page.next
    }
    this.#index.addEarlier(found)
    this.#damagedIds = damagedIds
    this.#isRead = true
    const evicted = this.#takeExcess()
    if (evicted.length === 0) return
    const { id: queue } = this.#stored
    const { counters } = this.#surroundings
    counters.add('dead_letters_evicted', evicted.length)
    const operation = { kind: 'removeDeadLetters', queue, updateIds: evicted } as const
    this.#stored.commit([operation], false).catch(ignore)
  }

  #page(range: {
    readonly from: number
    readonly to: number
    readonly limit: number
  }): ReturnType<StoredQueue['shard']['readDeadLetters']> {
    return this.#stored.shard.readDeadLetters({
      ...range,
      queue: this.#stored.id,
      limit: Math.min(range.limit, deadLettersPerRead),
      bytesMax: deadLetterBytesPerRead,
    })
  }
}

/** Returns a dead letter without its text, with the time at which it is deleted. */
export function summaryOf(deadLetter: StoredDeadLetter): DeadLetterSummary {
  const { text, ...rest } = deadLetter
  return { ...rest, textBytes: text.length, endsAtMs: deadLetter.leftAtMs + deadLetterLifeMs }
}

/** Keeps only the newest dead letters, because they would evict the others immediately. */
function newestWithinBounds(lost: readonly DyingUpdate[]): readonly DyingUpdate[] {
  let bytes = 0
  let first = lost.length
  while (first > 0 && lost.length - first < deadLettersMax) {
    bytes += lost[first - 1]?.update.textBytes ?? 0
    if (bytes > deadLetterBytesMax) break
    first -= 1
  }
  return first === 0 ? lost : lost.slice(first)
}

const done = Promise.resolve()

function ignore(): void {}
