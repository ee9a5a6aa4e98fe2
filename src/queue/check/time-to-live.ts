/**
 * How long an update is worth delivering (protocol.md §4): as long as the producer says, otherwise a time that depends on the
 * type. Queries expire soon because the user stops waiting for their answer.
 */
import { ttlSMax } from '../../kit/limits.ts'
import { byType, type UpdateType } from '../../kit/update-types.ts'

const ttlSOtherwise = 86_400

const ttlSOf: Partial<Record<UpdateType, number>> = {
  inline_query: 30,
  callback_query: 150,
  shipping_query: 150,
  pre_checkout_query: 150,
  chosen_inline_result: 600,
}

const ttlSByNumber = byType(
  (type) => ttlSOf[type] ?? ttlSOtherwise,
  ({ ttlS }) => ttlS ?? ttlSOtherwise,
)

/**
 * Returns when an update expires. The server never sends it at or after that time.
 *
 * @param typeNumber - the index of the type in `updateTypes`; it decides if `ttlS` is undefined
 * @param ttlS - the producer's lifetime in seconds; capped at 365 days
 * @param nowMs - wall time in milliseconds
 * @returns wall time in seconds, with millisecond precision
 */
export function expiresAtS(typeNumber: number, ttlS: number | undefined, nowMs: number): number {
  return (nowMs + lifeS(typeNumber, ttlS) * 1000) / 1000
}

/**
 * Returns how long an update is worth delivering, in seconds. The parameters are those of `expiresAtS`.
 *
 * @param botTtlS - what the bot has in place of the day that most types have; types that expire sooner than it still do
 */
export function lifeS(typeNumber: number, ttlS: number | undefined, botTtlS?: number): number {
  return Math.min(ttlS ?? ttlSOfBot(typeNumber, botTtlS), ttlSMax)
}

function ttlSOfBot(typeNumber: number, botTtlS: number | undefined): number {
  const ttlS = ttlSByNumber[typeNumber] ?? ttlSOtherwise
  if (botTtlS === undefined) return ttlS
  return ttlS === ttlSOtherwise ? botTtlS : Math.min(ttlS, botTtlS)
}
