/**
 * The sessions that were ended before their time, in memory that all processes of a server share. A session is a number of
 * 64 bits, and an older one of the same key is a smaller number, so a key needs a few of them and a bound:
 *
 *     1 number                        all sessions up to this one have ended
 *     `endedSessionsPerKeyMax` numbers   sessions that have ended; 0: none
 *
 * When the places of a key are full, the oldest ended session gives way and the bound rises to it. So no ended session is
 * ever valid again, and what a key does with its own sessions concerns no other key.
 */
import { accessKeysMax } from '../kit/limits.ts'
import type { Access } from '../api/access.ts'

/**
 * So many ended sessions of a key are remembered one by one. Chosen: a session lasts 12 hours, and few people share a key.
 * Past that, all sessions of the key that are older than the oldest of them end, too.
 */
export const endedSessionsPerKeyMax = 16
const numbersPerKey = 1 + endedSessionsPerKeyMax

/** The size of the table in numbers of 64 bits: all keys, and the admin key after them. */
export const endedSessionNumbers = (accessKeysMax + 1) * numbersPerKey

/** The place of a key in the table. */
export function sessionSlotOf(access: Access): number {
  return access === 'root' ? accessKeysMax : access.limitSlot
}

export class EndedSessions {
  readonly #numbers: BigUint64Array

  /** @param numbers - the `endedSessionNumbers` numbers of the table */
  constructor(numbers: BigUint64Array = new BigUint64Array(endedSessionNumbers)) {
    this.#numbers = numbers
  }

  has(slot: number, session: bigint): boolean {
    const first = slot * numbersPerKey
    if (session <= Atomics.load(this.#numbers, first)) return true
    for (let at = first + 1; at < first + numbersPerKey; at++) {
      if (Atomics.load(this.#numbers, at) === session) return true
    }
    return false
  }

  end(slot: number, session: bigint): void {
    const first = slot * numbersPerKey
    while (!this.has(slot, session)) {
      let oldestAt = first + 1
      for (let at = oldestAt; at < first + numbersPerKey; at++) {
        if (Atomics.load(this.#numbers, at) < Atomics.load(this.#numbers, oldestAt)) oldestAt = at
      }
      const oldest = Atomics.load(this.#numbers, oldestAt)
      this.#raise(first, oldest)
      Atomics.compareExchange(this.#numbers, oldestAt, oldest, session)
    }
  }

  #raise(at: number, to: bigint): void {
    for (let bound = Atomics.load(this.#numbers, at); bound < to; ) {
      bound = Atomics.compareExchange(this.#numbers, at, bound, to)
    }
  }
}
