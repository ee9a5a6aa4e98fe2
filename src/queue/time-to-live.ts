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

/** The wall time in seconds, to the millisecond, at and after which the update is never given out. */
export function expiresAtS(typeNumber: number, ttlS: number | undefined, nowMs: number): number {
  const lifeS = ttlS ?? ttlSByNumber[typeNumber] ?? ttlSOtherwise
  return (nowMs + Math.min(lifeS, ttlSMax) * 1000) / 1000
}
