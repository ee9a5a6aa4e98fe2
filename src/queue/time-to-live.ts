/**
 * How long an update is worth delivering (SPEC 4): what the producer says, else by type. Queries are dead once
 * the user has stopped waiting for their answer.
 */

import { ttlSMax } from '../limits.ts'
import { type UpdateType, updateTypes } from './update-types.ts'

const ttlSOtherwise = 86_400

const ttlSOf: Partial<Record<UpdateType, number>> = {
  inline_query: 30,
  callback_query: 150,
  shipping_query: 150,
  pre_checkout_query: 150,
  chosen_inline_result: 600,
}

const ttlSByNumber: readonly number[] = updateTypes.map((type) => ttlSOf[type] ?? ttlSOtherwise)

/**
 * The wall time in whole seconds at and after which the update is never given out. Whole seconds make records
 * smaller; the moment of the push is rounded to the nearest one, so that neither does a ttl of 1 end at once nor
 * does an update live a second too long.
 */
export function expiresAtS(typeNumber: number, ttlS: number | undefined, nowMs: number): number {
  const lifeS = ttlS ?? ttlSByNumber[typeNumber] ?? ttlSOtherwise
  return Math.round(nowMs / 1000) + Math.min(lifeS, ttlSMax)
}
