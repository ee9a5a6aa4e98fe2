/**
 * Which half-days of a shard may have idempotency keys, and a filter over the keys of each (idempotency-key-filter.ts).
 *
 *   unknown --list--> listed: each half-day   building --all stored keys were read--> complete
 *      ^                                          \__ a read failed: it goes on with the next call of `build`
 *      \______________ reset ____________/
 *
 * A filter has all keys that are claimed, from before they are written, because a new key is claimed only once the
 * half-days are listed. The keys that were stored before are read in the background, in slices. Until they have all been
 * read, every key may be in that half-day. A half-day that has no stored keys is complete from the start.
 *
 * A filter may have keys that are not stored, because their write failed. It never lacks one that is.
 */
import { type Clock, sleep } from '../../kit/clock.ts'
import type { Store } from '../../store/store.ts'
import { IdempotencyKeyFilter, type KeyPlace, keyPlace } from './idempotency-key-filter.ts'
import { kinds } from '../kinds.ts'
import * as keys from '../records/record-keys.ts'

interface HalfDay {
  readonly filter: IdempotencyKeyFilter
  /** Whether the filter has all keys that are stored. */
  isComplete: boolean
  /** The last stored key that was read. */
  readTo: Buffer | undefined
}

type HalfDays = Map<number, HalfDay>

/** Stored keys are read into the filters in slices of this many, which hold the event loop for 1 ms. */
export const keyFilterSliceKeys = 500
/** The pause after each of these slices, so that reading a million keys takes some 15 s and little of a worker. */
export const keyFilterPauseMs = 5

export class IdempotencyKeyFilters {
  readonly #clock: Clock
  readonly #range: Store['range']
  /** Undefined until they were listed. */
  #halfDays: HalfDays | undefined
  #building: HalfDays | undefined
  #life = 0

  constructor(clock: Clock, range: Store['range']) {
    this.#clock = clock
    this.#range = range
  }

  /**
   * Lists the half-days that have stored keys, with one seek each: four of them, plus one for each time the clock was far
   * off. Has no effect if they were listed. Call it again only after the last call has settled.
   *
   * @param first - half-days before this one are due for deletion and are left out.
   */
  async list(first: number): Promise<void> {
    if (this.#halfDays !== undefined) return
    const life = this.#life
    const listed: HalfDays = new Map()
    for (let from = first; ; ) {
      const [entry] = await this.#range({
        gte: kinds.idempotencyKey.start(from),
        lt: kinds.idempotencyKey.range().lt,
        limit: 1,
        keysOnly: true,
      })
      if (entry === undefined) break
      const halfDay = kinds.idempotencyKey.fields(entry.key).halfDay
      listed.set(halfDay, {
        filter: new IdempotencyKeyFilter(),
        isComplete: false,
        readTo: undefined,
      })
      from = halfDay + 1
    }
    if (life !== this.#life) return
    this.#halfDays = listed
    this.build()
  }

  /** The half-days that may have keys, except those that are due for deletion; none before they were listed. */
  get halfDays(): readonly number[] {
    return [...(this.#halfDays?.keys() ?? [])]
  }

  /** Size of all filters in memory. */
  get bytes(): number {
    let bytes = 0
    for (const { filter } of this.#halfDays?.values() ?? []) bytes += filter.bytes
    return bytes
  }

  /** Returns true only for a key that is stored in no half-day. */
  isNew(place: KeyPlace): boolean {
    if (this.#halfDays === undefined) return false
    for (const halfDay of this.#halfDays.values()) if (mayHave(halfDay, place)) return false
    return true
  }

  /** Returns false only for a key that is not stored in this half-day. */
  mayHave(halfDay: number, place: KeyPlace): boolean {
    if (this.#halfDays === undefined) return true
    const found = this.#halfDays.get(halfDay)
    return found !== undefined && mayHave(found, place)
  }

  /** Adds a key that is about to be written. */
  add(halfDay: number, place: KeyPlace): void {
    if (this.#halfDays === undefined) return
    let found = this.#halfDays.get(halfDay)
    if (found === undefined) {
      found = { filter: new IdempotencyKeyFilter(), isComplete: true, readTo: undefined }
      this.#halfDays.set(halfDay, found)
    }
    found.filter.add(place)
  }

  /** Removes half-days before `end`, of which no key is stored any more. */
  removeBefore(end: number): void {
    for (const halfDay of this.halfDays) if (halfDay < end) this.#halfDays?.delete(halfDay)
  }

  /** Forgets everything, because the shard was reset: what is stored may be less than what was claimed, or more. */
  reset(): void {
    this.#halfDays = undefined
    this.#building = undefined
    this.#life += 1
  }

  /** Reads the stored keys of half-days that are not complete, in the background. */
  build(): void {
    const halfDays = this.#halfDays
    if (halfDays === undefined || this.#building === halfDays) return
    this.#building = halfDays
    this.#buildAll(halfDays)
      // Until the next call, keys are looked up on disk.
      .catch(() => undefined)
      .finally(() => {
        if (this.#building === halfDays) this.#building = undefined
      })
  }

  async #buildAll(halfDays: HalfDays): Promise<void> {
    // The latest first, as most repetitions come soon.
    for (const [number, halfDay] of [...halfDays].toReversed()) {
      while (!halfDay.isComplete && this.#halfDays === halfDays && halfDays.has(number)) {
        await this.#readSlice(number, halfDay)
        await sleep(this.#clock, keyFilterPauseMs)
      }
    }
  }

  async #readSlice(number: number, halfDay: HalfDay): Promise<void> {
    const { filter, readTo } = halfDay
    const found = await this.#range({
      gte: readTo === undefined ? kinds.idempotencyKey.start(number) : keys.keyAfter(readTo),
      lt: kinds.idempotencyKey.start(number + 1),
      limit: keyFilterSliceKeys,
      keysOnly: true,
    })
    for (const { key } of found) {
      const { queue, hash } = kinds.idempotencyKey.fields(key)
      filter.add(keyPlace(queue, hash))
    }
    halfDay.readTo = found.at(-1)?.key ?? readTo
    halfDay.isComplete = found.length < keyFilterSliceKeys || filter.isFull
  }
}

function mayHave({ filter, isComplete }: HalfDay, place: KeyPlace): boolean {
  return !isComplete || filter.mayHave(place)
}
