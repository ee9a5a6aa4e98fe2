/**
 * The dead letters of one queue: updates that its webhook could not deliver, kept for seven days to be looked at,
 * replayed or dropped. They are on disk only; in memory is an index of them, read when it is first needed.
 *
 *   unread --first use--> reading --> read
 *
 * Burying never waits. What is buried before the index is read joins it as it is; the bounds then hold from the moment
 * it is read. Everything that takes a letter away waits for that, and changes the index and commits in one turn, so
 * that nobody acts on a letter twice.
 */
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import {
  deadLetterBytesMax,
  deadLetterBytesPerRead,
  deadLetterLifeMs,
  deadLettersMax,
  deadLettersPerRead,
  webhookErrorLengthMax,
} from '../limits.ts'
import { type QueueId, updateIdEnd } from '../shard/keys.ts'
import type { LetterOperation, Operation, UnburyOperation } from '../shard/operations.ts'
import type { Shard } from '../shard/shard.ts'
import type { StoredLetter } from '../shard/stored.ts'
import type { LostUpdate } from '../webhook/delivery-source.ts'
import { LetterIndex } from './letter-index.ts'
import type { QueuedUpdate } from './queued-update.ts'

export interface DeadLettersOptions {
  readonly id: QueueId
  readonly shard: Pick<Shard, 'readDeadLetters'>
  readonly clock: Clock
  readonly counters: Counters
  /** Makes operations of this queue durable. */
  commit(operations: readonly Operation[], waited: boolean): Promise<void>
  /** Resolves when what was committed can be read from disk, or never will. */
  settled(): Promise<void>
}

/** Of which the queue knows more than who gave it up. */
export interface DyingUpdate extends LostUpdate {
  readonly update: QueuedUpdate
}

/** A letter without its text. */
export interface LetterSummary extends Omit<StoredLetter, 'text'> {
  readonly textBytes: number
  /** Wall time at which it goes. */
  readonly endsAtMs: number
}

export class DeadLetters {
  readonly #options: DeadLettersOptions
  readonly #index = new LetterIndex()
  /** Cannot be shown; they go with all others. */
  #damagedIds: readonly number[] = []
  #isRead = false
  #reading: Promise<void> | undefined

  constructor(options: DeadLettersOptions) {
    this.#options = options
  }

  /**
   * Makes letters of updates, oldest first. Gives what keeps them, to be committed at once and with what takes the
   * updates out of the queue.
   */
  bury(lost: readonly DyingUpdate[]): readonly LetterOperation[] {
    const { clock, counters, id: queue } = this.#options
    counters.add('updates_dead_lettered', lost.length)
    const kept = newestWithinBounds(lost)
    const buriedAtMs = clock.nowMs()
    const evictedIds: number[] = []
    for (const { update } of kept) {
      const { updateId, textBytes: bytes } = update
      // Of an earlier numbering.
      if (this.#index.remove(updateId)) evictedIds.push(updateId)
      this.#index.add({ updateId, buriedAtMs, bytes })
    }
    const skipped = lost.length - kept.length
    if (this.#isRead) evictedIds.push(...this.#takeExcess())
    else void this.#read().catch(ignore)
    counters.add('dead_letters_evicted', skipped + evictedIds.length)
    const letters = kept.map((one) => letterOf(one, buriedAtMs))
    return [
      ...(evictedIds.length === 0
        ? []
        : [{ kind: 'unbury', queue, updateIds: evictedIds } as const]),
      { kind: 'bury', queue, letters },
    ]
  }

  async count(): Promise<number> {
    await this.removeOld()
    return this.#index.count
  }

  /** By id, those above `after`. */
  async list(page: {
    readonly after: number
    readonly limit: number
  }): Promise<{ readonly letters: readonly LetterSummary[]; readonly total: number }> {
    await this.removeOld()
    const letters: LetterSummary[] = []
    let from = page.after + 1
    while (letters.length < page.limit && from < updateIdEnd) {
      const limit = page.limit - letters.length
      const read = await this.read({ from, to: updateIdEnd, limit })
      for (const letter of read.letters) letters.push(summaryOf(letter))
      from = read.next
    }
    return { letters, total: this.#index.count }
  }

  async get(updateId: number): Promise<StoredLetter | undefined> {
    await this.removeOld()
    if (!this.#index.has(updateId)) return undefined
    const { letters } = await this.read({ from: updateId, to: updateId + 1, limit: 1 })
    return letters[0]
  }

  /** Some letters of a range of ids, with their texts, and where to read on. */
  async read(range: {
    readonly from: number
    readonly to: number
    readonly limit: number
  }): Promise<{ readonly letters: readonly StoredLetter[]; readonly next: number }> {
    await this.#read()
    await this.#options.settled()
    const { letters, next } = await this.#page(range)
    return { letters: letters.filter(({ updateId }) => this.#index.has(updateId)), next }
  }

  has(updateId: number): boolean {
    return this.#index.has(updateId)
  }

  /** The ids there are now, ascending. */
  async ids(): Promise<readonly number[]> {
    await this.removeOld()
    return this.#index.ids().toSorted((a, b) => a - b)
  }

  /** Takes letters out that are there. Gives what makes it durable, to be committed at once. */
  take(updateIds: readonly number[]): UnburyOperation {
    for (const updateId of updateIds) this.#index.remove(updateId)
    return { kind: 'unbury', queue: this.#options.id, updateIds }
  }

  /** Whether it was there. Durable when it resolves. */
  async remove(updateId: number): Promise<boolean> {
    await this.removeOld()
    if (!this.#index.has(updateId)) return false
    this.#options.counters.add('dead_letters_dropped', 1)
    await this.#options.commit([this.take([updateId])], true)
    return true
  }

  /** How many there were. Durable when it resolves. */
  async removeAll(): Promise<number> {
    const { count, operations } = await this.#takeAll()
    if (operations.length > 0) await this.#options.commit(operations, true)
    return count
  }

  /** Takes all letters out. Gives what makes it durable, for a caller who has more to commit with it. */
  async drop(): Promise<readonly LetterOperation[]> {
    return (await this.#takeAll()).operations
  }

  /** Removes those that were kept long enough. */
  async removeOld(): Promise<void> {
    await this.#read()
    const { clock, counters } = this.#options
    const old = this.#index.buriedUpTo(clock.nowMs() - deadLetterLifeMs)
    if (old.length === 0) return
    counters.add('dead_letters_expired', old.length)
    this.#options.commit([this.take(old)], false).catch(ignore)
  }

  async #takeAll(): Promise<{
    readonly count: number
    readonly operations: readonly LetterOperation[]
  }> {
    await this.removeOld()
    const { count } = this.#index
    const updateIds = [...this.#index.ids(), ...this.#damagedIds]
    this.#damagedIds = []
    if (updateIds.length === 0) return { count, operations: [] }
    this.#options.counters.add('dead_letters_dropped', count)
    return { count, operations: [this.take(updateIds)] }
  }

  /** Oldest letters out of the index until it is within its bounds. */
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

  /** Reads the index, once. What fails is tried again by the next call. */
  #read(): Promise<void> {
    if (this.#isRead) return done
    this.#reading ??= this.#readIndex().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readIndex(): Promise<void> {
    const found: { updateId: number; buriedAtMs: number; bytes: number }[] = []
    const damagedIds: number[] = []
    for (let from = 0; from < updateIdEnd; ) {
      const page = await this.#page({ from, to: updateIdEnd, limit: deadLettersPerRead })
      for (const { updateId, buriedAtMs, text } of page.letters) {
        found.push({ updateId, buriedAtMs, bytes: text.length })
      }
      damagedIds.push(...page.damagedIds)
      from = page.next
    }
    this.#index.addEarlier(found)
    this.#damagedIds = damagedIds
    this.#isRead = true
    const evicted = this.#takeExcess()
    if (evicted.length === 0) return
    const { counters, id: queue } = this.#options
    counters.add('dead_letters_evicted', evicted.length)
    const operation = { kind: 'unbury', queue, updateIds: evicted } as const
    this.#options.commit([operation], false).catch(ignore)
  }

  #page(range: {
    readonly from: number
    readonly to: number
    readonly limit: number
  }): ReturnType<Shard['readDeadLetters']> {
    return this.#options.shard.readDeadLetters({
      ...range,
      queue: this.#options.id,
      limit: Math.min(range.limit, deadLettersPerRead),
      bytesMax: deadLetterBytesPerRead,
    })
  }
}

export function summaryOf(letter: StoredLetter): LetterSummary {
  const { text, ...rest } = letter
  return { ...rest, textBytes: text.length, endsAtMs: letter.buriedAtMs + deadLetterLifeMs }
}

/** The others would be evicted by these at once. */
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

function letterOf(lost: DyingUpdate, buriedAtMs: number): StoredLetter {
  const { update, reason, attempts, lastError = '' } = lost
  const { updateId, typeNumber, acceptedAtS, orderingKey, textBytes } = update
  // `{"update_id":N,<text>}`
  const text = update.body().subarray(-1 - textBytes, -1)
  return {
    updateId,
    typeNumber,
    reason,
    buriedAtMs,
    acceptedAtS,
    attempts,
    lastError: lastError.slice(0, webhookErrorLengthMax),
    orderingKey,
    text,
  }
}

const done = Promise.resolve()

function ignore(): void {}
