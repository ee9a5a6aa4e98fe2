/**
 * What keys of the private API have done in the last second, in shared memory, so that all processes of a server count
 * together. A key has a slot (`limitSlot`), which may have been another key's:
 *
 *     3 numbers of 64 bits     id of the key | when its bucket of requests is full | when that of updates is full
 *
 * Times are in microseconds of the machine's clock; admission/access-key-limiter.ts says what they mean. Each decision is one
 * compare-and-swap on one number. A process that still knows the former key of a slot may make both begin anew, once.
 */
import assert from 'node:assert/strict'
import type { KeyAccess, KeyLimits } from '../api/access.ts'
import { type AccessKeyLimiter, type LimitedThing, waitOf } from './access-key-limiter.ts'
import type { Clock } from '../kit/clock.ts'
import { fullAfter } from '../kit/token-bucket.ts'
import { accessKeysMax } from '../kit/limits.ts'

const numbersPerKey = 3

/** The size of the table in numbers of 64 bits. */
export const keyLimitNumbers = accessKeysMax * numbersPerKey

interface Taking {
  readonly count: number
  /** Whether tokens that are not there yet are taken, too. */
  readonly isInAdvance: boolean
}

/** An attempt to count in the shared memory is repeated this often if other processes count at the same moment. */
const accessKeyCountAttemptsMax = 8

export class SharedKeyLimits implements AccessKeyLimiter {
  readonly #numbers: BigUint64Array
  readonly #clock: Pick<Clock, 'machineMs'>

  /** @param numbers - the `keyLimitNumbers` numbers of the table */
  constructor(numbers: BigUint64Array, clock: Pick<Clock, 'machineMs'>) {
    assert(numbers.length === keyLimitNumbers, 'the table has a slot for each key')
    this.#numbers = numbers
    this.#clock = clock
  }

  take(access: KeyAccess, what: LimitedThing): number {
    return this.#takeOfAll(access, what, { count: 1, isInAdvance: false })
  }

  reserve(access: KeyAccess, count: number): number {
    return this.#takeOfAll(access, 'updates', { count, isInAdvance: true })
  }

  /** First its own, so that a key that is over its limit takes nothing of what its makers have. */
  #takeOfAll(access: KeyAccess, what: LimitedThing, how: Taking): number {
    let waitMs = this.#take(access, what, how)
    for (const maker of access.makers ?? []) {
      if (waitMs > 0 && !how.isInAdvance) return waitMs
      waitMs = Math.max(waitMs, this.#take(maker, what, how))
    }
    return waitMs
  }

  #take(access: KeyLimits, what: LimitedThing, { count, isInAdvance }: Taking): number {
    const perSecond = what === 'requests' ? access.requestsPerSecond : access.updatesPerSecond
    if (perSecond === undefined) return 0
    const at = this.#slotOf(access) + (what === 'requests' ? 1 : 2)
    for (let attempt = 1; ; attempt++) {
      const nowMs = this.#clock.machineMs()
      const before = Atomics.load(this.#numbers, at)
      const fullAtMs = fullAfter(Number(before) / 1_000, nowMs, (count * 1_000) / perSecond)
      const waitMs = waitOf(fullAtMs, nowMs)
      if (waitMs > 0 && !isInAdvance) return waitMs
      const after = BigInt(Math.round(fullAtMs * 1_000))
      const isTaken = Atomics.compareExchange(this.#numbers, at, before, after) === before
      // So many processes at the same moment are not to be expected: one token is lost to the count then.
      if (isTaken || attempt === accessKeyCountAttemptsMax) return waitMs
    }
  }

  #slotOf({ id, limitSlot }: KeyLimits): number {
    assert(limitSlot >= 0 && limitSlot < accessKeysMax, 'a key has one of the slots')
    const at = limitSlot * numbersPerKey
    const owner = BigInt(`0x${id}`)
    if (Atomics.load(this.#numbers, at) === owner) return at
    Atomics.store(this.#numbers, at + 1, 0n)
    Atomics.store(this.#numbers, at + 2, 0n)
    Atomics.store(this.#numbers, at, owner)
    return at
  }
}
